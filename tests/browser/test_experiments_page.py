import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import press_until, settled

expect.set_options(timeout=60_000)

OTHERS = ("chatlogs.md", "state_of_the_union.md", "wikitexts.md")


def open_experiments(page, app):
    """Open the page with the shortest document alone."""
    page.goto(f"{app}/experiments")
    expect(page.get_by_role("heading", name="Experiments", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Run the grid")).to_be_visible()
    settled(page)
    is_narrow = page.viewport_size["width"] < 500
    if is_narrow:
        page.get_by_test_id("stExpandSidebarButton").click()
    for other in OTHERS:
        page.get_by_role("button", name=re.compile(f"^Remove {other}|{other}, press")).click()
        settled(page)
    if is_narrow:
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Questions")).to_contain_text("34")
    return page


@pytest.fixture
def anywhere(any_tab, app):
    return open_experiments(any_tab, app)


@pytest.fixture
def wide(tab, app):
    return open_experiments(tab, app)


def take_out(page, *values):
    for value in values:
        page.get_by_role("button", name=re.compile(f"^Remove {value}|{value}, press")).click()
        settled(page)


def open_tab(page, name):
    settled(page)
    page.get_by_role("tab", name=name, exact=True).click()
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
    take_out(page, "128", "256", re.escape("mean, rare words more (IDF)"), re.escape("hybrid (ranks fused)"))


def click_best(page):
    """Click the last cell of the map, that of the largest size."""
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_visible()
    settled(page)
    box = plot.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.95)


def test_a_small_grid_runs_to_the_end_and_fits_the_screen(anywhere):
    two_cells(anywhere)
    run(anywhere, 2)
    expect(anywhere.get_by_text(re.compile("^Highest MRR: 0\\.[1-9]"))).to_be_visible()
    expect(anywhere.get_by_text("Quality against cost")).to_be_visible()
    for name in ("Results", "Runs", "Grid"):
        open_tab(anywhere, name)
        width = anywhere.evaluate("document.documentElement.scrollWidth")
        assert width <= anywhere.viewport_size["width"], name


def test_a_run_is_stopped_gone_on_with_taken_away_and_its_settings_used(wide):
    wide.get_by_text("Chunk sizes", exact=True).click()
    expect(wide.get_by_placeholder("6 sizes × 2 overlaps")).to_be_visible()
    settled(wide)
    wide.get_by_role("button", name="Run the grid").click()
    expect(wide.get_by_text(re.compile("[1-9] of 12 cells, "))).to_be_visible()
    stop_button(wide).click()
    expect(wide.get_by_text(re.compile("^[1-9]+ of 12 cells are measured"))).to_be_visible()
    wide.get_by_role("button", name="Go on").click()
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
    expect(wide.get_by_text("Splitter Fixed size · Chunk size 256")).to_be_visible()
    expect(wide.get_by_text(re.compile(r"^Won \(\d+\)"))).to_be_visible()
    wide.get_by_role("button", name="Use these settings").click()
    expect(wide.get_by_text("The app now has Splitter Fixed size · Chunk size 256")).to_be_visible()
    wide.locator("[data-testid=stSidebar] summary", has_text="Chunks").click()
    expect(wide.get_by_role("slider", name="Chunk size (tokens)")).to_have_value("256")


def downloaded(page, name):
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name=name).click()
    return download.value.path().read_text()


def test_two_runs_are_compared_and_one_deleted(wide):
    two_cells(wide)
    run(wide, 2)
    open_tab(wide, "Grid")
    box = wide.get_by_role("textbox", name="Name of the run")
    box.fill("once more")
    box.press("Enter")
    settled(wide)
    run(wide, 2)
    open_tab(wide, "Runs")
    expect(wide.get_by_text(re.compile("^MRR of A is .* B − A is"))).to_be_visible()
    expect(wide.get_by_text(re.compile(r"^Alike \(\d+\)"))).to_be_visible()
    wide.get_by_text("Delete a run").click()
    wide.get_by_role("button", name="Delete it").click()
    settled(wide)
    press_until(wide.get_by_role("combobox", name="Run A"), wide.get_by_role("option"))
    expect(wide.get_by_role("option")).to_have_count(1)


def test_a_large_grid_has_to_be_meant(wide):
    wide.get_by_text("Every pooling", exact=True).click()
    settled(wide)
    for label in ("Chunk sizes (tokens)", "Retrievers"):
        wide.get_by_role("combobox", name=label).click()
        wide.get_by_role("option", name="Select all").click()
        wide.keyboard.press("Escape")
        settled(wide)
    expect(wide.get_by_role("button", name="Run the grid")).to_be_disabled()
    wide.get_by_text(re.compile(r"^Run all \d+ cells, which takes about")).click()
    expect(wide.get_by_role("button", name="Run the grid")).to_be_enabled()
