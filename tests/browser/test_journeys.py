"""Ways of newcomers: to an answer that is cited, a cure, the same answer by a link, and better settings."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import go_to, open_section, open_tab, press_slider, settled
from tests.browser.journeys import FILES, REPORTS, add_files, answer_few, journey, write

FILE = "telescope.txt"
BAD = "max_tokens=16&retriever=dense&pooling=cls"  # a poor vector of the first 14 tokens


@pytest.mark.parametrize("window", ["narrow_window", pytest.param("wide_window", marks=pytest.mark.nightly)])
def test_eight_own_files_give_a_right_answer_that_is_cited(window, app, request):
    with journey(request.getfixturevalue(window), app) as person:
        add_files(person)
        write(person, "Your question", "How much does a jar of honey cost?")
        answer = person.page.locator(".st-key-answer")
        expect(answer.locator("strong", has_text="6.50 euros")).to_be_visible()
        start = FILES["bees.txt"].index("6.50")
        expect(
            answer.get_by_text(f"bees.txt · characters {start}–{start + len('6.50 euros')}")
        ).to_be_visible()
        expect(answer.locator("blockquote mark")).to_have_text("6.50 euros")


def test_a_refused_question_is_cured_and_answered_rightly(app, wide_window):
    with journey(wide_window, app) as person:
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


def test_a_colleague_opens_the_link_and_comes_to_the_same_answer(app, wide_window):
    with journey(wide_window, f"{app}/?k=3") as person:
        page = person.page
        add_files(person, FILE)
        n_entries = page.evaluate("history.length")
        write(person, "Your question", "Who built the reflector?")
        open_section(page, "Search")
        press_slider(page, "Passages", "ArrowLeft")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        person.click(page.get_by_role("button", name="Copy link"))
        link = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").inner_text().strip()
        assert link == page.url == page.evaluate("navigator.clipboard.readText()")
        assert parse_qs(urlsplit(link).query) == {
            "question": ["Who built the reflector?"],
            "k": ["2"],
            "search": [FILE],
        }
        assert page.evaluate("history.length") == n_entries
        page.keyboard.press("Escape")
    with journey(wide_window, link) as person:
        page = person.page
        expect(page.get_by_text(f"The link names documents that are not here: {FILE}")).to_be_visible()
        expect(page.locator(".st-key-answer")).to_be_visible()  # from the samples
        settled(page)
        add_files(person, FILE)
        expect(page.get_by_text("The link names documents")).to_have_count(0)
        expect(page.locator(".st-key-settings-card")).to_contain_text("2 passages")
        person.click(page.get_by_role("button", name="Ask again"))
        expect(page.locator(".st-key-answer").locator("strong", has_text="Edmund Farquhar")).to_be_visible()


def keep_drafts(person, n, reports):
    """Draft questions from reports, keep some by the key "k", and stop."""
    page, main = person.page, person.page.get_by_test_id("stMain")
    page.locator("input[type=file]").first.set_input_files(reports)
    person.clicks += 1
    expect(page.get_by_test_id("stSidebar")).to_contain_text(reports[-1].name)
    open_tab(page, "Drafts")
    person.click(main.get_by_role("button", name="Draft 60"))
    for number in range(1, n + 1):
        expect(page.locator(".st-key-drafts-keep button")).to_be_visible()
        page.keyboard.press("k")
        expect(main.get_by_text(f"{number} of 40 kept by you")).to_be_visible()
    person.click(page.locator(".st-key-drafts-stop button").first)
    expect(main.get_by_role("button", name="Go on drafting")).to_be_visible()


def test_drafts_are_kept_by_a_key(app, wide_window):
    with journey(wide_window, f"{app}/questions") as person:
        keep_drafts(person, 2, REPORTS[:1])
        go_to(person.page, "Best settings")  # a bar stays as long as there are drafts to read


@pytest.mark.nightly
def test_kept_drafts_lead_to_better_settings(app, wide_window):
    with journey(wide_window, f"{app}/questions?{BAD}") as person:
        page, main = person.page, person.page.get_by_test_id("stMain")
        keep_drafts(person, 40, REPORTS)
        go_to(page, "Best settings")
        answer_few(page)
        person.clicks += 5  # with the tab before
        person.click(main.get_by_role("button", name="Run the grid"))
        advice = page.locator(".st-key-experiment-advice")
        settled(page)
        expect(advice.get_by_text("On held-out questions the best gains +0.")).to_be_visible()
        person.click(advice.get_by_role("button", name="Apply"))
        expect(advice.get_by_text("In use now.")).to_be_visible()
