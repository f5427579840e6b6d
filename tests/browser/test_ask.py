import re

from playwright.sync_api import expect

from tests.browser.conftest import WIDE, serve

ANSWERED = "What does the CarbFix project do with carbon dioxide?"
UNANSWERED = "How do I bake sourdough bread?"
TABS = ("Sources", "In the documents", "Timing", "Exact prompt")

expect.set_options(timeout=60_000)


def ask(page, question):
    box = page.get_by_label("Your question")
    box.fill(question)
    box.press("Enter")
    expect(page.get_by_role("heading", name=question)).to_be_visible()


def pick_example(page, question):
    page.get_by_test_id("stButtonGroup").get_by_text(question).click()


def upload(page, name, content):
    chooser = page.locator("input[type=file]")
    expect(chooser).to_have_count(1)  # for a moment after an upload the old one is still there
    chooser.set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})


def open_section(page, name):
    page.locator("[data-testid=stSidebar] summary", has_text=name).click()


def move_slider(page, label, key, times):
    thumb = page.get_by_role("slider", name=label)
    thumb.focus()
    for _ in range(times):
        thumb.press(key)
    expect(page.locator("[data-testid=stStatusWidget]")).to_have_count(0)


def test_the_bundled_corpus_is_ready_at_first_load(any_page):
    expect(any_page.get_by_text(re.compile(r"4 documents · \d+ chunks"))).to_be_visible()


def test_an_example_question_is_answered_from_passages_that_are_shown(any_page):
    pick_example(any_page, ANSWERED)
    expect(any_page.get_by_role("tab", name="Sources")).to_be_visible()
    panel = any_page.get_by_role("tabpanel")
    expect(panel.locator("mark").first).to_contain_text("[1]")
    expect(
        panel.get_by_text(re.compile(r"chatlogs\.md · characters \d+–\d+ · score 0\.\d{3}")).first
    ).to_be_visible()
    assert "CarbFix" in any_page.locator("mark").first.inner_text()


def test_nothing_is_wider_than_the_screen(any_page):
    pick_example(any_page, ANSWERED)
    for name in TABS:
        any_page.get_by_role("tab", name=name).click()
        any_page.wait_for_timeout(500)
        width = any_page.evaluate("document.documentElement.scrollWidth")
        assert width <= any_page.viewport_size["width"], name


def test_the_exact_prompt_and_the_timing_of_every_stage_are_shown(page):
    ask(page, ANSWERED)
    page.get_by_role("tab", name="Exact prompt").click()
    expect(page.get_by_role("tabpanel").get_by_text(f"{ANSWERED} Answer in one sentence.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ tokens in, \d+ tokens out"))).to_be_visible()
    page.get_by_role("tab", name="Timing").click()
    for stage in ("Tokenize question", "Encode question", "Search index", "Read prompt", "Generate answer"):
        expect(page.get_by_text(stage, exact=True)).to_be_visible()


def test_sources_are_marked_in_their_document(page):
    ask(page, ANSWERED)
    page.get_by_role("tab", name="In the documents").click()
    expect(page.get_by_role("tabpanel").locator("mark").first).to_be_visible()


def test_an_unanswerable_question_is_refused_and_the_threshold_can_be_moved(page):
    pick_example(page, UNANSWERED)
    expect(page.get_by_text("Nothing in these documents comes close enough")).to_be_visible()
    open_section(page, "Search")
    move_slider(page, "Relevance threshold", "ArrowLeft", 25)
    ask(page, UNANSWERED)
    expect(page.get_by_role("tab", name="Sources")).to_be_visible()


def test_a_second_question_neither_loads_nor_embeds_again(page):
    ask(page, ANSWERED)
    expect(page.get_by_role("tab", name="Sources")).to_be_visible()
    page.evaluate(
        """() => { window.seen = ''; new MutationObserver(() => {
            const work = /(Embedding|Loading the|Downloading) .*/.exec(document.body.innerText);
            if (work) window.seen += work[0];
        }).observe(document.body, {subtree: true, childList: true, characterData: true}) }"""
    )
    ask(page, "What days is the Viktor Wynd Museum closed?")
    expect(page.get_by_role("tab", name="Sources")).to_be_visible()
    assert page.evaluate("window.seen") == ""


def test_an_uploaded_document_is_searched_and_its_markup_stays_text(page):
    text = "The lighthouse of Vardholm was painted green in 1931. <img src=x onerror='document.title=1'>"
    upload(page, "lighthouse.md", text.encode())
    expect(page.get_by_text(re.compile("5 documents"))).to_be_visible()
    ask(page, "When was the lighthouse of Vardholm painted green?")
    expect(page.locator("mark").first).to_contain_text("<img src=x")
    assert page.locator("[role=tabpanel] img").count() == 0
    assert page.title() == "Glassbox"


def test_files_that_cannot_be_read_are_named_and_change_nothing(page):
    for name, content, reason in (
        ("empty.txt", b"", "empty.txt is empty"),
        ("picture.md", b"\x89PNG\r\n\x1a\n\0\0\0", "picture.md is a binary file"),
        ("latin.txt", "caf\xe9".encode("latin-1"), "latin.txt is not UTF-8 text"),
    ):
        upload(page, name, content)
        expect(page.get_by_text(reason)).to_be_visible()
    expect(page.get_by_text(re.compile("4 documents"))).to_be_visible()


def test_a_file_over_the_limit_is_refused(page):
    upload(page, "large.txt", b"word " * (5 * 1024**2))
    expect(page.get_by_text("must be 20.0MB or smaller")).to_be_visible()
    expect(page.get_by_text(re.compile("4 documents"))).to_be_visible()


def test_a_blank_question_asks_for_one(page):
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("Type a question first")).to_be_visible()


def test_chunks_over_the_limit_are_warned_of(page):
    upload(page, "long.txt", ("A sentence about nothing in particular. " * 200).encode())
    expect(page.get_by_text(re.compile("5 documents"))).to_be_visible()
    for name in ("chatlogs.md", "inside_the_pipeline.md", "state_of_the_union.md", "wikitexts.md"):
        page.get_by_role("button", name=re.compile(f"^Remove {name}|{name}, press")).click()
    expect(page.get_by_text(re.compile("1 documents"))).to_be_visible()
    open_section(page, "Chunks")
    move_slider(page, "Chunk size (tokens)", "End", 1)
    expect(page.get_by_text(re.compile("have more than the 256 tokens the model reads"))).to_be_visible()


def test_without_network_and_cache_the_page_says_so_in_one_sentence(browser, tmp_path):
    offline = {
        "GLASSBOX_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    log = tmp_path / "log.txt"
    with serve(log, **offline) as url:
        page = browser.new_page(viewport=WIDE)
        page.goto(url)
        expect(
            page.get_by_text(re.compile("all-MiniLM-L6-v2 is not in .* connect to the internet"))
        ).to_be_visible()
        page.close()
    assert "Traceback" not in log.read_text()
