"""Inside the model: a figure is saved, and every stage compared with the official model."""

import re
from csv import DictReader
from pathlib import Path

import numpy as np
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import fill_area, go_to, open_chapter, open_tab, settled, visit

ADDRESS = "chunk"


def children(process):
    """The numbers of a process's children."""
    lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return set(" ".join(lists).split())


def test_a_figure_is_saved_as_picture_page_and_numbers_and_its_text_survives_other_pages(wide):
    fill_area(wide, "Text", "The bank raised its interest rates.")
    open_tab(wide, "Attention")
    open_chapter(wide, "One head")
    large = wide.locator(".st-key-figure-attention-layer0-head0")
    large.hover()
    with wide.expect_download() as download:
        large.locator("[data-title*=PNG], [data-title*=png]").first.click()
    assert download.value.suggested_filename == "attention-layer0-head0.png"
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    wide.locator(".st-key-save-attention-layer0-head0 button").click()
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Standalone HTML page").click()
    page = download.value.path().read_text(encoding="utf-8")
    assert "raised" in page
    assert "Plotly.newPlot" in page
    assert '<script src="http' not in page
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Numbers as a table").click()
    shares = [float(row["value"]) for row in DictReader(download.value.path().open(encoding="utf-8"))]
    np.testing.assert_allclose(np.reshape(shares, (9, 9)).sum(axis=-1), np.ones(9), atol=1e-5)
    wide.keyboard.press("Escape")
    go_to(wide, "Ask your documents")
    go_to(wide, "Inside the model")
    expect(wide.get_by_role("textbox", name="Text")).to_have_value("The bank raised its interest rates.")


def test_every_stage_is_compared_with_the_official_model_outside_the_apps_process(narrow_tab, app, process):
    narrow, before = visit(narrow_tab, app, "verify"), children(process)
    narrow.get_by_role("button", name="Compare with the official model").click()
    expect(narrow.get_by_text("All 78 stages agree with the official model")).to_be_visible()
    expect(narrow.locator(".js-plotly-plot .heatmaplayer image")).to_have_count(1)
    expect(narrow.get_by_text(re.compile("for layer norms 1.9e-6"))).to_be_visible()
    assert_usable(narrow)
    assert children(process) <= before
    for number in (process, *children(process)):
        assert "libtorch" not in Path(f"/proc/{number}/maps").read_text()
    settled(narrow)
