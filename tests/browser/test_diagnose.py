import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import fill_area, fill_in, open_chapter, settled, visit

HEADINGS = (
    "In short",
    "1 · Is the text in a document?",
    "2 · Into which chunks was it cut?",
    "3 · Was any of it lost to the token limit?",
    "4 · Where does it rank, and what outranks it?",
    "5 · Where would it rank under other settings?",
)


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    """The page, opened once; the last test asks it another question."""
    return visit(kept_tab, app, "diagnose")


def test_a_question_that_misses_is_explained_step_by_step(wide):
    for heading in HEADINGS:
        expect(wide.get_by_role("heading", name=heading)).to_be_visible()
    expect(wide.get_by_test_id("stAlert").first).to_be_visible()
    assert len(wide.locator("span[style*=underline] mark").first.inner_text()) > 0
    expect(wide.locator(".js-plotly-plot")).to_have_count(0)
    wide.get_by_text("What the best chunk shares with the question").click()
    expect(wide.get_by_text("pairs of tokens add up to")).to_be_visible()
    open_chapter(wide, "Pair by pair")
    expect(wide.get_by_text("The pairs that count most")).to_be_visible()
    expect(wide.locator(".js-plotly-plot")).to_have_count(1)
    assert_usable(wide)
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Report (HTML)").click()
    report = download.value.path().read_text()
    assert all(f"<h2>{heading}</h2>" in report for heading in HEADINGS)


def test_other_settings_are_measured_and_can_be_stopped(wide):
    wide.get_by_role("button", name="Try other settings").click()
    stop = wide.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True)
    stop.click()
    expect(stop).to_have_count(0)
    expect(wide.get_by_role("button", name="Try other settings")).to_be_enabled()
    assert_usable(wide)


def test_a_pasted_text_that_is_nowhere_is_said_to_be_nowhere_and_stays_text(wide):
    wide.get_by_text("Paste the passage", exact=True).click()
    settled(wide)
    fill_in(wide, "Your question", "Where did it sink?")
    markup = "<img src=x onerror='document.title=1'>"
    fill_area(wide, "The passage", f"The {markup} purple submarine sank off Iceland.")
    expect(wide.get_by_text("It is not in the documents.")).to_be_visible()
    expect(wide.get_by_text("<img src=x onerror=").last).to_be_visible()
    assert wide.locator("[data-testid=stHtml] img").count() == 0
    expect(wide.get_by_role("heading", name=HEADINGS[2])).to_have_count(0)
