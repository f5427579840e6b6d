"""The way from a question to its answer and on to another page, without a mouse."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import TITLES, settled, title_of

ADDRESS = ""
QUESTION = "What does the CarbFix project do with carbon dioxide?"
STOPS = 60  # more presses of Tab than this are no way to anything


def tab_to(page, element):
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        if element.evaluate("element => element === document.activeElement"):
            return
    pytest.fail(f"the focus never comes to {element}")


def test_a_question_is_asked_and_its_answer_followed_by_keyboard_alone(wide):
    tab_to(wide, wide.get_by_role("textbox", name="Your question"))
    wide.keyboard.type(QUESTION)
    wide.keyboard.press("Enter")
    expect(wide.get_by_role("tab", name="Sources")).to_be_visible()
    settled(wide)
    tab_to(wide, wide.get_by_role("button", name="Look inside", exact=True))
    wide.keyboard.press("Enter")
    expect(title_of(wide)).to_have_text(TITLES["answer"])
    expect(wide.get_by_test_id("stMain").get_by_role("heading", name=QUESTION)).to_be_visible()
