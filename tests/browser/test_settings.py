"""An experiment is taken away, and its settings are used."""

import csv
import io
import json
import re

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import open_tab, press_until, settled, visit
from tests.browser.journeys import answer_few

DOCUMENT = "inside_the_pipeline.md"  # the shortest


def downloaded(page, name):
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name=name).last.click()
    return download.value.path().read_text()


def test_a_run_is_taken_away_and_its_settings_used(tab, app):
    page = visit(tab, app, "settings", search=DOCUMENT)
    page.get_by_text("Chunk sizes", exact=True).click()
    expect(page.get_by_test_id("stMultiSelect").get_by_text("32", exact=True)).to_be_visible()
    settled(page)
    answer_few(page)
    page.get_by_role("button", name="Run the grid").click()
    expect(page.get_by_role("heading", name="Take it away")).to_be_visible()
    settled(page)

    rows = list(csv.DictReader(io.StringIO(downloaded(page, "CSV"))))
    assert len({tuple(row[key] for key in ("chunk_tokens", "overlap")) for row in rows}) == len(rows) == 12
    content = json.loads(downloaded(page, "JSON"))
    assert len(content["values"][0]["mrr"]) == len(content["questions"]) == 34
    report = downloaded(page, "Report (HTML)")
    assert report.partition("Every configuration</h2>")[2].count("<tr>") == 13
    assert "plotly.js v" in report
    assert downloaded(page, "Questions").count("\n") == 34

    press_until(page.get_by_role("combobox", name="Configuration"), page.get_by_role("option").first)
    page.get_by_role("option").filter(has_text="Chunk size 256").first.click()
    expect(page.get_by_text("Splitter Sentences · Chunk size 256")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Won \(\d+\)"))).to_be_visible()
    settled(page)
    assert_usable(page)
    page.get_by_test_id("stMain").get_by_role("button", name="Export as code").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Haystack", exact=True).click()
    expect(dialog.get_by_text("with Haystack")).to_be_visible()
    settled(page)
    assert_usable(page)
    script = downloaded(page, "Download the script")
    assert "from haystack import" in script
    assert "CHUNK_TOKENS = 256" in script
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    settled(page)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The app now has Splitter Sentences · Chunk size 256")).to_be_visible()
    open_tab(page, "Runs")
    expect(page.get_by_text("12 of 12")).to_be_visible()
