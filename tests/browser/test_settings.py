import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import (
    assert_fits,
    fill_in,
    open_tab,
    press_until,
    settled,
    visit,
)

DOCUMENT = "inside_the_pipeline.md"  # the shortest


def open_settings(page, app):
    """Open the page with the shortest document alone."""
    visit(page, app, "settings", search=DOCUMENT)
    expect(page.get_by_test_id("stMetric").filter(has_text="Questions")).to_contain_text("34")
    return page


@pytest.fixture
def wide(tab, app):
    return open_settings(tab, app)


@pytest.fixture(scope="module")
def kept(kept_tab, app):
    return open_settings(kept_tab, app)


def take_out(page, *values):
    for value in values:
        page.get_by_role("button", name=re.compile(f"^Remove {value}|{value}, press")).click()
        settled(page)


def stop_button(page):
    return page.get_by_test_id("stButton").get_by_role("button", name="Stop")


def run(page, n_cells):
    """Run the grid to its end."""
    expect(page.get_by_test_id("stMetric").filter(has_text="Cells")).to_contain_text(str(n_cells))
    page.get_by_role("button", name="Run the grid").click()
    expect(page.get_by_role("tab", name="Results")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("heading", name="Take it away")).to_be_visible()
    expect(stop_button(page)).to_have_count(0)
    settled(page)
    expect(page.get_by_role("tab", name="Results")).to_have_attribute("aria-selected", "true")


def two_cells(page):
    """Leave the app's own settings and one size more."""
    take_out(page, "192", "256", re.escape("mean, rare words more (IDF)"), re.escape("dense (cosine)"))


def click_best(page):
    """Click the last cell of the map, that of the largest size."""
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_visible()
    settled(page)
    box = plot.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.95)


def test_a_small_grid_runs_to_the_end_and_fits_the_screen(narrow_tab, app):
    page = open_settings(narrow_tab, app)
    two_cells(page)
    run(page, 2)
    expect(page.get_by_text(re.compile("in use.* of 34 questions|of 34 questions.* in use"))).to_be_visible()
    expect(page.get_by_text(re.compile("^The index takes "))).to_be_visible()
    expect(page.get_by_text("Quality against cost")).to_be_visible()
    for name in ("Results", "Runs", "Grid"):
        open_tab(page, name)
        assert_fits(page)


def test_a_run_is_stopped_gone_on_with_taken_away_and_its_settings_used(wide):
    wide.get_by_text("Chunk sizes", exact=True).click()
    expect(wide.get_by_test_id("stMultiSelect").get_by_text("32", exact=True)).to_be_visible()
    settled(wide)
    wide.get_by_role("button", name="Run the grid").click()
    expect(wide.get_by_text(re.compile("[1-9] of 12 cells, "))).to_be_visible()
    stop_button(wide).click()
    expect(wide.get_by_text(re.compile("^[1-9]+ of 12 cells are measured"))).to_be_visible()
    wide.get_by_role("button", name="Resume").click()
    expect(wide.get_by_text(re.compile("of 12 cells are measured"))).to_have_count(0)
    expect(stop_button(wide)).to_have_count(0)
    expect(wide.get_by_role("heading", name="Take it away")).to_be_visible()
    settled(wide)

    rows = list(csv.DictReader(io.StringIO(downloaded(wide, "CSV"))))
    assert len(rows) == 12
    assert len({tuple(row[key] for key in ("chunk_tokens", "overlap")) for row in rows}) == 12
    content = json.loads(downloaded(wide, "JSON"))
    assert len(content["rows"]) == 12
    assert len(content["values"][0]["mrr"]) == len(content["questions"]) == 34
    page = downloaded(wide, "Report (HTML)")
    assert page.count("<tr>") == 13
    assert "plotly.js v" in page
    assert downloaded(wide, "Questions").count("\n") == 34

    click_best(wide)
    expect(wide.get_by_text("Splitter Sentences · Chunk size 256")).to_be_visible()
    expect(wide.get_by_text(re.compile(r"^Won \(\d+\)"))).to_be_visible()
    settled(wide)
    assert_usable(wide)
    wide.get_by_role("button", name="Export as code").click()
    dialog = wide.get_by_role("dialog")
    dialog.get_by_text("Haystack", exact=True).click()
    expect(dialog.get_by_text("with Haystack")).to_be_visible()
    settled(wide)
    assert_usable(wide)
    script = downloaded(wide, "Download the script")
    assert "from haystack import" in script
    assert "CHUNK_TOKENS = 256" in script
    wide.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    settled(wide)
    wide.get_by_role("button", name="Apply").click()
    expect(wide.get_by_text("The app now has Splitter Sentences · Chunk size 256")).to_be_visible()
    wide.locator("[data-testid=stSidebar] summary", has_text="Chunks").click()
    expect(wide.get_by_role("slider", name="Chunk size (tokens)")).to_have_value("256")


def downloaded(page, name):
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name=name).click()
    return download.value.path().read_text()


def test_two_runs_are_compared_and_one_deleted(kept):
    two_cells(kept)
    run(kept, 2)
    open_tab(kept, "Grid")
    kept.get_by_role("button", name="More options").click()
    fill_in(kept, "Name of the run", "once more")
    run(kept, 2)
    open_tab(kept, "Runs")
    expect(kept.get_by_text(re.compile("^MRR of A is .* B − A is"))).to_be_visible()
    expect(kept.get_by_text(re.compile(r"^Alike \(\d+\)"))).to_be_visible()
    assert_usable(kept)
    kept.get_by_text("Delete a run").click()
    kept.get_by_role("button", name="Delete it").click()
    settled(kept)
    press_until(kept.get_by_role("combobox", name="Run A"), kept.get_by_role("option"))
    expect(kept.get_by_role("option")).to_have_count(1)
    kept.keyboard.press("Escape")


def test_a_large_grid_has_to_be_meant(kept):
    open_tab(kept, "Grid")
    kept.get_by_text("Every pooling", exact=True).click()
    settled(kept)
    for label in ("Chunk sizes (tokens)", "Retrievers"):
        kept.get_by_role("combobox", name=label).click()
        kept.get_by_role("option", name="Select all").click()
        kept.keyboard.press("Escape")
        settled(kept)
    expect(kept.get_by_role("button", name="Run the grid")).to_be_disabled()
    kept.get_by_text(re.compile(r"^Run all \d+ cells, which takes about")).click()
    expect(kept.get_by_role("button", name="Run the grid")).to_be_enabled()
