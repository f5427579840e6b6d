"""An app whose encoder is the user's own, a small one, on a machine without sentence-transformers."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import (
    NARROW,
    assert_fits,
    figures,
    fill_area,
    fill_in,
    open_tab,
    own_tab,
    serve,
    settled,
    visit,
    window,
)
from tests.browser.test_chunk import TABS
from tests.browser.test_official_model import compare
from tests.engine.models.test_encoder_folders import save_model

FAULTS = (
    "Skip the scaling by √d_head",
    "Drop the residual",
    "Forget the position embedding",
    "Layer norm before instead of after",
    "Average over the padding",
)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    save_model(folder)
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['sentence_transformers'] = None\n")
    environment = {"PYTHONPATH": str(folder), "GLASSBOX_ENCODER": str(folder), "GLASSBOX_DECODER": "own.gguf"}
    with serve(folder / "log.txt", **environment) as url:
        yield url, folder.name


def test_it_is_opened_at_the_address_visited_first_in_its_frame(own, browser):
    url, name = own
    with own_tab(browser) as page:
        visit(page, url, "chunk")  # nobody has opened the app's own address before
        expect(page.get_by_test_id("stTopNavLink").filter(has_text="Ask your documents")).to_be_visible()
        expect(page.get_by_role("heading", name="Inside the model", level=1)).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_text(f"Encoder · {name}", exact=True)).to_be_visible()
        expect(page.get_by_text("Decoder · own.gguf", exact=True)).to_be_visible()
        fill_area(page, "Text", "abc def")
        expect(page.get_by_text("shape 3 × 8 × 8")).to_be_visible()
        for tab, n_figures in zip(TABS, (1, 1, 2, 1), strict=True):
            open_tab(page, tab)
            expect(figures(page)).to_have_count(n_figures)
        page.goto(f"{url}/truncation")
        page.get_by_text("One whole text", exact=True).click()
        expect(page.get_by_text("Limit 20", exact=True)).to_be_visible()


def fault(page, name):
    return page.get_by_test_id("stButtonGroup").get_by_role("button", name=name, exact=True)


def switch(page, name):
    fault(page, name).click()
    settled(page)


def test_faults_are_drawn_alone_and_together_beside_the_intact_model_and_can_be_mended(own, browser):
    with window(browser, NARROW) as context:
        narrow = visit(context.new_page(), own[0], "broken")
        expect(narrow.get_by_text("The model is intact. Choose a fault to break it.")).to_be_visible()
        for name in FAULTS:
            expect(fault(narrow, name)).to_be_visible()
        expect(narrow.get_by_role("heading", name="What is left of the search")).to_have_count(0)
        fill_in(narrow, "Question", "abc def")
        switch(narrow, "Forget the position embedding")
        expect(narrow.get_by_text("Left of the top 10")).to_be_visible()
        for title in ("Intact: the first 5", "Broken: the first 5"):
            expect(narrow.get_by_text(title)).to_be_visible()
        expect(
            narrow.get_by_test_id("stMain").get_by_role("listitem").filter(has_text="score")
        ).to_have_count(10)
        place = re.compile(r"^1\. .*\.md · score \d\.\d{3} · now \d+")
        expect(narrow.get_by_text(place).first).to_be_visible()
        expect(narrow.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
        assert_fits(narrow)
        assert_usable(narrow)
        switch(narrow, "Drop the residual")
        expect(narrow.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(3)
        expect(narrow.get_by_text("Left of the top 10")).to_be_visible()
        for name in ("Drop the residual", "Forget the position embedding"):
            switch(narrow, name)
        expect(narrow.get_by_text("The model is intact. Choose a fault to break it.")).to_be_visible()


def test_without_sentence_transformers_the_page_says_what_to_install(own, browser):
    with own_tab(browser) as page:
        visit(page, own[0], "verify")
        compare(page)
        expect(page.get_by_text(re.compile("the official model needs sentence-transformers"))).to_be_visible()
