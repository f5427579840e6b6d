import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fill_in, settled

expect.set_options(timeout=60_000)
HEADINGS = (
    "In short",
    "1 · Is the text in a document?",
    "2 · Into which chunks was it cut?",
    "3 · Was any of it lost to the token limit?",
    "4 · Where does it rank, and what outranks it?",
    "5 · Where would it rank under other settings?",
)


def open_diagnosis(page, app):
    page.goto(f"{app}/diagnose")
    expect(page.get_by_role("heading", name="Why wasn't it found?", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name=HEADINGS[-1])).to_be_visible()
    expect(page.get_by_role("button", name="Try other settings")).to_be_enabled()
    settled(page)
    return page


@pytest.fixture
def anywhere(any_tab, app):
    return open_diagnosis(any_tab, app)


@pytest.fixture
def wide(tab, app):
    return open_diagnosis(tab, app)


def test_a_question_that_misses_is_explained_step_by_step(anywhere):
    for heading in HEADINGS:
        expect(anywhere.get_by_role("heading", name=heading)).to_be_visible()
    expect(anywhere.get_by_test_id("stAlert").first).to_be_visible()
    assert len(anywhere.locator("span[style*=underline] mark").first.inner_text()) > 0
    width = anywhere.evaluate("document.documentElement.scrollWidth")
    assert width <= anywhere.viewport_size["width"]


def test_what_the_chunk_shares_with_the_question_is_drawn_on_demand(wide):
    expect(wide.locator(".js-plotly-plot")).to_have_count(0)
    wide.get_by_text("What the best chunk shares with the question").click()
    expect(wide.get_by_text("The pairs that count most")).to_be_visible()
    expect(wide.locator(".js-plotly-plot")).to_have_count(1)


def test_a_pasted_text_that_is_nowhere_is_said_to_be_nowhere_and_stays_text(wide):
    wide.get_by_text("Paste the passage", exact=True).click()
    settled(wide)
    fill_in(wide, "Your question", "Where did it sink?")
    box = wide.get_by_role("textbox", name="The passage")
    box.fill("The <img src=x onerror='document.title=1'> purple submarine sank off Iceland.")
    box.press("Control+Enter")
    expect(wide.get_by_text("It is not in the documents.")).to_be_visible()
    expect(wide.get_by_text("<img src=x onerror=").last).to_be_visible()
    assert wide.locator("[data-testid=stHtml] img").count() == 0
    expect(wide.get_by_role("heading", name=HEADINGS[2])).to_have_count(0)


def test_other_settings_are_measured_and_can_be_stopped(wide):
    wide.get_by_role("button", name="Try other settings").click()
    stop = wide.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True)
    stop.click()
    expect(stop).to_have_count(0)
    expect(wide.get_by_role("button", name="Try other settings")).to_be_enabled()
