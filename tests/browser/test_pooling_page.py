import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled

expect.set_options(timeout=60_000)

# What each view shows by itself, with nothing done.
VIEWS = {
    "Sentences": "What to look for.",
    "A pair explained": "The pairs that count most",
    "Your question": "Which ranking to trust",
    "Tokens": "The text, painted",
    "Mistakes": "What it costs a search",
    "Scored pairs": "Where it is most wrong",
    "Geometry": "What to learn from these numbers",
}


def open_pooling(page, app):
    page.goto(f"{app}/pooling")
    expect(page.get_by_role("heading", name="Pooling compared", level=1)).to_be_visible()
    settled(page)
    return page


@pytest.fixture(scope="module")
def anywhere(any_kept_tab, app):
    """The page at each width, where only views are opened."""
    return open_pooling(any_kept_tab, app)


@pytest.fixture
def wide(tab, app):
    return open_pooling(tab, app)


def open_view(page, name):
    settled(page)
    tab = page.get_by_role("tab", name=name, exact=True)
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    settled(page)


def test_every_view_shows_something_at_once_and_nothing_is_wider_than_the_screen(anywhere):
    for name, words in VIEWS.items():
        open_view(anywhere, name)
        panel = anywhere.get_by_role("tabpanel", name=name)
        expect(panel.get_by_text(words).first).to_be_visible()
        expect(anywhere.get_by_test_id("stException")).to_have_count(0)
        assert anywhere.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name


def test_a_question_embedded_otherwise_than_its_index_is_refused_in_words(anywhere):
    open_view(anywhere, "Your question")
    expect(anywhere.get_by_text("The engine refuses:")).to_be_visible()
    expect(anywhere.get_by_text("embed both in one way, or build the index again")).to_be_visible()


def test_a_pair_of_ones_own_is_explained_and_its_markup_stays_text(wide):
    open_view(wide, "A pair explained")
    wide.get_by_role("textbox", name="First text").fill("The <b>tower</b> is old.")
    wide.get_by_role("textbox", name="First text").press("Control+Enter")
    settled(wide)
    wide.get_by_role("textbox", name="Second text").fill("An ancient spire.")
    wide.get_by_role("textbox", name="Second text").press("Control+Enter")
    settled(wide)
    panel = wide.get_by_role("tabpanel", name="A pair explained")
    expect(panel.get_by_text("pairs of tokens add up to")).to_be_visible()
    assert panel.locator("b", has_text="tower").count() == 0
    wide.get_by_role("textbox", name="Second text").fill("")
    wide.get_by_role("textbox", name="Second text").press("Control+Enter")
    settled(wide)
    expect(panel.get_by_text("pairs of tokens add up to")).to_have_count(0)
    expect(wide.get_by_test_id("stException")).to_have_count(0)


def test_without_documents_sentences_are_compared_and_a_search_asks_for_some(wide):
    settled(wide)
    wide.get_by_role("button", name="Clear all").click()
    settled(wide)
    panel = wide.get_by_role("tabpanel", name="Sentences")
    expect(panel.get_by_text("What to look for.")).to_be_visible()
    open_view(wide, "Your question")
    panel = wide.get_by_role("tabpanel", name="Your question")
    expect(panel.get_by_text("No document is chosen.")).to_be_visible()
