"""A document and a question full of markup, formulas and marks of direction stay text on every page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import TITLES, go_to, open_tab, settled, visit
from tests.browser.test_every_page import SHOWN

# The pages that show the text of documents or the question.
READ_IT = (
    "",
    "documents",
    "settings",
    "diagnose",
    "poolings",
    "questions",
    "answer",
    "chunk",
    "late",
    "broken",
)
TURN = "\u202e"  # all that follows is shown from right to left
EVIL = (
    "<img src=x onerror=window.evil=1><b class=evil>bold</b><script>window.evil=2</script>",
    "[evil](javascript:window.evil=3) ![evil](//evil.example/x.png) :red[evil] :material/skull: **evil**",
    "$\\text{evil}$ $$\\href{javascript:window.evil=4}{evil}$$ `evil` <a href=//evil.example>evil</a>",
    f"{TURN}evil\u2067 =HYPERLINK(evil) | evil | %{{x}} {{{{evil}}}} <br>evil</span></div>",
)
NAME = f"evil$x^2$ **evil** :red[evil] <b class=evil>&lt; {TURN}evil.md"
TEXT = "\n\n".join(
    f"# {part}\n\nThe harbour of evil number {number} opens at {number} in the morning. {part} " * 4
    for number, part in enumerate(EVIL)
)
QUESTION = f"When does the harbour open? {EVIL[0]} {EVIL[2]}"
MADE = ", ".join(  # what would be there if a part of it were taken for more than text
    (
        "img[src=x]",
        ".evil",
        ".katex:has-text('evil')",
        "a:has-text('evil')[href*=javascript]",
        "a[href*='evil.example']",
        "img[src*='evil.example']",
        "strong:text-is('evil')",
        ".stMarkdownColoredText:has-text('evil')",
    )
)
# Texts in which a mark of direction is left: of elements, of figures, and of attributes that are read aloud.
TURNED = """() => [...document.querySelectorAll("body *")].flatMap((one) => [
    ...[...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
    one.getAttribute("aria-label"), one.getAttribute("title"), one.getAttribute("alt"),
]).filter((text) => text && /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text))"""


@pytest.fixture(scope="module")
def page(app, wide_window):
    """A tab with the document, in which the question is asked; `asked` are the addresses it fetched."""
    with wide_window.new_page() as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
        visit(page, app)
        page.locator("input[type=file]").set_input_files(
            [{"name": NAME, "mimeType": "text/plain", "buffer": TEXT.encode()}]
        )
        expect(page.get_by_test_id("stMultiSelect").first).to_contain_text("evil")
        settled(page)
        page.get_by_role("textbox", name="Your question").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.get_by_role("tab", name="Sources")).to_be_visible()
        settled(page)
        page.asked = asked
        yield page


def assert_text(page):
    assert page.locator(MADE).count() == 0, page.locator(MADE).first.evaluate("one => one.outerHTML")
    assert page.evaluate("window.evil") is None
    assert page.evaluate(TURNED) == []
    assert not [url for url in page.asked if "evil.example" in url or url.startswith("dialog")]


def test_nothing_of_it_is_taken_for_more_than_text_on_any_page_or_in_the_report(page, wide_window):
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("Report")).first.click()
    for address in READ_IT:
        go_to(page, TITLES[address])
        assert_text(page)
        shown = SHOWN[address]
        for tab in shown if isinstance(shown, dict) else ():
            if page.get_by_test_id("stMain").get_by_role("tab", name=tab, exact=True).count():
                open_tab(page, tab)
                assert_text(page)
    with wide_window.new_page() as report:
        report.asked = []
        report.on("request", lambda request: report.asked.append(request.url))
        report.set_content(download.value.path().read_text())
        assert report.locator("img[src=x], .evil, a[href*=javascript], a[href*='evil.example']").count() == 0
        assert report.evaluate("window.evil") is None
        assert not [url for url in report.asked if "evil.example" in url]
