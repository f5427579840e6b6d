"""Documents: chunks are selected on their map, and a workspace brings documents and settings back."""

import re

from playwright.sync_api import expect

from engine.documents.document import Document
from engine.storage.workspace import Workspace, export_workspace
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import open_tab, press_slider, settled, visit

ADDRESS = "documents"


def test_chunks_are_painted_anew_as_a_slider_moves_and_selected_on_their_map(tab, app):
    page = visit(tab, app, ADDRESS, search="inside_the_pipeline.md")
    open_tab(page, "Map")
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    expect(plot).to_be_visible()
    settled(page)
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8, steps=8)
    page.mouse.up()
    expect(page.get_by_text(re.compile(r"selected")).first).to_be_visible()
    open_tab(page, "Chunks")
    expect(page.locator("sup").first).to_have_text("1")
    before = page.locator("sup").count()
    press_slider(page, "Chunk size (tokens)", "Home")
    expect(page.locator("sup").nth(before)).to_be_visible()
    press_slider(page, "Chunk size (tokens)", "End")
    expect(page.locator("del").first).to_be_visible()  # 512 tokens, of which 256 are read


def test_a_workspace_brings_documents_and_settings_back(wide, tmp_path):
    path, wrong = tmp_path / "mine.glassbox", tmp_path / "wrong.glassbox"
    document = Document("tide.md", "# Tides\n\nThe tide turns twice a day.")
    path.write_bytes(export_workspace(Workspace((document,), {"widgets": {"chunk_tokens": 16}})))
    wrong.write_bytes(b"SQLite format 3\0 not really")
    wide.get_by_role("button", name="Save or open").click()
    dialog = wide.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Download the workspace")).to_be_visible()
    settled(wide)
    dialog.locator("input[type=file]").set_input_files(wrong)
    expect(dialog.get_by_test_id("stAlert").get_by_text(re.compile("wrong.glassbox"))).to_be_visible()
    assert_usable(wide)
    dialog.locator("input[type=file]").set_input_files(path)
    expect(wide.get_by_text("Opened: 1 file of your own, and the settings.")).to_be_visible()
    expect(wide.get_by_role("dialog")).to_have_count(0)
    sidebar = wide.locator("[data-testid=stSidebar]")
    expect(sidebar.get_by_text("tide.md", exact=True).first).to_be_visible()
    expect(sidebar.get_by_role("slider", name="Chunk size (tokens)")).to_have_value("16")
