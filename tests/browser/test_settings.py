"""An experiment is run by keyboard and taken away, and its settings are used."""

import csv
import io
import json
import re

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import drawn, open_tab, settled, visit
from tests.browser.journeys import answer_few
from tests.browser.test_keyboard import press, tab_to

DOCUMENT = "inside_the_pipeline.md"  # the shortest


def downloaded(page, name):
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name=name).last.click()
    return download.value.path().read_text()


def test_a_grid_is_run_by_keyboard_and_taken_away_and_its_settings_used(tab, app):
    page = visit(tab, app, "settings", search=DOCUMENT)
    answer_few(page)  # as it takes less time
    for label, n_taken_out in (("Chunk sizes (tokens)", 2), ("Poolings", 1)):
        tab_to(page, page.get_by_role("combobox", name=label))
        for _ in range(n_taken_out):
            page.keyboard.press("Backspace")
            drawn(page)
    expect(page.get_by_test_id("stMetric").filter(has_text="Configurations")).to_contain_text("3")
    press(page, page.get_by_role("button", name="Run the grid"))
    expect(page.get_by_role("heading", name="Take it away")).to_be_visible()
    settled(page)

    assert len(list(csv.DictReader(io.StringIO(downloaded(page, "CSV"))))) == 3
    content = json.loads(downloaded(page, "JSON"))
    assert len(content["values"][0]["mrr"]) == len(content["questions"]) == 34
    report = downloaded(page, "Report (HTML)")
    assert report.partition("Every configuration</h2>")[2].count("<tr>") == 4
    assert "plotly.js v" in report
    assert downloaded(page, "Questions").count("\n") == 34

    advice = page.locator(".st-key-experiment-advice")
    tab_to(page, page.get_by_role("combobox", name="Configuration"))
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(advice).to_contain_text("Selected:")
    expect(page.get_by_text(re.compile(r"^Won \(\d+\)"))).to_be_visible()
    settled(page)
    assert_usable(page)
    page.get_by_test_id("stMain").get_by_role("button", name="Export as code").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Haystack", exact=True).click()
    expect(dialog.get_by_text("with Haystack")).to_be_visible()
    settled(page)
    assert_usable(page)
    assert "from haystack import" in downloaded(page, "Download the script")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    settled(page)
    press(page, advice.get_by_role("button", name="Apply"))
    expect(advice).to_contain_text("In use now.")
    open_tab(page, "Runs")
    expect(page.get_by_text("3 of 3")).to_be_visible()
