import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled

expect.set_options(timeout=60_000)


def open_truncation(page, app):
    page.goto(f"{app}/truncation")
    expect(page.get_by_role("heading", name="What is never read", level=1)).to_be_visible()
    expect(page.get_by_role("textbox", name="Your text")).to_be_visible()
    settled(page)
    return page


@pytest.fixture(scope="module")
def anywhere(any_kept_tab, app):
    """The page at each width: what is there at first, then a text of words too long for a line."""
    return open_truncation(any_kept_tab, app)


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    return open_truncation(kept_tab, app)


@pytest.fixture(autouse=True)
def rested(request):
    """What the test before has set going ends before the next begins."""
    yield
    for name in {"anywhere", "wide"} & set(request.fixturenames):
        settled(request.getfixturevalue(name))


def type_text(page, text):
    box = page.get_by_role("textbox", name="Your text")
    box.fill(text)
    box.press("Control+Enter")
    settled(page)


def pick_limit(page, limit):
    page.get_by_test_id("stButtonGroup").get_by_text(str(limit), exact=True).click()
    expect(page.get_by_text(f"{limit}: reading stops here")).to_be_visible()


def struck(page):
    return page.locator("del").all_text_contents()


def test_a_text_with_its_lost_part_struck_is_there_at_first(anywhere):
    for limit in (128, 256, 512):
        expect(anywhere.get_by_text(f"Limit {limit}", exact=True)).to_be_visible()
    expect(anywhere.get_by_text(re.compile(r"^256 tokens read, \d+ lost$"))).to_be_visible()
    expect(anywhere.get_by_text("256: reading stops here")).to_be_visible()
    assert len("".join(struck(anywhere))) > 1000
    expect(anywhere.locator(".js-plotly-plot")).to_have_count(2)


def test_nothing_is_wider_than_the_screen(anywhere):
    type_text(anywhere, "Donaudampfschifffahrt" * 12 + " word" * 900)
    expect(anywhere.get_by_text(re.compile(r"90\d tokens · encoder"))).to_be_visible()
    expect(anywhere.locator(".js-plotly-plot")).to_have_count(2)
    settled(anywhere)
    width = anywhere.evaluate("document.documentElement.scrollWidth")
    assert width <= anywhere.viewport_size["width"]


def test_what_is_struck_is_what_the_tokenizer_leaves_out(wide, encoder):
    text = " ".join(f"naïve{number} 東京" for number in range(300))
    offsets = encoder.tokenizer.encode(text).offsets
    type_text(wide, text)
    for limit in (128, 512, 256):
        pick_limit(wide, limit)
        read_end = offsets[limit - 2][1]
        expect(wide.get_by_text(f"characters after character {read_end:,}")).to_be_visible()
        lost = "".join(struck(wide))
        assert text[read_end:].startswith(lost)
        assert len(lost) == min(2400, len(text) - read_end)


def test_a_short_text_loses_nothing_and_says_so(wide):
    type_text(wide, "A short text.")
    expect(wide.get_by_text("Nothing is lost. This text has 6 tokens")).to_be_visible()
    expect(wide.locator("del")).to_have_count(0)


def test_a_text_between_the_limits_is_cut_by_the_shorter_alone(wide):
    type_text(wide, "word " * 200)
    expect(wide.get_by_text("202 tokens read, 0 lost").first).to_be_visible()
    expect(wide.get_by_text("Nothing is lost under 256.")).to_be_visible()
    pick_limit(wide, 128)
    assert "".join(struck(wide)) == " word" * 74 + " "


def test_a_blank_text_asks_for_one(wide):
    type_text(wide, " \n ")
    expect(wide.get_by_text("There is no text yet")).to_be_visible()


def test_markup_in_a_text_stays_text(wide):
    type_text(wide, "<img src=x onerror='document.title=1'> **bold** " * 60)
    expect(wide.locator("del").last).to_contain_text("<img src=x onerror=")
    assert wide.locator("[data-testid=stHtml] img").count() == 0
    assert wide.title() == "Glassbox"


def test_a_whole_document_can_be_taken(tab, app):
    page = open_truncation(tab, app)
    page.get_by_role("combobox", name="Text").click()
    page.get_by_role("option", name="wikitexts.md").click()
    expect(page.get_by_text(re.compile(r"11\d,\d{3} characters · \d+,\d{3} tokens"))).to_be_visible()
    expect(page.get_by_text("It is so long that the average is over 32, 16, 8 of them")).to_be_visible()
    expect(page.get_by_text(re.compile(r"… \d+,\d{3} characters more, never read"))).to_be_visible()


def test_a_text_of_a_megabyte_is_measured(tab, app):
    page = open_truncation(tab, app)
    type_text(page, "Nobody is told that this sentence is never read. " * 20_000)
    expect(page.get_by_text(re.compile(r"980,000 characters"))).to_be_visible()
    expect(page.get_by_text("256: reading stops here")).to_be_visible()
    assert len("".join(struck(page))) == 2400
