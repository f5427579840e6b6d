"""What is chosen in the sidebar stays from page to page, for a user who clicks through the menu."""

from playwright.sync_api import expect

from tests.browser.conftest import (
    BUNDLED,
    TITLES,
    go_to,
    press_slider,
    press_until,
    search_only,
    settled,
    upload,
    visit,
)

OWN = "harbour.txt"
TEXT = b"The harbour of Ystad opens at six in the morning. " * 40
# Sliders, and the keys that move them from their defaults.
MOVED = {
    "Chunk size (tokens)": ["ArrowLeft"] * 8,
    "Overlap (tokens)": ["ArrowRight"] * 3,
    "Small to big (tokens)": ["End"],
    "Token limit": ["End"],
    "Passages": ["End"],
    "Relevance threshold": ["ArrowLeft"],
    "Prompt budget (tokens)": ["ArrowLeft"],
    "Longest answer (tokens)": ["ArrowLeft"],
    "Answered from (% sure)": ["ArrowRight"],
    "Refused below (% sure)": ["ArrowRight"],
    "Temperature": ["ArrowRight"],
}
SELECTED = ("Splitter", "Pooling", "Retriever", "The model reads")


def sidebar(page):
    return page.get_by_test_id("stSidebar")


def documents(page):
    """The names of the chosen documents."""
    return sidebar(page).locator(".react-aria-ComboBox [data-tag]").all_inner_texts()


def assert_documents(page, names):
    expect(page.get_by_text("No document is chosen")).to_have_count(0)
    if sidebar(page).get_by_test_id("stMultiSelect").count():
        assert documents(page) == names


def open_all_sections(page):
    """Open the sidebar's sections; a change of what is above them may close them again."""
    for section in sidebar(page).locator("details").all():
        if section.get_attribute("open") is None:
            press_until(section.locator("summary"), section.locator("[data-testid=stWidgetLabel]"))
    settled(page)


def settings(page):
    """The values of the sliders and selections of the sidebar, also in sections that are closed."""
    return {
        widget.get_attribute("aria-label"): widget.input_value()
        for role in ("slider", "combobox")
        for widget in sidebar(page).get_by_role(role, include_hidden=True).all()
    }


def select_another(page, label):
    """Select the option after the selected one, or before it if it is the last."""
    box = sidebar(page).get_by_role("combobox", name=label)
    was = box.input_value()
    for key in ("ArrowDown", "ArrowUp"):
        press_until(box, page.get_by_role("option"))
        box.press(key)
        box.press("Enter")
        settled(page)
        if box.input_value() != was:
            return


def come_from(page, title):
    """The bundled documents are chosen on the second page of a session, too; back to the first."""
    go_to(page, title)
    assert_documents(page, list(BUNDLED))
    go_to(page, "Ask your documents")


def test_documents_and_settings_are_the_same_on_every_page(tab, app):
    visit(tab, app)
    come_from(tab, "Pooling compared")
    upload(tab, (OWN, TEXT))
    search_only(tab)
    before = settings(tab)
    open_all_sections(tab)
    for label in SELECTED:
        select_another(tab, label)
    for label, keys in MOVED.items():
        press_slider(tab, label, *keys)
    chosen = settings(tab)
    assert {label for label in before if chosen[label] != before[label]} == {*SELECTED, *MOVED}
    for title in list(TITLES.values())[1:]:
        go_to(tab, title)
        assert_documents(tab, [OWN])
        shown = settings(tab)
        assert shown == {label: chosen[label] for label in shown}
    go_to(tab, "Ask your documents")
    assert_documents(tab, [OWN])
    assert settings(tab) == chosen


def card(page):
    return sidebar(page).locator(".st-key-settings-card")


def test_the_settings_in_use_are_in_sight_on_every_page_and_reset_from_any(tab, app):
    visit(tab, app)
    come_from(tab, "Documents and chunks")
    expect(sidebar(tab).get_by_role("slider", name="Temperature", include_hidden=True)).to_be_attached()
    before = settings(tab)
    open_all_sections(tab)
    press_slider(tab, "Passages", "End")
    press_slider(tab, "Longest answer (tokens)", "ArrowLeft")
    changed = "2 changed: passages, longest answer"
    for title in ("Ask your documents", "Why wasn't it found?", "Documents and chunks"):
        go_to(tab, title)
        expect(card(tab)).to_contain_text("Sentences, 192 tokens")
        expect(card(tab)).to_contain_text("10 passages")
        expect(card(tab)).to_contain_text(changed)
    card(tab).get_by_role("button", name="Undo: longest answer 112 → 128").click()
    expect(card(tab)).to_contain_text("1 changed: passages")
    card(tab).get_by_role("button", name="Undo: longest answer 128 → 112").click()
    expect(card(tab)).to_contain_text(changed)
    card(tab).get_by_role("button", name="Reset").click()  # on a page that draws neither of the two
    expect(card(tab)).to_contain_text("4 passages")
    expect(card(tab)).not_to_contain_text("changed")
    for title in ("Why wasn't it found?", "Ask your documents"):
        go_to(tab, title)
        expect(card(tab)).to_contain_text("4 passages")
        expect(card(tab)).not_to_contain_text("changed")
    assert settings(tab) == before
