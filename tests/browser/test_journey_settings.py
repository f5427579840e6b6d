"""Without labels: questions are drafted and kept, and a better setting is applied, with its held-out gain."""

import pytest
from playwright.sync_api import expect

from benchmarks.journey import DOCUMENTS, PAGES
from tests.browser.conftest import go_to, open_tab, settled
from tests.browser.journeys import journey

BAD = "max_tokens=16&retriever=dense&pooling=cls"  # a poor vector of the first 14 tokens


@pytest.mark.parametrize("n", [12, pytest.param(40, marks=pytest.mark.nightly)])
def test_kept_drafts_lead_to_better_settings(n, app, browser):
    with journey(browser, f"{app}/questions?{BAD}") as person:
        page, main = person.page, person.page.get_by_test_id("stMain")
        page.locator("input[type=file]").first.set_input_files([PAGES / name for name in DOCUMENTS])
        person.clicks += 1
        expect(page.locator(".st-key-settings-card")).to_contain_text(f"{len(DOCUMENTS)} documents")
        open_tab(page, "Drafts")
        person.click(main.get_by_role("button", name="Draft 60"))
        for number in range(1, n + 1):
            expect(page.locator(".st-key-drafts-keep button")).to_be_visible()
            page.keyboard.press("k")
            expect(main.get_by_text(f"{number} of 40 kept by you")).to_be_visible()
        person.click(page.locator(".st-key-drafts-stop button").first)
        expect(main.get_by_role("button", name="Go on drafting")).to_be_visible()
        go_to(page, "Best settings")
        person.clicks += 3  # with the tab before
        person.click(main.get_by_role("button", name="Run the grid"))
        advice = page.locator(".st-key-experiment-advice")
        settled(page)
        expect(advice.get_by_text("On held-out questions the best gains +0.")).to_be_visible()
        person.click(advice.get_by_role("button", name="Apply"))
        expect(advice.get_by_text("In use now.")).to_be_visible()
