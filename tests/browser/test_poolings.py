import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import fill_area, open_chapter, open_tab, settled, visit


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    return visit(kept_tab, app, "poolings")


def test_a_pair_of_ones_own_is_explained_and_its_markup_stays_text(wide):
    open_tab(wide, "A pair explained")
    fill_area(wide, "First text", "The <b>tower</b> is old.")
    fill_area(wide, "Second text", "An ancient spire.")
    panel = wide.get_by_role("tabpanel", name="A pair explained")
    expect(panel.get_by_text("These two lie farthest above it under")).to_be_visible()
    open_chapter(wide, "Pair by pair")
    expect(panel.get_by_text("The pairs that count most")).to_be_visible()
    open_chapter(wide, "Without each word")
    expect(panel.get_by_text("Where the two views differ")).to_be_visible()
    open_chapter(wide, "Both texts")
    expect(panel.get_by_text("pairs of tokens add up to")).to_be_visible()
    assert panel.locator("b", has_text="tower").count() == 0
    assert_usable(wide)
    fill_area(wide, "Second text", "")
    expect(panel.get_by_text("pairs of tokens add up to")).to_have_count(0)
    expect(wide.get_by_test_id("stException")).to_have_count(0)


def test_without_documents_sentences_are_compared_and_a_search_asks_for_some(wide):
    wide.get_by_role("button", name="Clear all").click()
    settled(wide)
    panel = open_tab(wide, "Sentences")
    expect(panel.get_by_text("What to look for.")).to_be_visible()
    open_tab(wide, "Your question")
    expect(wide.get_by_test_id("stMain").get_by_text("No document is chosen.")).to_be_visible()
