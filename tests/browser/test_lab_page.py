import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled

expect.set_options(timeout=60_000)


def open_lab(page, app):
    page.goto(f"{app}/lab")
    expect(page.get_by_role("heading", name="The lab", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="12 · The sizes of 2017")).to_be_visible()
    settled(page)
    return page


@pytest.fixture
def anywhere(any_tab, app):
    return open_lab(any_tab, app)


@pytest.fixture
def wide(tab, app):
    return open_lab(tab, app)


def set_cell(page, matrix, row, column, text):
    """Type into a cell of an editable matrix of three columns; rows and columns are counted from 0."""
    grid = page.get_by_test_id("stDataFrame").nth(matrix)
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    height = box["height"] / 5  # four rows and the head
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / 3, box["y"] + height * (row + 1.5))
    if text:
        page.keyboard.press("1")  # any digit opens the cell
        editor = page.locator("#portal input")
        editor.fill(text)
        editor.press("Enter")
    else:
        page.keyboard.press("Delete")
    settled(page)


def matrix(page, name):
    return page.get_by_role("region", name=name, exact=True)


def test_every_section_shows_something_at_once_and_nothing_is_wider_than_the_screen(anywhere):
    expect(anywhere.get_by_role("tabpanel").get_by_role("heading", level=3)).to_have_count(12)
    expect(matrix(anywhere, "Z").get_by_text("11.46394285")).to_be_visible()
    expect(anywhere.get_by_text("Bounded:")).to_be_visible()
    expect(anywhere.get_by_text("because the end token came")).to_be_visible()
    expect(anywhere.get_by_test_id("stException")).to_have_count(0)
    assert anywhere.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_number_is_changed_everything_follows_and_the_other_head_does_not_forget_it(wide):
    set_cell(wide, 1, 0, 0, "2")  # WQ of head 1: Hello's query was 8 3 3
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_have_count(0)
    z = matrix(wide, "Z").inner_text()
    wide.get_by_role("radio", name="Head 2").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).not_to_have_text("10")
    assert matrix(wide, "Z").inner_text() == z
    wide.get_by_role("radio", name="Head 1").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    wide.get_by_role("button", name="Back to the example").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("8")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_be_visible()


def test_an_emptied_cell_gives_one_line_that_says_where(wide):
    set_cell(wide, 2, 1, 2, "")
    expect(wide.get_by_text("WK of head 1, row 2, column 3 is empty or no number")).to_be_visible()
    expect(wide.get_by_text("as soon as every cell above holds one")).to_be_visible()
    expect(wide.get_by_test_id("stException")).to_have_count(0)
    set_cell(wide, 2, 1, 2, "0")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_be_visible()


def test_the_model_of_2017_runs_when_asked_to(wide):
    wide.get_by_role("button", name="Run a forward pass").click()
    expect(wide.get_by_text("The logits are 10 × 37,000")).to_be_visible()
