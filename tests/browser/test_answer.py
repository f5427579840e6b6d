import json
import re

import pytest
import torch
from playwright.sync_api import expect
from transformers import GPT2Config, GPT2LMHeadModel

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import (
    NARROW,
    assert_fits,
    figures,
    fill_in,
    go_to,
    open_chapter,
    open_section,
    open_tab,
    settled,
    use_decoder,
    use_server,
    visit,
)
from tests.chat_server import chat_server
from tests.tokenizer_files import small_byte_level

ADDRESS = "answer"
EXAMPLE = "What is the price of insulin for seniors on Medicare?"
TABS = {"Tokens": 2, "What it rests on": 2, "Passages off": 0, "Where it comes from": 0}  # figures of each


@pytest.fixture(scope="module")
def answered(kept_tab, app):
    visit(kept_tab, app, "answer")
    kept_tab.get_by_text(EXAMPLE).click()
    kept_tab.get_by_role("tab", name="Tokens").wait_for()
    settled(kept_tab)
    return kept_tab


def ask(page, question):
    section = page.get_by_text("Ask another question")
    if section.count() and not page.get_by_role("textbox", name="Your question").is_visible():
        section.click()
    fill_in(page, "Your question", question)


def chips(page):
    return page.get_by_role("group", name="Tokens of the answer").get_by_role("button")


def test_another_token_leads_to_another_answer(answered):
    page = answered
    open_tab(page, "Tokens")
    last = chips(page).count() - 1
    expect(chips(page).nth(last)).to_have_text("■ end")
    chips(page).nth(2).click()
    settled(page)
    expect(chips(page).nth(2)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("stMetric").filter(has_text="Token 2")).to_be_visible()
    chips(page).nth(2).press("ArrowRight")
    expect(chips(page).nth(3)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stMetric").filter(has_text="Token 3")).to_be_visible()
    settled(page)  # what might have come instead is drawn after it
    other = page.get_by_role("radio").nth(1)
    word = page.get_by_role("radiogroup").locator("code").nth(1).inner_text()
    other.locator("xpath=ancestor::label").click()
    page.get_by_role("button", name="Continue from here with this one").click()
    settled(page)
    expect(page.get_by_text("The branch at token 3")).to_be_visible()
    first = page.locator("b[style*='outline']")
    expect(first).to_have_count(2)
    assert first.nth(1).inner_text().strip() == word.replace("␣", "").strip()
    expect(
        page.get_by_text(re.compile(r"^\d{3} tokens of prompt and answer were not read again"))
    ).to_be_visible()


def test_sentences_and_passages_are_marked_by_what_rests_on_what(answered):
    page = answered
    open_tab(page, "What it rests on")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text(re.compile(r"^S1 The price of insulin"))).to_contain_text(re.compile(r"\[\d\]"))
    expect(panel.get_by_text("nothing rests on it").first).to_be_visible()
    expect(panel.get_by_text("are too few to correlate")).to_be_visible()  # one sentence, three passages
    expect(panel.get_by_text("Attention alone is not an explanation")).to_be_visible()
    assert_usable(page)
    panel.get_by_text("One head", exact=True).click()
    settled(page)
    expect(page.get_by_role("slider", name="Head")).to_be_visible()
    expect(figures(page)).to_have_count(2)


def test_without_its_passage_the_answer_is_another(answered):
    page = answered
    open_tab(page, "Passages off")
    expect(page.get_by_text("All passages are on")).to_be_visible()
    page.locator("[data-testid=stCheckbox] label").filter(has_text="Passage 1").click()
    settled(page)
    expect(page.get_by_text("Without passage 1", exact=True)).to_be_visible()
    expect(page.locator("del, ins").first).to_be_visible()
    assert_usable(page)


def test_the_way_of_a_fact_is_measured_and_shown(wide):
    page = wide
    page.get_by_role("button", name="Measure 270 patches").click()
    expect(page.get_by_text("Layer 23, head 0 moves 57% of the 6.2 nats")).to_be_visible()
    expect(figures(page)).to_have_count(1)
    assert_usable(page)
    open_chapter(page, "What each layer would say")
    lens = page.get_by_role("region", name="The most probable next token of each layer")
    expect(lens.get_by_role("row").nth(1)).to_contain_text("layer 29")
    expect(lens.get_by_role("row").nth(1)).to_contain_text("␣Berlin 77%")
    assert_usable(page)
    page.set_viewport_size(NARROW)
    assert_fits(page)


def test_the_cache_of_the_answer_is_measured_and_its_size_shown(answered):
    go_to(answered, "KV cache")
    finding = answered.get_by_text(re.compile(r"on this machine the cache makes it [\d,.]+ times as fast"))
    assert float(re.search(r"([\d,.]+) times", finding.inner_text())[1].replace(",", "")) > 2
    expect(answered.get_by_text("The 9 query heads share 3 heads")).to_be_visible()


def test_the_answer_of_a_server_is_closed_and_may_be_asked_again(answered):
    page = answered
    go_to(page, "Ask your documents")
    with chat_server() as server:
        use_server(page, server.url)
        box = page.get_by_label("Your question")
        box.fill("What <b>price</b> has insulin for seniors on Medicare?")
        box.press("Enter")
        expect(page.get_by_text(re.compile("Written by mason"))).to_be_visible()
    go_to(page, "Inside the answer")
    expect(page.get_by_text("A server returns only text")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_count(0)
    page.get_by_role("button", name="Have the built-in model answer it").click()
    expect(page.get_by_role("tab", name="Tokens")).to_be_visible()
    expect(page.get_by_role("heading", name="What <b>price</b> has")).to_be_visible()  # markup stays text
    expect(chips(page).first).to_be_visible()


def test_what_cannot_be_looked_into_is_said(wide):
    wide.get_by_role("button", name="Ask", exact=True).click()
    expect(wide.get_by_text("Type a question first")).to_be_visible()
    ask(wide, "How do I bake sourdough bread?")
    expect(wide.get_by_text(re.compile(r"^The nearest passage .*: cosine"))).to_be_visible()
    expect(wide.get_by_role("tab")).to_have_count(0)
    expect(wide.locator("[data-testid=stException]")).to_have_count(0)


def save_tiny_model(folder):
    """A GPT-2 of random weights, with a chat template and room for 1,024 tokens."""
    tokenizer = small_byte_level(["the price of insulin for seniors on Medicare is set"])
    torch.manual_seed(0)
    ends = {"eos_token_id": 0, "bos_token_id": 0}
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 1024}
    GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.get_vocab_size(), **sizes, **ends)).save_pretrained(
        folder
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def test_a_model_of_the_users_own_with_a_short_context(wide, tmp_path):
    page = wide
    save_tiny_model(tmp_path)
    go_to(page, "Ask your documents")
    open_section(page, "Model")
    use_decoder(page, str(tmp_path))
    go_to(page, "Inside the answer")
    page.get_by_text(EXAMPLE).click()
    said = re.compile(rf"exceed the 1,024 positions of .*{re.escape(tmp_path.name)}.* by 128")
    expect(page.get_by_text(said)).to_be_visible()
    page.get_by_role("button", name=re.compile(r"Ask again with \d passages? in 896 tokens")).click()
    page.get_by_role("tab", name="Tokens").wait_for()
    for name, n_figures in TABS.items():
        open_tab(page, name)
        expect(figures(page)).to_have_count(n_figures)
        expect(page.get_by_test_id("stException")).to_have_count(0)
    for title, n_figures in (("KV cache", 1), ("Positions", 5)):
        go_to(page, title)
        expect(figures(page)).to_have_count(n_figures)
        expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("(learned) lower the score")).to_be_visible()
