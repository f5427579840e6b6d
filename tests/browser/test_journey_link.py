"""A colleague opens the link to an answer, adds the files that it names, and sees the same."""

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.journeys import add_files, journey, write

FILE = "telescope.txt"


def test_a_colleague_opens_the_link_and_comes_to_the_same_answer(app, browser):
    with journey(browser, f"{app}/?k=2") as person:
        add_files(person, FILE)
        write(person, "Your question", "Who built the reflector?")
        person.click(person.page.get_by_role("button", name="Copy link"))
        link = person.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").inner_text().strip()
        person.page.keyboard.press("Escape")
    with journey(browser, link) as person:
        page = person.page
        expect(page.get_by_text(f"The link names documents that are not here: {FILE}")).to_be_visible()
        expect(page.locator(".st-key-answer")).to_be_visible()  # from the samples
        settled(page)
        add_files(person, FILE)
        expect(page.get_by_text("The link names documents")).to_have_count(0)
        expect(page.locator(".st-key-settings-card")).to_contain_text("2 passages")
        person.click(page.get_by_role("button", name="Ask again"))
        expect(page.locator(".st-key-answer").locator("strong", has_text="Edmund Farquhar")).to_be_visible()
