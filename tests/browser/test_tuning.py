import re

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import assert_fits, press_until
from tests.browser.training import at_rest, button, expect_line, press, slide

ADDRESS = "tuning"


def test_a_search_is_tuned_and_judged(narrow):
    expect(narrow.get_by_text("Train learns from 310 questions about 4 documents")).to_be_visible()
    assert_fits(narrow)
    slide(narrow, "Home", "Folds", "Epochs, at most")
    press(narrow, "Train")
    verdict = narrow.get_by_test_id("stAlert").filter(
        has_text="nDCG@10 of questions that were not trained on"
    )
    expect(verdict).to_have_text(re.compile("It helps beyond noise|the original is kept"))
    expect(narrow.get_by_role("button", name="Download the tuned model")).to_be_visible()
    at_rest(narrow)
    assert_fits(narrow)
    assert_usable(narrow)
    expect(narrow.get_by_text("results of the last training")).to_have_count(0)
    expect(narrow.get_by_test_id("stException")).to_have_count(0)


def test_a_tuning_that_is_stopped_changes_nothing(wide):
    wide.get_by_role("radio", name="Last layers").click()
    at_rest(wide)
    press(wide, "Train")
    press_until(button(wide, "Stop"), wide.get_by_text(re.compile("Stopping…|was stopped before")))
    expect_line(wide, "the training was stopped before its end: nothing was changed")
