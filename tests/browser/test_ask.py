import re
from threading import Semaphore

import pytest
from playwright.sync_api import expect

from engine.weights.catalog import DEFAULT_DECODER, KNOWN_MODELS
from engine.weights.fetch import known_model_path
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import (
    OWN_DECODER,
    fill_in,
    go_to,
    open_section,
    open_tab,
    own_tab,
    press_slider,
    serve,
    settled,
    use_decoder,
    use_server,
    visit,
)
from tests.chat_server import WORDS, chat_server, chunk, closed_port, event, whole_answer

ANSWERED = "What does the CarbFix project do with carbon dioxide?"
UNANSWERED = "How do I bake sourdough bread?"


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


def pick_example(page, question):
    page.get_by_test_id("stButtonGroup").get_by_text(question).click()


def upload(page, name, content):
    chooser = page.locator("input[type=file]")
    expect(chooser).to_have_count(1)  # for a moment after an upload the old one is still there
    chooser.set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})


def metric(page, label):
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")


@pytest.fixture
def page(tab, app):
    return visit(tab, app)


@pytest.fixture(scope="module")
def kept(wide_window, app):
    """A tab that tests share in which nothing is asked before there are documents of one's own."""
    with wide_window.new_page() as page:
        yield visit(page, app)


@pytest.fixture(scope="module")
def distant(wide_window, app):
    """A tab that tests share in which a server answers, whose address each gives; the last closes it."""
    with wide_window.new_page() as page:
        use_server(visit(page, app), "")
        yield page


def give_address(page, url):
    if not page.get_by_role("textbox", name="Address", exact=True).count():
        open_section(page, "Model")  # closed by a change of page
    fill_in(page, "Address", url)


@pytest.fixture(scope="module")
def answered(kept_tab, app):
    visit(kept_tab, app)
    pick_example(kept_tab, ANSWERED)
    expect(answer_of(kept_tab).get_by_role("heading", name=ANSWERED, exact=True)).to_be_visible()
    settled(kept_tab)
    return kept_tab


def test_an_example_question_is_answered_from_passages_that_are_shown(answered):
    expect(answered.get_by_text(re.compile(r"4 documents · \d+ chunks"))).to_be_visible()
    expect(answered.get_by_text("Drop your documents")).to_have_count(0)
    panel = open_tab(answered, "Sources")
    expect(panel.locator("mark").first).to_contain_text(re.compile(r"\[\d\]"))
    place = re.compile(r"chatlogs\.md · Conversation \d · characters [\d,]+–[\d,]+ · \d+ tokens")
    expect(panel.get_by_text(place).first).to_be_visible()
    closeness = r"cosine 0\.\d{3} · closer than"
    expect(panel.get_by_text(re.compile(closeness)).first).to_be_visible()
    panel.get_by_text("How close is close?").click()
    expect(panel.get_by_text("best passages of unrelated questions")).to_be_visible()
    assert_usable(answered)
    assert "CarbFix" in answered.locator("mark").first.inner_text()
    with answered.expect_download() as download:
        answered.get_by_role("button", name="Report (HTML)").click()
    assert f"<h1>{ANSWERED}</h1>" in download.value.path().read_text()
    marks = open_tab(answered, "In the documents").locator("mark")
    marks.first.scroll_into_view_if_needed()
    box, text = (each.bounding_box() for each in (marks.first.locator("xpath=.."), marks.first))
    assert text["y"] < box["y"] + 200  # the text begins shortly before it


def test_the_exact_prompt_and_the_timing_of_every_stage_are_shown(answered):
    panel = open_tab(answered, "Exact prompt")
    expect(panel.get_by_text(f"{ANSWERED} Answer in one sentence.")).to_be_visible()
    expect(panel.get_by_text(re.compile(r"\d+ tokens in, \d+ tokens out"))).to_be_visible()
    panel = open_tab(answered, "Timing")
    for stage in ("Encode question", "Rank sentences", "Read prompt", "Generate answer", "Check answer"):
        expect(panel.get_by_text(stage, exact=True)).to_be_visible()


def test_the_next_steps_after_an_answer_take_the_question_along(answered):
    answered.get_by_role("button", name="It is right").click()
    expect(answered.get_by_text("Kept as a labelled question")).to_be_visible()
    answered.get_by_role("button", name="Why was it not found?").click()
    expect(answered.get_by_role("heading", name="Why wasn't it found?")).to_be_visible()
    expect(answered.get_by_role("textbox", name="Your question")).to_have_value(ANSWERED)
    expect(answered.get_by_role("textbox", name="Words of the passage")).to_be_visible()
    go_to(answered, "Questions")
    expect(answered.get_by_text("1 question, gone when this tab closes")).to_be_visible()


def test_an_unanswerable_question_is_refused_and_the_threshold_can_be_moved(page):
    pick_example(page, UNANSWERED)
    expect(page.get_by_text("Nothing in these documents comes close enough")).to_be_visible()
    expect(page.get_by_text(re.compile(r"closer than 9\d\.\d\d % of random pairs")).first).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d\d find a passage as close, and at most 10 may"))).to_be_visible()
    assert_usable(page)
    open_section(page, "Search")
    press_slider(page, "Relevance threshold", "Home")
    expect(page.get_by_text("the answer from before your change of the search")).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("tab", name="Sources")).to_be_visible()


def test_a_follow_up_is_read_with_the_topic_which_can_be_changed(page):
    ask(page, "How much did it cost to build Copenhagen's Amager Bakke plant?")
    ask(page, "what can people do there besides skiing")
    read_as = page.get_by_role("textbox", name="Read as a follow-up:")
    expect(read_as).to_have_value(re.compile(r"besides skiing \(.*Amager Bakke plant\)"))
    expect(page.locator("blockquote").filter(has_text="climbing wall")).to_be_visible()
    page.get_by_text("Earlier in this conversation: 1").click()
    panel = open_tab(page, "Exact prompt")
    expect(panel.get_by_text(re.compile("assistant.*Here are some passages", re.DOTALL))).to_be_visible()
    expect(panel.get_by_text(re.compile(r"earlier turns \(\d+\)"))).to_be_visible()
    read_as.fill("Who built the Amager Bakke plant?")
    page.get_by_role("button", name="Ask this").click()
    expect(answer_of(page).get_by_role("heading", name="Who built the Amager Bakke plant?")).to_be_visible()
    page.get_by_role("button", name="New topic").click()
    expect(page.get_by_text("The next question starts a new topic.")).to_be_visible()
    ask(page, "And in winter?")
    expect(read_as).to_have_count(0)


def test_a_second_question_neither_loads_embeds_nor_reads_again(page):
    ask(page, ANSWERED)
    open_tab(page, "Timing")
    expect(metric(page, "not read again")).to_have_text(re.compile(r"^0 of \d+$"))
    page.evaluate(
        """() => { window.seen = ''; new MutationObserver(() => {
            const work = /(Embedding|Loading the|Downloading) .*/.exec(document.body.innerText);
            if (work) window.seen += work[0];
        }).observe(document.body, {subtree: true, childList: true, characterData: true}) }"""
    )
    ask(page, "What does the CarbFix project do with carbon dioxide")
    open_tab(page, "Timing")
    expect(metric(page, "not read again")).to_have_text(re.compile(r"^[1-9]\d+ of \d+$"))
    expect(page.get_by_text(re.compile(r"keys and values of \d+ tokens, \d+\.\d MB"))).to_be_visible()
    assert page.evaluate("window.seen") == ""


def test_settings_that_do_nothing_are_greyed_out_and_say_why(page):
    open_section(page, "Answer")
    drawn = ("Top-k", "Top-p", "Min-p")
    for name in drawn:
        expect(page.get_by_role("slider", name=name)).to_be_disabled()
    expect(page.get_by_role("slider", name="Repetition penalty")).to_be_enabled()
    expect(page.get_by_text("At temperature 0 nothing is drawn at random")).to_be_visible()
    press_slider(page, "Temperature", *["ArrowRight"] * 3)
    for name in drawn:
        expect(page.get_by_role("slider", name=name)).to_be_enabled()
    assert_usable(page)
    with chat_server() as server:
        use_server(page, server.url)
        for name in ("Top-k", "Min-p", "Repetition penalty"):
            expect(page.get_by_role("slider", name=name)).to_be_disabled()
        expect(page.get_by_role("slider", name="Top-p")).to_be_enabled()
        expect(page.get_by_text("no settings that all servers share")).to_be_visible()
        ask(page, ANSWERED)
        [request] = server.requests
        assert request["temperature"] == 0.3
        assert "top_p" not in request


def test_another_built_in_model_may_be_chosen_and_one_that_is_not_there_changes_nothing(page):
    path = str(known_model_path(KNOWN_MODELS[DEFAULT_DECODER]))
    open_section(page, "Model")
    use_decoder(page, path)
    ask(page, ANSWERED)
    expect(page.get_by_text(f"Written by a small model ({path})")).to_be_visible()
    fill_in(page, OWN_DECODER, "/nowhere/model.gguf")
    expect(page.get_by_text("no model '/nowhere/model.gguf'")).to_be_visible()
    expect(page.get_by_text(f"{path} stays in use.")).to_be_visible()
    ask(page, "What happens to text beyond the token limit?")
    expect(page.get_by_text(f"Written by a small model ({path})")).to_be_visible()


def test_an_answer_may_come_from_a_server_which_cannot_be_looked_into(distant):
    with chat_server() as server:
        give_address(distant, server.url)
        ask(distant, ANSWERED)
        [request] = server.requests
    expect(answer_of(distant).get_by_text("".join(WORDS))).to_be_visible()
    expect(distant.get_by_text(re.compile(r"Written by mason at 127\.0\.0\.1"))).to_be_visible()
    expect(distant.get_by_role("tabpanel").locator("mark").first).to_contain_text(re.compile(r"\[\d\]"))
    open_tab(distant, "Timing")
    expect(distant.get_by_text("How fast a server reads the prompt")).to_be_visible()
    expect(metric(distant, "Time to the first word")).to_be_visible()
    open_tab(distant, "Exact prompt")
    expect(distant.get_by_text(re.compile(r"About \d+ tokens in"))).to_be_visible()
    for message in request["messages"]:
        expect(
            distant.get_by_role("tabpanel").get_by_text(message["content"].splitlines()[0])
        ).to_be_visible()


def test_stopping_keeps_what_was_written(distant):
    with chat_server(events=[event(chunk(f"w{number} ")) for number in range(60)], pause=0.5) as server:
        give_address(distant, server.url)
        begin_to_ask(distant, ANSWERED)
        expect(written_of(distant).get_by_text("w0 w1")).to_be_visible()
        distant.locator(".st-key-stop").get_by_role("button", name="Stop").click()
        expect(distant.get_by_text("You stopped it here.")).to_be_visible()
        expect(answer_of(distant).get_by_text(re.compile(r"^w0 w1( w\d+)*$"))).to_be_visible()
        expect(answer_of(distant).get_by_text("w59")).to_have_count(0)
        assert server.hung_up.wait(60)
    expect(distant.get_by_role("tab", name="Sources")).to_be_visible()


def test_what_is_touched_meanwhile_works_and_loses_nothing(distant):
    numbers, more = [f"w{number} " for number in range(30)], Semaphore(0)

    def events():
        for number, text in enumerate(numbers):
            if number in (2, 6, 16):
                more.acquire()
            yield event(chunk(text))
        yield from whole_answer()

    with chat_server(events=events()) as server:
        give_address(distant, server.url)
        begin_to_ask(distant, ANSWERED)
        expect(written_of(distant).get_by_text("w0 w1")).to_be_visible()
        open_section(distant, "Search")
        distant.get_by_role("slider", name="Passages").press("ArrowRight")
        expect(
            distant.get_by_test_id("stSliderThumbValue").filter(has_text=re.compile("^5$"))
        ).to_be_visible()
        more.release()
        expect(written_of(distant).get_by_text(re.compile(r"w0 w1 .*w5"))).to_be_visible()
        go_to(distant, "Documents and chunks")
        more.release()
        distant.get_by_test_id("stTopNavLink").filter(has_text="Ask your documents").click()
        expect(written_of(distant).get_by_text(re.compile(r"w0 w1 .*w15"))).to_be_visible()
        more.release()
        expect(answer_of(distant).get_by_text("".join([*numbers, *WORDS]))).to_be_visible()
        assert len(server.requests) == 1


def test_a_new_question_ends_the_answer_before(distant):
    with chat_server(events=[event(chunk("Forty "))] * 300, pause=0.2) as server:
        give_address(distant, server.url)
        begin_to_ask(distant, ANSWERED)
        expect(written_of(distant).get_by_text("Forty")).to_be_visible()
        server.events = whole_answer()
        ask(distant, "What days is the Viktor Wynd Museum closed?")
        assert server.hung_up.is_set()
        assert len(server.requests) == 2


def test_a_server_that_cannot_be_used_is_explained_and_the_page_goes_on(distant):
    with closed_port() as url, chat_server() as server:
        give_address(distant, url)
        sidebar = distant.locator("[data-testid=stSidebar]")
        expect(sidebar.get_by_text(f"the connection to {url} failed")).to_be_visible()
        begin_to_ask(distant, ANSWERED)
        expect(answer_of(distant).get_by_text("no model of")).to_be_visible()
        fill_in(distant, "Address", "localhost:11434")
        expect(sidebar.get_by_text("give one that begins with http:// or https://")).to_be_visible()
        fill_in(distant, "Address", server.url)
        expect(sidebar.get_by_test_id("stAlert")).to_have_count(0)
        ask(distant, "What happens to text beyond the token limit?")
        expect(answer_of(distant).get_by_text("".join(WORDS))).to_be_visible()


def test_an_answer_that_breaks_off_keeps_its_beginning(distant):
    with chat_server(events=[event(chunk("Forty ")), event("{broken")]) as server:
        give_address(distant, server.url)
        begin_to_ask(distant, ANSWERED)
        expect(answer_of(distant).get_by_text("does not speak as OpenAI's servers do")).to_be_visible()
        expect(answer_of(distant).get_by_text("Forty")).to_be_visible()


def test_closing_the_page_ends_the_answer(distant):
    with chat_server(events=[event(chunk("word "))] * 100, pause=0.5) as server:
        give_address(distant, server.url)
        begin_to_ask(distant, ANSWERED)
        expect(written_of(distant).get_by_text("word word")).to_be_visible()
        distant.close()
        assert server.hung_up.wait(60)


def test_a_blank_question_asks_for_one(kept):
    kept.get_by_role("button", name="Ask", exact=True).click()
    expect(kept.get_by_text("Type a question first")).to_be_visible()


def test_a_file_over_the_limit_is_refused(kept, tmp_path):
    path = tmp_path / "large.txt"
    path.write_bytes(b"word " * (5 * 1024**2))
    kept.locator("input[type=file]").set_input_files(path)
    expect(kept.get_by_text("must be 20.0MB or smaller")).to_be_visible()
    expect(kept.get_by_text(re.compile(r"4 documents · \d+ chunks"))).to_be_visible()


def test_files_that_cannot_be_read_are_named_and_change_nothing(kept):
    for name, content, reason in (
        ("empty.txt", b"", "empty.txt is empty"),
        ("picture.md", b"\x89PNG\r\n\x1a\n\0\0\0", "picture.md is a PNG image"),
        ("bytes.txt", bytes(range(1, 256)) * 4, "bytes.txt is not text"),
    ):
        upload(kept, name, content)
        expect(kept.get_by_text(reason)).to_be_visible()
    assert_usable(kept)
    expect(kept.get_by_text(re.compile(r"4 documents · \d+ chunks"))).to_be_visible()


def test_an_uploaded_document_is_searched_and_its_markup_stays_text(kept):
    text = "The lighthouse of Vardholm was painted green in 1931. <img src=x onerror='document.title=1'>"
    upload(kept, "lighthouse.md", text.encode())
    expect(kept.get_by_text(re.compile(r"\b1 document · \d+ chunk"))).to_be_visible()  # alone
    expect(kept.get_by_role("radio", name="What is said about Vardholm?")).to_be_visible()
    ask(kept, "When was the lighthouse of Vardholm painted green?")
    expect(answer_of(kept).get_by_text("<img src=x").first).to_be_visible()
    assert kept.locator("[role=tabpanel] img").count() == 0
    assert kept.title().endswith("Glassbox")


def test_chunks_over_the_limit_are_warned_of(page):
    upload(page, "long.txt", ("A sentence about nothing in particular. " * 200).encode())
    expect(page.get_by_text(re.compile(r"\b1 document · \d+ chunk"))).to_be_visible()
    open_section(page, "Chunks")
    press_slider(page, "Chunk size (tokens)", "End")
    expect(page.get_by_text(re.compile("More than the 256 tokens that the model reads"))).to_be_visible()


def test_without_network_and_cache_the_page_says_so_in_one_sentence(browser, tmp_path):
    offline = {
        "GLASSBOX_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    with serve(tmp_path / "log.txt", **offline) as url, own_tab(browser) as page:
        page.goto(url)
        said = re.compile("all-MiniLM-L6-v2 is not in .* connect to the internet")
        expect(page.get_by_text(said)).to_be_visible()
