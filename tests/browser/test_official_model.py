import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import assert_fits, visit
from tests.browser.test_chunk import click, more_option

ADDRESS = "verify"


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    return visit(kept_tab, app, ADDRESS)


def compare(page):
    page.get_by_role("button", name="Compare with the official model").click()


def children(process):
    """The numbers of a process's children."""
    lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return set(" ".join(lists).split())


def test_every_stage_is_compared_with_the_official_model_outside_the_apps_process(narrow, process):
    before = children(process)
    compare(narrow)
    expect(narrow.get_by_text("All 79 stages agree with the official model")).to_be_visible()
    expect(narrow.get_by_text("79 of 79")).to_be_visible()
    expect(narrow.locator(".js-plotly-plot .heatmaplayer image")).to_have_count(1)
    expect(narrow.get_by_text(re.compile("for layer norms 1.9e-6"))).to_be_visible()
    assert_usable(narrow)
    assert_fits(narrow)
    assert "libtorch" not in Path(f"/proc/{process}/maps").read_text()
    assert children(process) <= before
    for child in children(process):
        assert "libtorch" not in Path(f"/proc/{child}/maps").read_text()


def test_a_blank_text_asks_for_one(wide):
    wide.get_by_role("textbox", name="Text to compare on").fill("  ")
    compare(wide)
    expect(wide.get_by_text("Type a text first.")).to_be_visible()


def test_any_text_agrees_in_float64(wide):
    wide.get_by_role("textbox", name="Text to compare on").fill("<b>Ärger</b> 한국어 🙂 **x** " * 80)
    wide.get_by_test_id("stButtonGroup").get_by_text("float64").click()
    compare(wide)
    expect(wide.get_by_text("All 79 stages agree with the official model")).to_be_visible()
    expect(wide.get_by_text("256 tokens · float64")).to_be_visible()


def test_every_stage_inside_the_model_shows_its_equation_shape_and_difference(tab, app):
    wide = visit(tab, app, "chunk")
    more_option(wide, "Compare every stage with the official model")
    expect(wide.get_by_text("same ids")).to_be_visible()
    for label, tensors in (
        ("2 Embeddings →", ("token", "position", "segment", "sum", "output")),
        ("3 Attention →", ("query", "scores", "context", "norm")),
        ("4 Feed-forward →", ("hidden", "activation", "layer output")),
        ("5 Pooling →", ("mean", "[CLS]", "BERT pooler", "max")),
        ("6 Vector", ("normalized",)),
    ):
        click(wide, label)
        for tensor in tensors:
            if tensor != "normalized":  # the only one of its stage
                click(wide, tensor)
            expect(wide.locator(".katex").first).to_be_visible()
            expect(wide.get_by_text(re.compile(r"shape \d+"))).to_be_visible()
            if tensor in ("output", "context", "hidden", "mean", "BERT pooler", "normalized", "norm"):
                shown = wide.get_by_text(
                    re.compile(r"difference from the official model [\d.e-]+")
                ).inner_text()
                assert float(re.search(r"model ([\d.e-]+)", shown)[1]) < 1e-4
