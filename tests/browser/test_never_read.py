import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import assert_fits, fill_area, open_tab, settled, visit


def open_whole_text(page, app):
    visit(page, app, "documents")
    open_tab(page, "Never read")
    page.get_by_text("One whole text", exact=True).click()
    expect(page.get_by_role("textbox", name="Your text")).to_be_visible()
    settled(page)
    return page


@pytest.fixture(scope="module")
def wide(kept_tab, app):
    return open_whole_text(kept_tab, app)


def pick_limit(page, limit):
    page.get_by_test_id("stButtonGroup").get_by_text(str(limit), exact=True).click()
    settled(page)
    expect(page.get_by_text(f"{limit}: reading stops here")).to_be_visible()


def struck(page):
    return page.locator("del").all_text_contents()


def test_a_text_with_its_lost_part_struck_is_there_at_first_and_fits_the_screen(narrow_tab, app):
    page = open_whole_text(narrow_tab, app)
    for limit in (128, 256, 512):
        expect(page.get_by_text(f"Limit {limit}", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"^256 tokens read, \d+ lost$"))).to_be_visible()
    expect(page.get_by_text("256: reading stops here")).to_be_visible()
    assert len("".join(struck(page))) > 1000
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    fill_area(page, "Your text", "Donaudampfschifffahrt" * 12 + " word" * 900)
    expect(page.get_by_text(re.compile(r"90\d tokens · encoder"))).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    assert_fits(page)


def test_what_is_struck_is_what_the_tokenizer_leaves_out(wide, encoder):
    text = " ".join(f"naïve{number} 東京" for number in range(300))
    offsets = encoder.tokenizer.encode(text).offsets
    fill_area(wide, "Your text", text)
    for limit in (128, 512, 256):
        pick_limit(wide, limit)
        read_end = offsets[limit - 2][1]
        expect(wide.get_by_text(f"characters after character {read_end:,}")).to_be_visible()
        lost = "".join(struck(wide))
        assert text[read_end:].startswith(lost)
        assert len(lost) == min(2400, len(text) - read_end)


def test_a_short_text_loses_nothing_and_says_so(wide):
    fill_area(wide, "Your text", "A short text.")
    expect(wide.get_by_text("Nothing is lost. This text has 6 tokens")).to_be_visible()
    expect(wide.locator("del")).to_have_count(0)


def test_a_text_between_the_limits_is_cut_by_the_shorter_alone(wide):
    fill_area(wide, "Your text", "word " * 200)
    expect(wide.get_by_text("202 tokens read, 0 lost").first).to_be_visible()
    expect(wide.get_by_text("Nothing is lost under 256.")).to_be_visible()
    pick_limit(wide, 128)
    assert "".join(struck(wide)) == " word" * 74 + " "


def test_a_blank_text_asks_for_one(wide):
    fill_area(wide, "Your text", " \n ")
    expect(wide.get_by_text("There is no text yet")).to_be_visible()


def test_markup_in_a_text_stays_text(wide):
    fill_area(wide, "Your text", "<img src=x onerror='document.title=1'> **bold** " * 60)
    expect(wide.locator("del").last).to_contain_text("<img src=x onerror=")
    assert wide.locator("[data-testid=stHtml] img").count() == 0
    assert wide.title().endswith("Glassbox")


def test_a_text_of_a_megabyte_and_a_whole_document_are_measured(wide):
    fill_area(wide, "Your text", "Nobody is told that this sentence is never read. " * 20_000)
    expect(wide.get_by_text(re.compile(r"980,000 characters"))).to_be_visible()
    expect(wide.get_by_text("256: reading stops here")).to_be_visible()
    assert len("".join(struck(wide))) == 2400
    wide.get_by_role("combobox", name="Text").click()
    wide.get_by_role("option", name="wikitexts.md").click()
    expect(wide.get_by_text(re.compile(r"11\d,\d{3} characters · \d+,\d{3} tokens"))).to_be_visible()
    expect(wide.get_by_text("It is so long that the average is over 32, 16, 8 of them")).to_be_visible()
    expect(wide.get_by_text(re.compile(r"… \d+,\d{3} characters more, never read"))).to_be_visible()
