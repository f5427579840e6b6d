"""Inside an answer: another token is tried by the keyboard."""

import re

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import open_tab, settled

ADDRESS = "answer"
EXAMPLE = "What is the price of insulin for seniors on Medicare?"


def test_another_token_leads_to_another_answer(wide):
    wide.get_by_text(EXAMPLE).click()
    wide.get_by_role("button", name="write it in sentences").click()
    wide.get_by_role("tab", name="Tokens").wait_for()
    open_tab(wide, "Tokens")
    chips = wide.get_by_role("group", name="Tokens of the answer").get_by_role("button")
    expect(chips.last).to_have_text("■ end")
    chips.nth(2).click()
    settled(wide)
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    chips.nth(2).press("ArrowRight")
    expect(chips.nth(3)).to_be_focused()
    wide.keyboard.press("Enter")
    expect(wide.get_by_test_id("stMetric").filter(has_text="Token 3")).to_be_visible()
    settled(wide)  # what might have come instead is drawn after it
    word = wide.get_by_role("radiogroup").locator("code").nth(1).inner_text()
    wide.get_by_role("radio").nth(1).locator("xpath=ancestor::label").click()
    wide.get_by_role("button", name="Continue from here with this one").click()
    settled(wide)
    expect(wide.get_by_text("The branch at token 3")).to_be_visible()
    first = wide.locator("b[style*='outline']")
    expect(first).to_have_count(2)
    assert first.nth(1).inner_text().strip() == word.replace("␣", "").strip()
    said = re.compile(r"^\d{3} tokens of prompt and answer were not read again")
    expect(wide.get_by_text(said)).to_be_visible()
    assert_usable(wide)
