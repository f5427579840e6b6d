import io
import re
import zipfile

import pytest
from playwright.sync_api import expect

from engine.storage.workspace import import_workspace
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import (
    fill_in,
    open_tab,
    press_slider,
    search_only,
    settled,
    upload,
    visit,
)

ADDRESS = "documents"


@pytest.fixture(scope="module")
def sample(kept_tab, app):
    """The page of one sample, which tests share; the settings that they change are changed by those after."""
    return visit(kept_tab, app, ADDRESS, search="inside_the_pipeline.md")


@pytest.fixture(scope="module")
def own(wide_window, app):
    """The page for documents of one's own, which tests share."""
    with wide_window.new_page() as page:
        yield visit(page, app, ADDRESS)


def pick(page, label, option):
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()
    settled(page)


def open_work(page):
    """The dialog that saves and opens the session's work."""
    page.get_by_role("button", name="Save or open").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Download the workspace")).to_be_visible()
    settled(page)
    return dialog


def test_many_files_are_read_and_the_bad_ones_named(wide):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes/tide.md", "# Tides\n\nThe tide turns twice a day.")
        archive.writestr("../escape.txt", "never written")
        archive.writestr("picture.png", "no text")
    upload(
        wide,
        ("page.html", b"<title>Moon</title><script>alert(1)</script><h1>Moon</h1><p>It pulls the sea.</p>"),
        ("rows.csv", b"name,place\nAda,London\nGrace,New York\n"),
        ("broken.pdf", b"%PDF-1.4 nothing more"),
        ("empty.txt", b""),
        ("all.zip", packed.getvalue()),
    )
    for reason in ("broken.pdf", "empty.txt is empty", "escape.txt"):
        expect(
            wide.get_by_test_id("stAlert").get_by_text(re.compile(re.escape(reason))).first
        ).to_be_visible()
    expect(wide.get_by_text("Skipped 1 file of other formats")).to_be_visible()
    searched = wide.locator("[data-testid=stSidebar]")
    for name in ("page.html", "rows.csv", "all.zip"):
        expect(searched.get_by_text(name, exact=True).first).to_be_visible()
    open_tab(wide, "Chunks")
    pick(wide, "Document", "page.html")
    expect(wide.locator("mark")).to_contain_text(["It pulls the sea."])
    assert "alert" not in "".join(wide.locator("mark").all_text_contents())


def test_lost_text_is_counted_its_cost_shown_and_cured_in_one_click(wide):
    paragraph = "The harbour was quiet and the boats lay still in the morning light. " * 25
    upload(wide, ("long.txt", (paragraph + "Zanzibar exports cloves and vanilla.").encode()))
    search_only(wide)
    open_tab(wide, "Never read")
    wide.get_by_role("button", name="See what chunks of 512").click()
    expect(wide.get_by_role("heading", name="Remedies")).to_be_visible()
    fill_in(wide, "Question", "What does Zanzibar export?")
    expect(
        wide.get_by_text(re.compile(r"Of \d nearest passages?, the prompt holds \d whole"))
    ).to_be_visible()
    expect(wide.get_by_text("if its lost tail were read")).to_be_visible()
    assert_usable(wide)
    wide.get_by_role("button", name="Apply").first.click()
    expect(wide.get_by_text(re.compile("^Nothing is lost: the longest of"))).to_be_visible()


def test_a_file_that_is_no_workspace_changes_nothing(sample, tmp_path):
    path = tmp_path / "wrong.glassbox"
    path.write_bytes(b"SQLite format 3\0 not really")
    dialog = open_work(sample)
    dialog.locator("input[type=file]").set_input_files(path)
    expect(dialog.get_by_test_id("stAlert").get_by_text(re.compile("wrong.glassbox"))).to_be_visible()
    assert_usable(sample)
    dialog.get_by_role("button", name="Close").click()
    open_tab(sample, "Files")
    expect(sample.get_by_text("Add files in the sidebar")).to_be_visible()


def test_chunks_selected_on_the_map_are_listed(sample):
    open_tab(sample, "Map")
    plot = sample.locator(".js-plotly-plot .nsewdrag").first
    expect(plot).to_be_visible()
    settled(sample)
    box = plot.bounding_box()
    sample.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    sample.mouse.down()
    sample.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8, steps=8)
    sample.mouse.up()
    expect(sample.get_by_text(re.compile(r"selected")).first).to_be_visible()


def test_moving_a_slider_paints_the_chunks_anew(sample):
    open_tab(sample, "Chunks")
    pick(sample, "Document", "inside_the_pipeline.md")
    expect(sample.locator("sup").first).to_have_text("1")
    before = sample.locator("sup").count()
    press_slider(sample, "Chunk size (tokens)", "Home")
    expect(sample.locator("sup").nth(before)).to_be_visible()
    press_slider(sample, "Chunk size (tokens)", "End")
    expect(sample.locator("del").first).to_be_visible()  # 512 tokens, of which 256 are read
    press_slider(sample, "Token limit", "End")
    expect(sample.locator("del")).to_have_count(0)


def test_every_splitter_cuts(sample):
    open_tab(sample, "Chunks")
    pick(sample, "Document", "inside_the_pipeline.md")
    for splitter in ("Recursive", "Sentences", "Paragraphs", "Headings", "Semantic", "Sliding window"):
        pick(sample, "Splitter", splitter)
        expect(sample.get_by_text(re.compile(f"^{splitter}: "))).to_be_visible()
        expect(sample.locator("sup").nth(3)).to_be_visible()


def test_two_settings_stand_side_by_side_and_the_other_can_be_taken(sample):
    open_tab(sample, "Chunks")
    sample.get_by_text("Compare with other settings").click()
    expect(sample.get_by_text("Median tokens")).to_have_count(2)
    sample.get_by_role("button", name="Other settings", exact=True).click()
    thumb = sample.get_by_role("slider", name="Chunk size (tokens)").last
    thumb.focus()
    thumb.press("Home")
    settled(sample)
    expect(sample.get_by_text("16", exact=True).first).to_be_visible()
    sample.keyboard.press("Escape")
    sample.get_by_role("button", name="Use these everywhere").click()
    settled(sample)
    size = sample.locator("[data-testid=stSidebar]").get_by_role("slider", name="Chunk size (tokens)")
    expect(size).to_have_value("16")


def test_a_workspace_brings_documents_and_settings_back(own, app, wide_window, tmp_path):
    upload(own, ("tide.md", b"# Tides\n\nThe tide turns twice a day."))
    press_slider(own, "Chunk size (tokens)", "Home")
    dialog = open_work(own)
    with own.expect_download() as download:
        dialog.get_by_role("button", name="Download the workspace").click()
    settled(own)  # the download draws the dialog anew
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    path = tmp_path / "mine.glassbox"
    download.value.save_as(path)
    assert [d.name for d in import_workspace("mine", path.read_bytes()).documents] == ["tide.md"]

    other = visit(wide_window.new_page(), app, "documents")
    open_work(other).locator("input[type=file]").set_input_files(path)
    expect(other.get_by_text("Opened: 1 file of your own, and the settings.")).to_be_visible()
    expect(other.get_by_role("dialog")).to_have_count(0)
    sidebar = other.locator("[data-testid=stSidebar]")
    expect(sidebar.get_by_text("tide.md", exact=True).first).to_be_visible()
    size = sidebar.get_by_role("slider", name="Chunk size (tokens)")
    expect(size).to_have_value("16")
    other.close()


def test_a_pasted_text_is_one_more_document(own):
    own.get_by_text("Paste a text", exact=True).click()
    own.get_by_role("textbox", name="Text", exact=True).fill("# Sea\n\nThe sea is deep.")
    own.get_by_role("button", name="Add it").click()
    sidebar = own.locator("[data-testid=stSidebar]")
    expect(sidebar.get_by_text("pasted text.md", exact=True).first).to_be_visible()


def test_one_column_of_a_table_may_be_the_text(own):
    fill_in(own, "Column of CSV files", "place")
    upload(own, ("rows.csv", b"name,place\nAda,London\nGrace,New York\n"))
    search_only(own)
    open_tab(own, "Chunks")
    pick(own, "Document", "rows.csv#3")
    expect(own.locator("mark")).to_have_text(["New York"])
