"""A number of the transformer by hand is changed, and all that follows from it."""

from contextlib import suppress

from playwright.sync_api import expect

from tests.browser.conftest import open_tab, settled

ADDRESS = "worked"


def set_cell(page, matrix, row, column, text):
    """Type into a cell of an editable matrix of three columns; rows and columns are counted from 0."""
    choose_cell(page, page.get_by_test_id("stDataFrame").nth(matrix), row, column)
    if text:
        page.keyboard.press("1")  # any digit opens the cell
        editor = page.locator("#portal input")
        expect(editor).to_have_value("1")
        editor.fill(text)
        editor.press("Enter")
    else:
        page.keyboard.press("Delete")
    settled(page)


def choose_cell(page, grid, row, column):
    """Choose a cell by clicks: a grid that was just drawn anew does not hear the first one."""
    cell = grid.get_by_test_id(f"glide-cell-{column}-{row}")
    if cell.get_attribute("aria-selected") == "true":
        grid.locator("canvas").first.focus()  # a click on a chosen cell would open it
    for _ in range(5):
        if cell.get_attribute("aria-selected") == "true":
            return
        grid.scroll_into_view_if_needed()
        box = grid.bounding_box()
        height = box["height"] / 5  # four rows and the head
        page.mouse.click(box["x"] + box["width"] * (column + 0.5) / 3, box["y"] + height * (row + 1.5))
        with suppress(AssertionError):
            expect(cell).to_have_attribute("aria-selected", "true", timeout=1_000)
    expect(cell).to_have_attribute("aria-selected", "true")


def matrix(page, name):
    """A matrix, also one of another chapter than the open one."""
    return page.get_by_role("region", name=name, exact=True, include_hidden=True)


def test_a_number_is_changed_emptied_and_set_back_and_everything_follows(wide):
    open_tab(wide, "Attention")
    set_cell(wide, 1, 0, 0, "2")  # WQ of head 1: Hello's query was 8 3 3
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_have_count(0)
    z = matrix(wide, "Z").text_content()
    wide.get_by_role("radio", name="Head 2").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).not_to_have_text("10")
    assert matrix(wide, "Z").text_content() == z
    wide.get_by_role("radio", name="Head 1").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    wide.get_by_role("button", name="Back to the example").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("8")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_have_count(1)
    set_cell(wide, 2, 1, 2, "")
    expect(wide.get_by_text("WK of head 1, row 2, column 3 is empty or no number")).to_be_visible()
    expect(wide.get_by_test_id("stException")).to_have_count(0)
