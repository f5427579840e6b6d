import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import (
    figures,
    fill_area,
    go_to,
    open_chapter,
    open_tab,
    settled,
    visit,
)
from ui.look_inside import PAIR, TYPED

TABS = ("Pipeline", "Attention", "Across layers", "A token's way")


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    """The page, opened once: each test sets what it looks at; those that leave other choices come last."""
    return visit(kept_tab, app, "chunk")


def click(page, text):
    page.get_by_text(text, exact=True).first.click()
    settled(page)


def more_option(page, text):
    page.get_by_role("button", name="More options").click()
    click(page, text)
    page.keyboard.press("Escape")


def test_tokens_are_shown_with_their_ids_and_how_they_were_cut(wide):
    fill_area(wide, "Text", "Open-source LLMs rock.")
    click(wide, "1 Tokens →")
    chips = wide.locator("span[title^='token ']")
    expect(chips).to_have_count(9)
    expect(chips.nth(5)).to_have_text(re.compile("##ms"))
    expect(chips.nth(5)).to_have_attribute("title", "token 5, id 5244, characters 14–16")
    expect(wide.get_by_text("How the words were cut")).to_be_visible()


def test_a_figure_is_saved_as_picture_page_and_numbers(wide, tmp_path):
    fill_area(wide, "Text", "The bank raised its interest rates.")
    open_tab(wide, "Attention")
    open_chapter(wide, "One head")
    large = wide.locator(".st-key-figure-attention-layer0-head0")
    large.hover()
    with wide.expect_download() as download:
        large.locator("[data-title*=PNG], [data-title*=png]").first.click()
    assert download.value.suggested_filename == "attention-layer0-head0.png"
    download.value.save_as(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    wide.locator(".st-key-save-attention-layer0-head0 button").click()
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Standalone HTML page").click()
    download.value.save_as(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert "raised" in page
    assert "Plotly.newPlot" in page
    assert '<script src="http' not in page
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Numbers (.npz)").click()
    download.value.save_as(tmp_path / "figure.npz")
    with np.load(tmp_path / "figure.npz") as numbers:
        assert numbers["weights"].shape == (9, 9)
        np.testing.assert_allclose(numbers["weights"].sum(axis=-1), 1, atol=1e-5)


def test_a_token_of_another_text_is_not_kept(wide):
    fill_area(wide, "Text", "alpha beta gamma")
    open_tab(wide, "A token's way")
    fill_area(wide, "Text", "red green blue")
    expect(wide.get_by_role("combobox", name="Token")).to_have_value("2 green")


def test_text_over_the_limit_is_said_to_be_cut(wide):
    fill_area(wide, "Text", "word " * 400)
    expect(wide.get_by_text("Only the first 256 of 402 tokens are read")).to_be_visible()


def test_markup_in_a_text_stays_text(wide):
    fill_area(wide, "Text", "<img src=x onerror='document.title=1'> <b>bold</b>")
    for name in TABS:
        open_tab(wide, name)
    open_tab(wide, "Pipeline")
    click(wide, "1 Tokens →")
    assert wide.locator("[data-testid=stMain] img").count() == 0
    assert wide.title().endswith("Glassbox")


def test_what_cannot_be_shown_is_said(wide):
    fill_area(wide, "Text", "   ")
    expect(wide.get_by_text("Type a text, or take a chunk")).to_be_visible()
    click(wide, PAIR)
    fill_area(wide, "First text", "word " * 400)
    expect(
        wide.get_by_text(re.compile(r"tokens together, over the limit of 256: shorten one"))
    ).to_be_visible()


def test_a_pair_has_two_segments(wide):
    click(wide, PAIR)
    fill_area(wide, "First text", "How do cats sleep?")
    open_tab(wide, "Pipeline")
    click(wide, "1 Tokens →")
    expect(wide.locator("span[title*='segment 1']").first).to_be_visible()


def test_the_longest_text_is_drawn_whole_in_every_view(wide):
    click(wide, TYPED)
    click(wide, "512 · the rows of its position table")
    fill_area(wide, "Text", "word " * 510)
    open_tab(wide, "Pipeline")
    click(wide, "3 Attention →")
    expect(
        wide.get_by_text(re.compile(r"^512 tokens.* · every tensor of this pass: 2\d\d MB"))
    ).to_be_visible()
    for name, n_figures in zip(TABS, (1, 1, 2, 1), strict=True):
        open_tab(wide, name)
        expect(figures(wide)).to_have_count(n_figures)
        expect(wide.locator("[data-testid=stAlert], [data-testid=stException]")).to_have_count(0)


def test_choices_and_text_survive_other_tabs_and_pages(wide):
    click(wide, "512 · the rows of its position table")
    fill_area(wide, "Text", "alpha beta gamma")
    open_tab(wide, "Pipeline")
    click(wide, "4 Feed-forward →")
    open_tab(wide, "Attention")
    open_tab(wide, "Pipeline")
    expect(wide.get_by_text("shape 5 × 384")).to_be_visible()
    go_to(wide, "Ask your documents")
    go_to(wide, "Inside the model")
    expect(wide.get_by_role("textbox", name="Text")).to_have_value("alpha beta gamma")
    expect(wide.get_by_role("radio", name=re.compile("^512"))).to_be_checked()


def test_the_decoder_is_open_too(wide):
    click(wide, "Decoder · SmolLM2-135M-Instruct")
    fill_area(wide, "Text", "The capital of France is")
    expect(wide.get_by_text("5 tokens · every tensor of this pass")).to_be_visible()
    for name, n_figures in zip(TABS, (1, 1, 2, 1), strict=True):
        open_tab(wide, name)
        expect(figures(wide)).to_have_count(n_figures)
    open_tab(wide, "Attention")
    open_chapter(wide, "One head")
    expect(wide.get_by_text("The empty half is the causal mask")).to_be_visible()
    open_tab(wide, "Pipeline")
    click(wide, "6 Next token")
    expect(figures(wide).get_by_text("␣Paris")).to_be_visible()


def test_special_tokens_can_be_switched_off(wide):
    click(wide, "Encoder · all-MiniLM-L6-v2")
    open_tab(wide, "Attention")
    open_chapter(wide, "One head")
    expect(wide.get_by_test_id("stPlotlyChart").get_by_text("[SEP]").first).to_be_visible()
    more_option(wide, "Special tokens")
    expect(wide.locator("[data-testid=stPlotlyChart]").get_by_text("[SEP]")).to_have_count(0)
    open_tab(wide, "Across layers")
    expect(figures(wide)).to_have_count(2)
    open_chapter(wide, "Rollout")
    expect(figures(wide)).to_have_count(1)
