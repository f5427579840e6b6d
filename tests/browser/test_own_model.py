"""An app whose encoder is the user's own, a small one, on a machine without sentence-transformers."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fill_area, serve, visit
from tests.engine.models.test_encoder_folders import save_model


@pytest.mark.nightly
def test_it_is_opened_at_the_address_visited_first_in_its_frame(wide_window, tmp_path):
    save_model(tmp_path)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['sentence_transformers'] = None\n")
    environment = {"PYTHONPATH": str(tmp_path), "GLASSBOX_ENCODER": str(tmp_path)}
    environment["GLASSBOX_DECODER"] = "own.gguf"
    with serve(tmp_path / "log.txt", **environment) as url, wide_window.new_page() as page:
        visit(page, url, "chunk")  # nobody has opened the app's own address before
        expect(page.get_by_test_id("stTopNavLink").filter(has_text="Ask your documents")).to_be_visible()
        expect(page.get_by_role("heading", name="Inside the model", level=1)).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_text(f"Encoder · {tmp_path.name}", exact=True)).to_be_visible()
        expect(page.get_by_text("Decoder · own.gguf", exact=True)).to_be_visible()
        fill_area(page, "Text", "abc def")
        expect(page.get_by_text("shape 3 × 8 × 8")).to_be_visible()
        visit(page, url, "verify")
        page.get_by_role("button", name="Compare with the official model").click()
        expect(page.get_by_text(re.compile("the official model needs sentence-transformers"))).to_be_visible()
