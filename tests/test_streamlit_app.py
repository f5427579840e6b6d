"""The frame of the app: sections, former addresses, and errors of pages."""

import pytest

from engine.errors import InputError
from tests.apps import app_file
from ui.text import escape_markdown

MESSAGE = "*no* [link](https://example.org) in `notes_2_.md` costs $1, #not a heading"


def app(**state):
    return app_file(**{"searched": ["inside_the_pipeline.md"], **state})


@pytest.mark.parametrize("page", ["pages/ask/page.py", "pages/improve/diagnose/page.py"])
def test_an_error_of_a_page_is_shown_literally_under_its_title(monkeypatch, encoder, page):
    def fail(*arguments):
        raise InputError(MESSAGE)

    monkeypatch.setattr("ui.corpus.shared_index", fail)
    test = app().run().switch_page(page).run()
    assert not test.exception
    assert test.title[0].value
    assert [error.value for error in test.error] == [escape_markdown(MESSAGE)]


@pytest.mark.parametrize(
    "page", ["pages/ask/page.py", "pages/documents/page.py", "pages/inside/late/page.py"]
)
def test_without_documents_a_page_asks_for_one_and_shows_no_error(encoder, page):
    test = app(searched=[]).run().switch_page(page).run()
    assert not test.exception
    assert not test.error
    assert any("No document is chosen" in info.value for info in test.info)
