"""What a user has done is there again after a reload, on a machine of their own."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import (
    TITLES,
    go_to,
    open_tab,
    own_tab,
    press_slider,
    serve,
    settled,
    upload,
    visit,
)
from tests.browser.training import at_rest, button, pause, press
from ui.server_settings import WORKSPACES

OWN = "harbour.txt"
TEXT = b"The harbour of Ystad opens at six in the morning. The ferry to Bornholm leaves at noon. " * 20
QUESTIONS = (
    b'{"question": "When does the harbour open?", "corpus_id": "harbour", "references": '
    b'[{"content": "The harbour of Ystad", "start_index": 0, "end_index": 20}]}\n'
)


@pytest.fixture(scope="module")
def home(app, tmp_path_factory):
    """The app at an address of its own, with a data folder."""
    folder = tmp_path_factory.mktemp("home")
    with serve(folder / "log.txt", **{WORKSPACES: str(folder / "data")}) as url:
        yield url


def sidebar(page):
    return page.get_by_test_id("stSidebar")


@pytest.fixture(scope="module")
def page(browser):
    with own_tab(browser) as page:
        yield page


def test_a_model_in_training_is_there_after_a_reload(home, page):
    visit(page, home, "decoder")
    press(page, "Train")
    pause(page)
    page.reload()
    expect(button(page, "Resume")).to_be_visible()
    at_rest(page)
    press(page, "Reset")
    expect(button(page, "Train")).to_be_visible()
    visit(page, home, "decoder")
    expect(button(page, "Train")).to_be_visible()


def test_documents_settings_and_questions_are_there_after_a_reload_until_that_is_switched_off(home, page):
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
    sidebar(page).get_by_role("button", name="Save or open").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Keep my work on this computer").click()
    settled(page)
    dialog.get_by_role("button", name="Close").click()
    visit(page, home, "documents")
    expect(sidebar(page).get_by_text("Your work is gone when this tab closes.")).to_be_visible()
    open_tab(page, "Files")
    expect(page.get_by_text("Add files in the sidebar")).to_be_visible()
