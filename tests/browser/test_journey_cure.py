"""A wrong answer, its cause, a cure by one button, and the right answer."""

import re

from playwright.sync_api import expect

from tests.browser.journeys import add_files, journey, write


def test_a_refused_question_is_cured_and_answered_rightly(app, browser):
    with journey(browser, app) as person:
        page = person.page
        add_files(person)
        write(person, "Your question", "Wat does the displey show if a prob fales?")
        expect(page.get_by_text("Nothing in these documents comes close enough")).to_be_visible()
        person.click(page.get_by_role("button", name="Was this wrong?"))
        write(person, "Words of the passage", "the display shows")
        expect(page.get_by_text("The question has a typing error.")).to_be_visible()
        person.click(page.get_by_role("button", name="Apply it and ask again"))
        expect(page.get_by_text("Nothing broke. The right answer is given now.")).to_be_visible()
        expect(page.get_by_text(re.compile(r"code E17\s+answered, "))).to_be_visible()
        person.click(page.get_by_role("button", name="Undo"))
        expect(page.get_by_text("The question has a typing error.")).to_be_visible()
