"""A newcomer drops eight own files, asks, and has the right answer with its place."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, WIDE
from tests.browser.journeys import FILES, add_files, journey, write


@pytest.mark.parametrize("viewport", [NARROW, pytest.param(WIDE, marks=pytest.mark.nightly)])
def test_eight_own_files_give_a_right_answer_that_is_cited(viewport, app, browser):
    with journey(browser, app, viewport) as person:
        add_files(person)
        write(person, "Your question", "How much does a jar of honey cost?")
        answer = person.page.locator(".st-key-answer")
        expect(answer.locator("strong", has_text="6.50 euros")).to_be_visible()
        start = FILES["bees.txt"].index("6.50")
        expect(
            answer.get_by_text(f"bees.txt · characters {start}–{start + len('6.50 euros')}")
        ).to_be_visible()
        expect(answer.locator("blockquote mark")).to_have_text("6.50 euros")
