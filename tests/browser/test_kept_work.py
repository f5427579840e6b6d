"""What a user has done is there again after a reload, on a machine of their own."""

from playwright.sync_api import expect

from tests.browser.conftest import (
    TITLES,
    go_to,
    own_tab,
    press_slider,
    serve,
    settled,
    upload,
    visit,
)
from ui.server_settings import WORKSPACES

OWN = "harbour.txt"
TEXT = b"The harbour of Ystad opens at six in the morning. The ferry to Bornholm leaves at noon. " * 20
QUESTIONS = (
    b'{"question": "When does the harbour open?", "corpus_id": "harbour", "references": '
    b'[{"content": "The harbour of Ystad", "start_index": 0, "end_index": 20}]}\n'
)


def sidebar(page):
    return page.get_by_test_id("stSidebar")


def test_work_is_there_after_a_reload(browser, tmp_path):
    environment = {WORKSPACES: str(tmp_path / "data")}
    with serve(tmp_path / "log.txt", **environment) as home, own_tab(browser) as page:
        visit(page, home, "documents")
        upload(page, (OWN, TEXT))
        press_slider(page, "Chunk size (tokens)", "Home")
        go_to(page, TITLES["tuning"])
        page.get_by_test_id("stMain").locator("input[type=file]").set_input_files(
            [{"name": "mine.jsonl", "mimeType": "text/plain", "buffer": QUESTIONS}]
        )
        expect(page.get_by_text("mine.jsonl, 1 usable")).to_be_visible()
        settled(page)
        visit(page, home, "documents")
        expect(sidebar(page).get_by_text("Your work is kept on this computer.")).to_be_visible()
        expect(sidebar(page).get_by_text(OWN, exact=True).first).to_be_visible()
        expect(page.get_by_role("slider", name="Chunk size (tokens)")).to_have_value("16")
        go_to(page, TITLES["tuning"])
        expect(page.get_by_text("mine.jsonl, 1 usable")).to_be_visible()
