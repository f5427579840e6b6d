import re

import numpy as np
import pytest
from playwright.sync_api import expect

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.models.encoder import Encoder
from engine.retrieval.index import build_index
from engine.retrieval.vector_files import save_npz
from tests.browser.conftest import (
    assert_fits,
    figures,
    fill_area,
    fill_in,
    go_to,
    open_section,
    open_tab,
    settled,
)

ADDRESS = ""
KEEPER = "The keeper of the lighthouse kept bees and sold their honey in Vardholm."
TEXT = (
    f"{KEEPER} The lamp burned whale oil until 1931, and ran on electricity ever after that. "
    "Knead the dough for ten minutes and let it rest in a warm place overnight. "
    "The ferry to the island leaves every morning at seven, except on Sundays and in storms."
)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    encoder = Encoder.load()
    index = build_index(
        split(Document("light.md", TEXT), encoder.tokenizer, Splitting("sentences", 24)), encoder
    )
    path = tmp_path_factory.mktemp("vectors") / "light.npz"
    save_npz(path, index, encoder.tokenizer.ids_batch(list(index.texts)))
    return path


def bring(page, path):
    """Bring a file of vectors; the section of chunks is open."""
    page.get_by_role("button", name="Upload vectors").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(path)
    expect(dialog.get_by_text(path.name)).to_be_visible()
    settled(page)
    dialog.get_by_role("button", name="Search these").click()
    return dialog


def test_vectors_brought_along_are_asked_mapped_and_diagnosed(wide, vectors, tmp_path):
    with np.load(vectors) as found:
        np.savez(tmp_path / "half.npz", **{**found, "vectors": found["vectors"][:1]})
    open_section(wide, "Chunks")
    dialog = bring(wide, tmp_path / "half.npz")
    expect(dialog.get_by_text("not as many of each column")).to_be_visible()
    wide.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    bring(wide, vectors)
    expect(dialog).to_have_count(0)
    sidebar = wide.get_by_test_id("stSidebar")
    expect(sidebar.get_by_text("light.npz: 4 chunks and their vectors of 384 numbers")).to_be_visible()
    fill_in(wide, "Your question", "Who kept bees?")
    expect(wide.get_by_text(KEEPER).first).to_be_visible()
    settled(wide)

    go_to(wide, "Documents and chunks")
    open_tab(wide, "Chunks")
    expect(wide.locator("mark").first).to_contain_text("The keeper of the lighthouse")
    open_tab(wide, "Map")
    fill_in(wide, "Question (optional)", "Who kept bees?")
    expect(figures(wide)).to_have_count(1)
    open_tab(wide, "Health")
    expect(wide.get_by_text("How this is measured")).to_be_visible()
    assert_fits(wide)
    open_tab(wide, "Never read")
    expect(wide.get_by_text("light.npz brings only its chunks and one vector for each")).to_be_visible()

    go_to(wide, "Why wasn't it found?")
    fill_in(wide, "Your question", "Where was honey sold?")
    fill_area(wide, "The passage", KEEPER)
    expect(wide.get_by_text(re.compile("It was found: it ranks 1"))).to_be_visible()
    expect(wide.get_by_text("these chunks and vectors were uploaded")).to_be_visible()
    assert_fits(wide)

    go_to(wide, "Late chunking")
    expect(wide.get_by_text("This page reads the vectors of tokens inside a model")).to_be_visible()
