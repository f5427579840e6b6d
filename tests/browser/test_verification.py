import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WIDE, serve, settled

expect.set_options(timeout=90_000)
QUESTION = "What is the price of insulin for seniors on Medicare?"
SWITCHES = (
    "Skip the scaling by √d_head",
    "Drop the residual",
    "Forget the position embedding",
    "Layer norm before instead of after",
    "Average over the padding",
)


def open_verification(page, address):
    page.goto(f"{address}/verification")
    expect(page.get_by_role("heading", name="Verify and break", level=1)).to_be_visible()
    expect(page.get_by_role("textbox", name="Text to compare on")).to_be_visible()
    settled(page)
    return page


@pytest.fixture
def anywhere(any_tab, app):
    return open_verification(any_tab, app)


@pytest.fixture
def wide(tab, app):
    return open_verification(tab, app)


@pytest.fixture(scope="module")
def untouched(kept_tab, app):
    return open_verification(kept_tab, app)


def compare(page):
    page.get_by_role("button", name="Compare with the official model").click()


def switch(page, name):
    page.get_by_test_id("stCheckbox").filter(has_text=name).locator("label").click()
    settled(page)


def fits(page):
    settled(page)
    return page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_nothing_is_loaded_before_it_is_asked_for(untouched):
    expect(untouched.get_by_text("Nothing is loaded yet")).to_be_visible()
    assert untouched.locator(".js-plotly-plot").count() == 0


def test_every_stage_is_compared_with_the_official_model(anywhere):
    compare(anywhere)
    expect(anywhere.get_by_text("All 79 stages agree with the official model")).to_be_visible()
    expect(anywhere.get_by_text("79 of 79")).to_be_visible()
    expect(anywhere.locator(".js-plotly-plot .heatmaplayer image")).to_have_count(1)
    expect(anywhere.get_by_text(re.compile("for layer norms 1.9e-6"))).to_be_visible()
    assert fits(anywhere)


def test_any_text_agrees_in_float64(wide):
    wide.get_by_role("textbox", name="Text to compare on").fill("<b>Ärger</b> 한국어 🙂 **x** " * 80)
    wide.get_by_test_id("stButtonGroup").get_by_text("float64").click()
    compare(wide)
    expect(wide.get_by_text("All 79 stages agree with the official model")).to_be_visible()
    expect(wide.get_by_text("256 tokens · float64")).to_be_visible()


def test_a_blank_text_asks_for_one(wide):
    wide.get_by_role("textbox", name="Text to compare on").fill("  ")
    compare(wide)
    expect(wide.get_by_text("Type a text first.")).to_be_visible()


def test_an_intact_model_is_where_breaking_begins(untouched):
    untouched.get_by_role("tab", name="Break it").click()
    expect(untouched.get_by_text("The model is intact. Turn on a switch to break it.")).to_be_visible()
    for name in SWITCHES:
        expect(untouched.get_by_test_id("stCheckbox").filter(has_text=name)).to_be_visible()
    expect(untouched.get_by_role("heading", name="What is left of the search")).to_have_count(0)


def test_a_broken_model_is_shown_beside_the_intact_one(anywhere):
    anywhere.get_by_role("tab", name="Break it").click()
    switch(anywhere, "Average over the padding")
    expect(anywhere.get_by_text("Left of the top 10")).to_be_visible()
    for title in ("Intact: the first 5", "Broken: the first 5"):
        expect(anywhere.get_by_text(title)).to_be_visible()
    expect(anywhere.get_by_role("listitem").filter(has_text="score")).to_have_count(10)
    expect(
        anywhere.get_by_text(re.compile(r"^1\. chatlogs\.md · score 0\.\d{3} · now \d+")).first
    ).to_be_visible()
    expect(anywhere.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    assert fits(anywhere)


def test_several_faults_are_drawn_alone_and_together_and_can_be_mended(wide):
    wide.get_by_role("tab", name="Break it").click()
    question = wide.get_by_role("textbox", name="Question")
    question.fill(QUESTION)
    question.press("Enter")
    switch(wide, "Forget the position embedding")
    expect(wide.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    switch(wide, "Drop the residual")
    expect(wide.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(3)
    expect(wide.get_by_text("Left of the top 10")).to_be_visible()
    for name in ("Drop the residual", "Forget the position embedding"):  # the first alone is embedded already
        switch(wide, name)
    expect(wide.get_by_text("The model is intact. Turn on a switch to break it.")).to_be_visible()


def test_without_sentence_transformers_the_page_says_what_to_install(browser, tmp_path, encoder):
    (tmp_path / "sentence_transformers.py").write_text("raise ImportError('not here')\n")
    log = tmp_path / "log.txt"
    with serve(log, PYTHONPATH=str(tmp_path)) as url:
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(90_000)
        open_verification(page, url)
        compare(page)
        expect(page.get_by_text(re.compile("the official model needs sentence-transformers"))).to_be_visible()
        page.get_by_role("tab", name="Break it").click()
        expect(page.get_by_text("The model is intact.")).to_be_visible()
        page.close()
    assert "Traceback" not in log.read_text()
