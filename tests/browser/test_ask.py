"""A question is asked, answered and followed, with documents of one's own and by a server."""

import re
from threading import Semaphore

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import fill_in, go_to, open_section, open_tab, settled, upload
from tests.chat_server import WORDS, chat_server, chunk, event, whole_answer

ADDRESS = ""
ANSWERED = "What does the CarbFix project do with carbon dioxide?"


def begin_to_ask(page, question):
    box = page.get_by_label("Your question")
    box.fill(question)
    box.press("Enter")


def ask(page, question):
    begin_to_ask(page, question)
    expect(answer_of(page).get_by_role("heading", name=question, exact=True)).to_be_visible()


def answer_of(page):
    return page.locator(".st-key-answer")


def written_of(page):
    return page.locator(".st-key-writing")


def test_an_answer_is_shown_with_its_passages_prompt_timing_and_report_and_its_next_steps(wide):
    wide.get_by_test_id("stButtonGroup").get_by_text(ANSWERED).click()
    expect(answer_of(wide).get_by_role("heading", name=ANSWERED, exact=True)).to_be_visible()
    settled(wide)
    found = answer_of(wide).locator("strong").first.inner_text()
    assert found in wide.locator("mark").first.inner_text()
    expect(open_tab(wide, "Timing").get_by_text("Find the words", exact=True)).to_be_visible()
    panel = open_tab(wide, "Sources")
    panel.get_by_text("How close is close?").click()
    expect(panel.get_by_text("best passages of unrelated questions")).to_be_visible()
    assert_usable(wide)
    with wide.expect_download() as download:
        wide.get_by_role("button", name="Report (HTML)").click()
    report = download.value.path().read_text()
    assert f"<h1>{ANSWERED}</h1>" in report
    assert f"{found}</strong>" in report
    marks = open_tab(wide, "In the documents").locator("mark")
    marks.first.scroll_into_view_if_needed()
    box, text = (each.bounding_box() for each in (marks.first.locator("xpath=.."), marks.first))
    assert text["y"] < box["y"] + 200  # the text begins shortly before it
    wide.get_by_role("button", name="write it in sentences").click()
    expect(open_tab(wide, "Exact prompt").get_by_text(f"{ANSWERED} Answer in one sentence.")).to_be_visible()
    expect(open_tab(wide, "Timing").get_by_text("Generate text", exact=True)).to_be_visible()
    wide.get_by_role("button", name="It is right").click()
    expect(wide.get_by_text("Kept as a labelled question")).to_be_visible()
    wide.get_by_role("button", name="Was this wrong?").click()
    expect(wide.get_by_role("heading", name="Why wasn't it found?")).to_be_visible()
    expect(wide.get_by_role("textbox", name="Your question")).to_have_value(ANSWERED)
    go_to(wide, "Questions")
    expect(wide.get_by_text("1 question, gone when this tab closes")).to_be_visible()


def test_an_answer_goes_on_while_the_page_is_used_and_ends_with_stop_and_with_the_page(wide):
    numbers, more = [f"w{number} " for number in range(30)], Semaphore(0)

    def events():
        for number, text in enumerate(numbers):
            if number in (2, 6, 16):
                more.acquire()
            yield event(chunk(text))
        yield from whole_answer()

    open_section(wide, "Answer")
    wide.get_by_test_id("stSidebar").get_by_text("Write a text by the language model too").click()
    settled(wide)
    open_section(wide, "Model")
    wide.get_by_test_id("stSidebar").get_by_text("A server", exact=True).click()
    settled(wide)
    with chat_server(events=events()) as server:
        fill_in(wide, "Address", server.url)
        begin_to_ask(wide, ANSWERED)
        expect(written_of(wide).get_by_text("w0 w1")).to_be_visible()
        open_section(wide, "Search")
        wide.get_by_role("slider", name="Passages").press("ArrowRight")
        group = wide.get_by_role("group", name="Passages (k)")
        expect(group.get_by_test_id("stSliderThumbValue").filter(has_text=re.compile("^5$"))).to_be_visible()
        more.release()
        expect(written_of(wide).get_by_text(re.compile(r"w0 w1 .*w5"))).to_be_visible()
        go_to(wide, "Documents and chunks")
        more.release()
        wide.get_by_test_id("stTopNavLink").filter(has_text="Ask your documents").click()
        expect(written_of(wide).get_by_text(re.compile(r"w0 w1 .*w15"))).to_be_visible()
        more.release()
        expect(answer_of(wide).get_by_text("".join([*numbers, *WORDS]))).to_be_visible()
        assert len(server.requests) == 1

        server.events, server.pause = [event(chunk(f"w{number} ")) for number in range(60)], 0.5
        begin_to_ask(wide, "What is stopped?")
        expect(written_of(wide).get_by_text("w0 w1")).to_be_visible()
        wide.locator(".st-key-stop").get_by_role("button", name="Stop").click()
        expect(wide.get_by_text("You stopped it here.")).to_be_visible()
        expect(answer_of(wide).get_by_text(re.compile(r"^w0 w1( w\d+)*$"))).to_be_visible()
        assert server.hung_up.wait(60)

        server.hung_up.clear()
        begin_to_ask(wide, "What ends with the page?")
        expect(written_of(wide).get_by_text("w0 w1")).to_be_visible()
        wide.close()
        assert server.hung_up.wait(60)


def test_files_are_refused_or_searched_alone_and_their_markup_stays_text(wide, tmp_path):
    path = tmp_path / "large.txt"
    path.write_bytes(b"word " * (5 * 1024**2))
    wide.locator("input[type=file]").set_input_files(path)
    expect(wide.get_by_text("must be 20.0MB or smaller")).to_be_visible()
    expect(wide.get_by_text(re.compile(r"4 documents · \d+ chunks"))).to_be_visible()
    text = "The lighthouse of Vardholm was painted green in 1931. <img src=x onerror='document.title=1'>"
    upload(wide, ("empty.txt", b""), ("lighthouse.md", text.encode()))
    expect(wide.get_by_text("empty.txt is empty")).to_be_visible()
    expect(wide.get_by_text(re.compile(r"\b1 document · \d+ chunk"))).to_be_visible()
    assert_usable(wide)
    ask(wide, "When was the lighthouse of Vardholm painted green?")
    expect(answer_of(wide).get_by_text("<img src=x").first).to_be_visible()
    assert wide.locator("[role=tabpanel] img").count() == 0
    assert wide.title().endswith("Glassbox")
