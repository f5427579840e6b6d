import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WIDE, go_to, serve, settled
from tests.engine.test_encoder_folders import save_model

TABS = ("Pipeline", "Attention", "Across layers", "A token's way")

expect.set_options(timeout=60_000)


def open_inside(page, app):
    page.goto(f"{app}/attention")
    page.get_by_role("tab", name="Pipeline").wait_for()
    settled(page)
    return page


@pytest.fixture
def any_inside(any_tab, app):
    return open_inside(any_tab, app)


@pytest.fixture
def inside(tab, app):
    return open_inside(tab, app)


def click(page, text):
    page.get_by_text(text, exact=True).first.click()
    settled(page)


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    settled(page)


def type_text(page, text):
    box = page.get_by_role("textbox", name="Text")
    box.fill(text)
    box.press("Control+Enter")
    settled(page)


def take_chunk(page, n_tokens):
    click(page, "Take a chunk of the documents")
    size = page.get_by_role("spinbutton", name="Chunk size (tokens)")
    size.fill(str(n_tokens))
    size.press("Enter")
    settled(page)


def figures(page):
    return page.locator("[data-testid=stPlotlyChart]")


def test_every_view_of_a_short_text_is_drawn_and_fits_the_screen(any_inside):
    for name, n_figures in zip(TABS, (1, 3, 3, 1), strict=True):
        open_tab(any_inside, name)
        expect(figures(any_inside)).to_have_count(n_figures)
        expect(any_inside.locator("[data-testid=stAlert], [data-testid=stException]")).to_have_count(0)
        width = any_inside.evaluate("document.documentElement.scrollWidth")
        assert width <= any_inside.viewport_size["width"], name


def test_the_longest_text_is_drawn_whole_in_every_view(inside):
    click(inside, "512 · the rows of its position table")
    take_chunk(inside, 512)
    expect(
        inside.get_by_text(re.compile(r"^5\d\d tokens · every tensor of this pass: 2\d\d MB"))
    ).to_be_visible()
    for name, n_figures in zip(TABS, (1, 3, 3, 1), strict=True):
        open_tab(inside, name)
        expect(figures(inside)).to_have_count(n_figures)
        expect(inside.locator("[data-testid=stAlert], [data-testid=stException]")).to_have_count(0)


def test_every_stage_shows_its_equation_shape_and_difference(inside):
    click(inside, "Compare every stage with the official model")
    expect(inside.get_by_text("same ids")).to_be_visible(timeout=120_000)
    for label, tensors in (
        ("2 Embeddings →", ("token", "position", "segment", "sum", "output")),
        ("3 Attention →", ("query", "scores", "context", "norm")),
        ("4 Feed-forward →", ("hidden", "activation", "layer output")),
        ("5 Pooling →", ("mean", "cls", "pooler")),
        ("6 Vector", ("normalized",)),
    ):
        click(inside, label)
        for tensor in tensors:
            if tensor != "normalized":  # the only one of its stage
                click(inside, tensor)
            expect(inside.locator(".katex").first).to_be_visible()
            expect(inside.get_by_text(re.compile(r"shape \d+"))).to_be_visible()
            if tensor in ("output", "context", "hidden", "mean", "pooler", "normalized", "norm"):
                shown = inside.get_by_text(
                    re.compile(r"difference from the official model [\d.e-]+")
                ).inner_text()
                assert float(re.search(r"model ([\d.e-]+)", shown)[1]) < 1e-4


def test_tokens_are_shown_with_their_ids_and_how_they_were_cut(inside):
    type_text(inside, "Open-source LLMs rock.")
    click(inside, "1 Tokens →")
    chips = inside.locator("span[title^='token ']")
    expect(chips).to_have_count(9)
    expect(chips.nth(5)).to_have_text(re.compile("##ms"))
    expect(chips.nth(5)).to_have_attribute("title", "token 5, id 5244, characters 14–16")
    expect(inside.get_by_text("How the words were cut")).to_be_visible()


def test_a_figure_is_saved_as_picture_page_and_numbers(inside, tmp_path):
    open_tab(inside, "Attention")
    large = inside.locator(".st-key-figure-attention-layer0-head0")
    large.hover()
    with inside.expect_download() as download:
        large.locator("[data-title*=PNG], [data-title*=png]").first.click()
    assert download.value.suggested_filename == "attention-layer0-head0.png"
    download.value.save_as(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    inside.locator(".st-key-save-attention-layer0-head0 button").click()
    with inside.expect_download() as download:
        inside.get_by_role("button", name="Standalone HTML page").click()
    download.value.save_as(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert "raised" in page
    assert "Plotly.newPlot" in page
    assert '<script src="http' not in page
    with inside.expect_download() as download:
        inside.get_by_role("button", name="Numbers (.npz)").click()
    download.value.save_as(tmp_path / "figure.npz")
    with np.load(tmp_path / "figure.npz") as numbers:
        assert numbers["weights"].shape == (9, 9)
        np.testing.assert_allclose(numbers["weights"].sum(axis=-1), 1, atol=1e-5)


def test_special_tokens_can_be_switched_off(inside):
    open_tab(inside, "Attention")
    expect(inside.get_by_text("[SEP]").first).to_be_visible()
    click(inside, "Special tokens")
    expect(inside.locator("[data-testid=stPlotlyChart]").get_by_text("[SEP]")).to_have_count(0)
    open_tab(inside, "Across layers")
    expect(figures(inside)).to_have_count(3)


def test_choices_and_text_survive_other_tabs_and_pages(inside):
    click(inside, "512 · the rows of its position table")
    type_text(inside, "alpha beta gamma")
    click(inside, "4 Feed-forward →")
    open_tab(inside, "Attention")
    open_tab(inside, "Pipeline")
    expect(inside.get_by_text("shape 5 × 384")).to_be_visible()
    go_to(inside, "What is never read")
    go_to(inside, "Inside the model")
    expect(inside.get_by_role("textbox", name="Text")).to_have_value("alpha beta gamma")
    expect(inside.get_by_role("radio", name=re.compile("^512"))).to_be_checked()


def test_a_token_of_another_text_is_not_kept(inside):
    type_text(inside, "alpha beta gamma")
    open_tab(inside, "A token's way")
    type_text(inside, "red green blue")
    expect(inside.get_by_role("combobox", name="Token")).to_have_value("2 green")


def test_text_over_the_limit_is_said_to_be_cut(inside):
    type_text(inside, "word " * 400)
    expect(inside.get_by_text("Only the first 256 of 402 tokens are read")).to_be_visible()


def test_a_pair_has_two_segments(inside):
    click(inside, "Two texts as a pair")
    click(inside, "1 Tokens →")
    expect(inside.locator("span[title*='segment 1']").first).to_be_visible()


def test_the_decoder_is_open_too(inside):
    click(inside, "Decoder · SmolLM2-135M-Instruct")
    expect(inside.get_by_text("7 tokens · every tensor of this pass")).to_be_visible(timeout=90_000)
    type_text(inside, "The capital of France is")
    for name, n_figures in zip(TABS, (1, 3, 3, 1), strict=True):
        open_tab(inside, name)
        expect(figures(inside)).to_have_count(n_figures)
    open_tab(inside, "Attention")
    expect(inside.get_by_text("The empty half is the causal mask")).to_be_visible()
    open_tab(inside, "Pipeline")
    click(inside, "6 Next token")
    expect(figures(inside).get_by_text("␣Paris")).to_be_visible()


def test_markup_in_a_text_stays_text(inside):
    type_text(inside, "<img src=x onerror='document.title=1'> <b>bold</b>")
    for name in TABS:
        open_tab(inside, name)
    open_tab(inside, "Pipeline")
    click(inside, "1 Tokens →")
    assert inside.locator("[data-testid=stMain] img").count() == 0
    assert inside.title() == "Glassbox"


def test_what_cannot_be_shown_is_said(inside):
    type_text(inside, "   ")
    expect(inside.get_by_text("Type a text, or take a chunk")).to_be_visible()
    click(inside, "Two texts as a pair")
    first = inside.get_by_role("textbox", name="First text")
    first.fill("word " * 400)
    first.press("Control+Enter")
    expect(
        inside.get_by_text(re.compile(r"tokens together, over the limit of 256: shorten one"))
    ).to_be_visible()


def test_a_model_of_the_users_own_is_opened_at_the_address_visited_first_in_its_frame(browser, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    save_model(folder)
    with serve(tmp_path / "log.txt", GLASSBOX_ENCODER=str(folder)) as url:
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(60_000)
        open_inside(page, url)  # nobody has opened the app's own address before
        expect(page.get_by_role("heading", name="Inside the model")).to_be_visible()
        expect(page.get_by_role("link", name="Ask your documents")).to_be_visible()
        type_text(page, "abc def")
        expect(page.get_by_text("shape 3 × 8 × 8")).to_be_visible()
        for name, n_figures in zip(TABS, (1, 3, 3, 1), strict=True):
            open_tab(page, name)
            expect(figures(page)).to_have_count(n_figures)
        page.goto(f"{url}/truncation")
        expect(page.get_by_text("Limit 20", exact=True)).to_be_visible()
        page.close()
    assert "Traceback" not in (tmp_path / "log.txt").read_text()
