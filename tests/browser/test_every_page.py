"""Every page: opened by the menu, drawn whole, accessible, no wider than any screen, no error."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser import accessibility, conftest
from tests.browser.visitor import visiting

ANSWERED = "What happens to text beyond the token limit?"
# What a page shows by itself, or each of its tabs, and how many figures, where that is known.
SHOWN = {
    "": {
        "Sources": "characters",
        "In the documents": "[1]",
        "Timing": "Generate text",
        "Exact prompt": ANSWERED,
    },
    "documents": {
        "Files": "Add files in the sidebar",
        "Chunks": "Median tokens",
        "Never read": "Every chunk is read whole",
        "Map": "Together the axes explain",
        "Health": "How this is measured",
        "Index": "The nearest vectors are found by an index",
    },
    "settings": {
        "Grid": "Run the grid",
        "Results": "Nothing is measured yet",
        "Runs": "No run has ended yet",
    },
    "diagnose": "From the file to the answer",
    "poolings": {
        "Sentences": "What to look for.",
        "A pair explained": "Words with words",
        "Your question": "Each line is a passage",
        "Tokens": "make up",
    },
    "tuning": "34 questions about 1 document",
    "questions": {"Label questions": "Mark the passage", "Drafts": "You have no questions yet"},
    "answer": {
        "Reader": "The closest answers of all passages",
        "Tokens": "■ end",
        "What it rests on": "Attention is no explanation by itself",
    },
    "chunk": {"Pipeline": "shape", "Attention": "", "Across layers": "", "A token's way": ""},
    "reranker": "No cross-encoder is loaded",
    "matches": {"Words: learned sparse": "No learned sparse model", "Tokens: late interaction": "on average"},
    "verify": "PyTorch and the official model run",
    "broken": "The model is intact",
    "late": "The chunks that move most",
    "positions": "All four, in vectors of 512 dimensions",
    "cache": "The 9 query heads share 3 heads",
    "worked": {
        "Words": "2 · Positions are added",
        "Attention": "6 · Values are mixed",
        "The rest of a block": "9 · Feed-forward",
        "Blocks on blocks": "Bounded:",
        "Decoder": "because the end token came",
        "Sizes": "63.1 M",
    },
    "decoder": "Nothing is trained yet",
}
FIGURES = {
    "answer": {"Reader": 0, "Tokens": 2, "What it rests on": 2},
    "chunk": {"Pipeline": 1, "Attention": 1, "Across layers": 2, "A token's way": 1},
    "matches": {"Words: learned sparse": 0, "Tokens: late interaction": 1},
    "late": 1,
    "positions": 5,
    "cache": 1,
}
# The labels of the widgets in sight, but those of the sidebar; a row of chapters is one of tabs.
CONTROLS = """() => [...document.querySelectorAll(
    "[data-testid=stMain] :is([data-testid=stSelectbox], [data-testid=stMultiSelect], [data-testid=stSlider],"
    + "[data-testid=stRadio], [data-testid=stCheckbox], [data-testid=stTextInput], [data-testid=stTextArea],"
    + "[data-testid=stNumberInput], [data-testid=stButtonGroup], [data-testid=stFileUploader])"
)].filter((control) => control.checkVisibility() && control.getBoundingClientRect().height
    && !control.closest("[class*=st-key-chapters-]")
).map((control) => control.innerText.split("\\n")[0])"""
MOST_CONTROLS = 5
FORMER = {
    "experiments": "settings",
    "pooling": "poolings",
    "generate": "answer",
    "attention": "chunk",
    "verification": "verify",
    "lab": "worked",
    "truncation": "documents",
}


@pytest.fixture(scope="module")
def toured(kept_tab, app):
    """A tab in which a question was answered from the shortest document, by a text too."""
    conftest.visit(kept_tab, app, search="inside_the_pipeline.md")
    kept_tab.get_by_test_id("stButtonGroup").get_by_text(ANSWERED).click()
    expect(kept_tab.get_by_role("tab", name="Sources")).to_be_visible()
    kept_tab.get_by_role("button", name="write it in sentences").click()
    expect(kept_tab.get_by_role("tab", name="Exact prompt")).to_be_visible()
    conftest.settled(kept_tab)
    return kept_tab


@pytest.fixture(scope="module")
def seen():
    """The known findings of each page so far, by their numbers."""
    return {}


@pytest.mark.parametrize("address", conftest.TITLES)
def test_a_page_opened_by_the_menu_is_whole_accessible_and_fits_every_screen(toured, address, seen):
    conftest.go_to(toured, conftest.TITLES[address])
    shown, n_figures = SHOWN[address], FIGURES.get(address, {})
    found, scanned = [], "html"
    for tab in shown if isinstance(shown, dict) else [None]:
        part = conftest.open_tab(toured, tab) if tab else toured.get_by_test_id("stMain")
        expect(part).to_contain_text(shown[tab] if tab else shown)
        count = n_figures.get(tab) if isinstance(n_figures, dict) else n_figures
        if count is not None:
            expect(conftest.figures(toured)).to_have_count(count)
        conftest.assert_fits(toured)
        assert len(controls := toured.evaluate(CONTROLS)) <= MOST_CONTROLS, controls
        found += accessibility.findings_in_both_themes(toured, scanned)
        for screen in (accessibility.MAGNIFIED, conftest.NARROW):
            accessibility.resize(toured, screen)
            conftest.assert_fits(toured)
        found += accessibility.findings(
            toured, scanned, **accessibility.STRUCTURE
        )  # colours do not depend on the width
        toured.set_viewport_size(conftest.WIDE)
        scanned = "[role=tabpanel]"  # what is around the tabs stays
    assert not [finding for finding in found if finding["known"] < 0]
    seen[address] = {finding["known"] for finding in found}


def test_every_known_finding_still_occurs(seen):
    if set(seen) != set(conftest.TITLES):
        pytest.skip("not all pages were opened")
    assert set().union(*seen.values()) == set(range(len(accessibility.UPSTREAM)))


def test_axes_have_the_colour_of_text_and_nothing_moves_for_readers_who_want_less_motion(toured):
    conftest.go_to(toured, conftest.TITLES["positions"])
    title, colours = conftest.title_of(toured), set()
    for scheme in ("light", "dark"):
        toured.emulate_media(color_scheme=scheme)
        for part in (".xtick text", ".ytick text", ".xtitle"):
            axis, wanted = conftest.figures(toured).locator(part).first, None
            for _ in range(300):  # the theme follows a moment later, and the figures after it
                wanted = title.evaluate("title => getComputedStyle(title).color")
                if wanted not in colours and axis.evaluate("axis => getComputedStyle(axis).fill") == wanted:
                    break
                toured.wait_for_timeout(100)
            expect(axis).to_have_css("fill", wanted)
        assert wanted not in colours
        colours.add(wanted)
    toured.emulate_media(color_scheme="light")
    expect(title).not_to_have_css("animation-duration", "1e-05s")
    toured.emulate_media(reduced_motion="reduce")
    for name in ("animation-duration", "transition-duration"):
        expect(title).to_have_css(name, "1e-05s")
    expect(title).to_have_css("animation-iteration-count", "1")
    toured.emulate_media(reduced_motion="no-preference")


def test_on_a_phone_the_menu_of_the_sidebar_opens_pages(narrow_tab, app):
    conftest.visit(narrow_tab, app)
    for address in ("broken", "documents"):
        conftest.go_to(narrow_tab, conftest.TITLES[address])
        conftest.assert_fits(narrow_tab)
    conftest.open_sidebar(narrow_tab)
    conftest.open_section(narrow_tab, "Chunks")
    conftest.settled(narrow_tab)
    accessibility.assert_usable(narrow_tab)


def test_former_addresses_lead_to_where_their_pages_are_now(tab, app):
    with visiting(app) as visitor:
        for former, address in FORMER.items():
            assert f"{app}/{address}" in visitor.open(former)
    tab.goto(f"{app}/truncation")
    tab.wait_for_url(lambda url: urlsplit(url).path == "/documents")
    expect(tab.get_by_role("tab", name="Never read", selected=True)).to_be_visible()
    tab.goto(f"{app}/translator")
    expect(tab.get_by_text("“Learn to translate” is no longer part of Glassbox")).to_be_visible()
