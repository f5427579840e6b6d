"""Journeys without a mouse: Tab comes to every step, and at every stop the focus can be seen."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import expect

from engine.storage.workspace import import_workspace
from tests.browser.conftest import TITLES, settled, title_of

ADDRESS = ""
QUESTION = "What does the CarbFix project do with carbon dioxide?"
OWN = {"name": "tide.md", "mimeType": "text/markdown", "buffer": b"# Tides\n\nThe tide turns twice a day."}
STOPS = 90  # more presses of Tab than this are no way to anything
# How what has the focus looks, with the elements around it, which may bear the mark. Two kinds are left out:
# a choice of several bears it as long as the focus moves inside, and a grid paints it on its canvas.
LOOK = """() => {
    const active = document.activeElement, parts = [...active.parentElement?.children ?? []];
    for (let part = active; part && parts.length < 20; part = part.parentElement) parts.push(part);
    const styles = ["outline", "boxShadow", "borderColor", "backgroundColor", "color", "transform"];
    const look = () => parts.flatMap((part) => ["", "::before", "::after"].map((pseudo) => {
        const style = getComputedStyle(part, pseudo);
        return styles.map((name) => style[name]).join();
    })).join();
    const focused = look(), isPlain = !active.matches("body, canvas, [role=gridcell], [role=combobox]");
    const before = window.unseen?.();
    window.unseen = () => isPlain && active.isConnected && look() === focused ? active.outerHTML : "";
    return before;
}"""


def tab_to(page, element, key="Tab"):
    """Press Tab until an element has the focus, which can be seen at each stop on the way."""
    page.evaluate("window.unseen = undefined")
    for _ in range(STOPS):
        page.keyboard.press(key)
        assert not page.evaluate(LOOK)
        if element.count() and element.evaluate("element => element === document.activeElement"):
            return element
    return pytest.fail(f"the focus never comes to {element}")


def move_right(page, tab):
    """Move from the tab that is open to the next; where the page was drawn again meanwhile, once more."""
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        with suppress(AssertionError):
            return expect(tab).to_be_focused(timeout=5_000)
        tab_to(page, page.get_by_test_id("stMain").get_by_role("tab", selected=True))
    return pytest.fail(f"the focus never comes to {tab}")


def press(page, button):
    tab_to(page, button)
    page.keyboard.press("Enter")


def test_a_question_is_asked_diagnosed_and_a_chunk_opened_by_keyboard_alone(wide):
    main = wide.get_by_test_id("stMain")
    tab_to(wide, wide.get_by_role("textbox", name="Your question"))
    wide.keyboard.type(QUESTION)
    wide.keyboard.press("Enter")
    expect(wide.get_by_role("tab", name="Sources")).to_be_visible()
    settled(wide)
    tab_to(wide, wide.get_by_role("button", name="Look inside", exact=True))
    tab_to(wide, wide.get_by_role("button", name="Was this wrong?"), "Shift+Tab")
    wide.keyboard.press("Enter")
    expect(title_of(wide)).to_have_text(TITLES["diagnose"])
    settled(wide)
    tab_to(wide, main.get_by_role("textbox", name="Words of the passage"))
    wide.keyboard.type("carbon dioxide")
    wide.keyboard.press("Enter")
    settled(wide)
    expect(main.get_by_role("heading", name="What ranks above it")).to_be_visible()
    tab_to(wide, main.get_by_role("table").last.locator("xpath=.."))
    tab_to(wide, main.get_by_role("button", name="Look inside this chunk").last)
    wide.keyboard.press("Enter")
    expect(title_of(wide)).to_have_text(TITLES["chunk"])
    settled(wide)
    tab_to(wide, main.get_by_role("tab", name="Pipeline", exact=True, selected=True))
    for name in ("Attention", "Across layers"):
        tab = main.get_by_role("tab", name=name, exact=True)
        move_right(wide, tab)
        wide.keyboard.press("Enter")
        expect(tab).to_have_attribute("aria-selected", "true")
        settled(wide)


def test_a_document_is_added_a_setting_undone_and_the_work_saved_by_keyboard_alone(wide, tmp_path):
    sidebar = wide.get_by_test_id("stSidebar")
    with wide.expect_file_chooser() as chooser:
        press(wide, wide.get_by_role("button", name=re.compile("Upload")))
    chooser.value.set_files(OWN)
    expect(sidebar.get_by_role("button", name="Remove tide.md")).to_have_count(1)
    settled(wide)
    press(wide, sidebar.locator("summary", has_text="Search"))
    card = sidebar.locator(".st-key-settings-card")
    tab_to(wide, sidebar.get_by_role("slider", name="Passages"))
    wide.keyboard.press("ArrowRight")
    expect(card).to_contain_text("5 passages")
    settled(wide)
    tab_to(wide, card.get_by_role("button", name="Undo: passages 5 → 4"), "Shift+Tab")
    wide.keyboard.press("Enter")
    expect(card).to_contain_text("4 passages")
    settled(wide)
    save, dialog = sidebar.get_by_role("button", name="Save or open"), wide.get_by_role("dialog")
    press(wide, save)
    settled(wide)
    with wide.expect_download() as download:
        press(wide, dialog.get_by_role("button", name="Download the workspace"))
    path = tmp_path / "mine.glassbox"
    download.value.save_as(path)
    assert [each.name for each in import_workspace("mine", path.read_bytes()).documents] == ["tide.md"]
    for _ in range(3):  # Streamlit gives the focus back, unless it draws the button anew just then
        settled(wide)
        press(wide, dialog.get_by_role("button", name="Close"))
        expect(dialog).to_have_count(0)
        settled(wide)
        if save.evaluate("button => button === document.activeElement"):
            break
        press(wide, save)
    expect(save).to_be_focused()
