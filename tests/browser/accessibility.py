"""Findings of axe-core on a page, those of them that are known and not ours, and the page at 200 %."""

from dataclasses import dataclass
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import expect

from tests.browser.conftest import WIDE, assert_no_wider, is_narrow, settled

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# Each finding comes with the number of the known one that it is, or -1.
SCAN = """([options, known, part]) => axe.run(
    {include: [part], exclude: [".js-plotly-plot svg"]},
    {resultTypes: ["violations"], elementRef: true, ...options}
).then(({violations}) => violations.flatMap(({id, nodes}) => nodes.map(
    ({element, target, html, failureSummary}) => ({
        known: known.findIndex(([rule, selector]) => rule === id && element.matches(selector)),
        rule: id, target: target.flat(), html: html.slice(0, 200), why: failureSummary,
    }))))"""
MAGNIFIED = {"width": 720, "height": 500}  # what a wide screen shows at 200 %
# Figures and tables are drawn again a moment after the screen has changed.
DRAWN = ".js-plotly-plot, .gb-table, [data-testid=stDataFrame]"
FIGURES_FIT = f"""() => [...document.querySelectorAll("{DRAWN}")].every(
    (figure) => !figure.checkVisibility() || figure.clientWidth <= innerWidth)"""
CONTRAST = {"runOnly": ["color-contrast"]}
STRUCTURE = {"rules": {"color-contrast": {"enabled": False}}}


@dataclass(frozen=True)
class Upstream:
    """A finding in Streamlit's own markup, which has no setting for it."""

    rule: str
    selector: str
    reason: str


UPSTREAM = (
    Upstream(
        "presentation-role-conflict",
        "[data-testid=stFileUploaderDropzone]",
        "the area that files are dropped on has a role without meaning, and a label; its button has both",
    ),
    Upstream(
        "list",
        "[data-testid=stSidebarNavItems]",
        "the menu of narrow screens is a list whose groups are no list items",
    ),
    Upstream("listitem", "[data-testid=stSidebarNavItems] li", "the items of those groups are in no list"),
    Upstream(
        "scrollable-region-focusable", ".katex-display", "a wide equation scrolls without taking the focus"
    ),
)


def findings(page, part="html", **options):
    """Return all findings on a page, or a part of it, of all rules or by ``options`` of axe-core."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return page.evaluate(SCAN, [options, [[each.rule, each.selector] for each in UPSTREAM], part])


def findings_in_both_themes(page, part="html"):
    """Return all findings in the theme as it is, and in the other, which stays, those that depend on it."""
    found = findings(page, part)
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.emulate_media(color_scheme="light" if is_dark else "dark")
    return found + findings(page, part, **CONTRAST)


def resize(page, screen):
    """Change the size of the screen, and wait until figures and tables have followed."""
    page.set_viewport_size(screen)
    page.wait_for_function(FIGURES_FIT)


def assert_usable(page):
    """What is drawn now has no finding in either theme, and at 200 % the page does not scroll sideways."""
    page.mouse.move(0, 0)
    expect(page.get_by_test_id("stTooltipContent")).to_have_count(0)  # of the button pressed last
    for _ in range(3):  # what is there only while the page is drawn again is no finding
        found = [each for each in findings_in_both_themes(page) if each["known"] < 0]
        if not found:
            break
        settled(page)
    assert not found, found
    if not is_narrow(page):
        resize(page, MAGNIFIED)
        assert_no_wider(page)
        resize(page, WIDE)
