"""The thought before an answer: told from it wherever the text is cut, and seen by nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextLengthError
from engine.generation.answering import ask
from engine.generation.decoder import Decoder
from engine.generation.generated_token import GeneratedToken
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.streamed_text import read_stream
from engine.generation.thinking import MAX_THOUGHT_TOKENS, ThoughtSplitter
from engine.generation.writer import Writer
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents

TEXT = "\n<think>\nIt says 1931 <b>.\n</think>\n\nIn 1931 </think> it was."
THOUGHT, ANSWER = "\nIt says 1931 <b>.\n", "\n\nIn 1931 </think> it was."


def divided(pieces, opened=False):
    splitter = ThoughtSplitter(opened)
    found = [*(splitter.push(piece) for piece in pieces), splitter.finish()]
    return tuple("".join(parts) for parts in zip(*found, strict=True))


def test_a_text_is_divided_wherever_it_is_cut():
    for first in range(len(TEXT)):
        for second in range(first, len(TEXT)):
            assert divided([TEXT[:first], TEXT[first:second], TEXT[second:]]) == (THOUGHT, ANSWER)
    assert divided(TEXT) == (THOUGHT, ANSWER)


@given(st.text("<>/think \nab").filter(lambda text: not text.lstrip().startswith("<think>")), st.data())
def test_a_text_without_a_thought_stays_as_it_is(text, data):
    cut = data.draw(st.integers(0, len(text)))
    assert divided([text[:cut], text[cut:]]) == ("", text)


@given(st.text("<>/think \nab"), st.text("<>/think \nab"))
def test_thought_and_answer_come_back(thought, answer):
    thought = thought.replace("</think>", "")
    assert divided(f"<think>{thought}</think>{answer}") == (thought, answer)


def tokens(*texts, reason="stop"):
    """A token for each text, with its place as id and log-probability."""
    last = len(texts) - 1
    return [GeneratedToken(i, text, -i, reason if i == last else None) for i, text in enumerate(texts)]


def collected(pieces, **settings):
    seen, thought = [], []
    written = read_stream(pieces, seen.append, thought.append, **settings)
    assert ("".join(seen).strip(), "".join(thought).strip()) == (written.text, written.thought)
    return written


@pytest.mark.parametrize(
    ("texts", "thought", "text", "n_thought"),
    [
        (("<think>", "\n", "so", "</think>", "\n\n", "It", " is", ""), "so", "It is", 4),
        ((" <", "think", ">so</", "think", ">It", " is", ""), "so", "It is", 4),  # a token with two parts
        (("<", "b>", "It", " is", ""), "", "<b>It is", 0),
    ],
)
def test_tokens_are_those_of_the_thought_and_those_of_the_answer(texts, thought, text, n_thought):
    written = collected(tokens(*texts))
    assert (written.thought, written.text) == (thought, text)
    assert written.thought_ids == tuple(range(n_thought))
    assert written.ids == tuple(range(n_thought, len(texts)))
    assert written.log_probabilities == tuple(-number for number in written.ids)


def test_the_answer_has_its_own_budget_behind_a_thought():
    stream = tokens("<think>", "a", "b", "c", "</think>", "It", " is", " so", "")
    for most, text, reason in ((2, "It is", "length"), (4, "It is so", "stop")):
        written = collected(stream, most_tokens=most)
        assert (written.text, written.finish_reason) == (text, reason)
    cut = collected(tokens("<think>", "so", " on", reason="length"))
    assert (cut.text, cut.ids, cut.thought_ids, cut.finish_reason) == ("", (), (0, 1, 2), "length")


def test_a_thinking_template_is_asked_for_a_thought(decoder):
    template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}"
        "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    )
    model = replace(decoder, chat_template=template)
    messages = [{"role": "user", "content": "Why?"}]
    assert model.chat_encoding(messages)[0].text == "Why?<think></think>"
    assert replace(model, thinks=True).chat_encoding(messages)[0].text == "Why?"


TOWER = DOCUMENTS["tower.md"]
SETTINGS = AnswerSettings(SearchSettings(min_relevance=0), max_new_tokens=24, write=True)


@pytest.fixture(scope="module")
def index(encoder):
    return index_of_documents({"tower.md": TOWER}, encoder)


@pytest.fixture
def says(monkeypatch):
    """A function that has decoders say a text, token by token, as if they had generated it."""

    def say(text):
        def generate(self, prompt, max_new_tokens=256, *arguments, **settings):
            ids = [*self.tokenizer.encode(text).ids, min(self.end_ids)][:max_new_tokens]
            for number in ids:
                ends = number in self.end_ids
                reason = "stop" if ends else "length" if number is ids[-1] else None
                written = "" if ends else self.tokenizer.token_bytes(number).decode()
                yield GeneratedToken(number, written, -1.0, reason)

        monkeypatch.setattr(Decoder, "generate", generate)

    return say


def answered(index, encoder, decoder, **settings):
    return ask(QUESTION, index, encoder, Writer(decoder), replace(SETTINGS, **settings))


def test_checks_and_confidence_see_the_answer_alone(index, encoder, decoder, says):
    says("It was finished in 1891.")
    plain = answered(index, encoder, decoder)
    says("<think>\nIt may have been Napoleon in 1777.\n</think>\n\nIt was finished in 1891.")
    for think in (False, True):  # a model may think although it was not asked to
        answer = answered(index, encoder, decoder, think=think, max_new_tokens=64)
        written, judged = answer.written, answer.judged
        assert answer.text == plain.text == "It was finished in 1891."
        assert "Napoleon" in written.thought
        assert (judged.confidence, judged.status) == (plain.judged.confidence, plain.judged.status)
        assert [each.is_supported for each in judged.sentences] == [True]
        assert answer.shown_text == plain.shown_text
        assert written.read_ids == (*written.prompt.ids, *written.thought_ids)
        assert answer.timed.writing.thought_tokens == len(written.thought_ids) > 5
        assert decoder.tokenizer.decode(written.thought_ids).startswith("<think>")


def test_a_thought_that_does_not_end_leaves_the_quotes(index, encoder, decoder, monkeypatch):
    monkeypatch.setattr("engine.generation.settings.MAX_THOUGHT_TOKENS", 8)
    template = decoder.chat_template + "{{ '<think>' }}"
    answer = answered(index, encoder, replace(decoder, chat_template=template), think=True, max_new_tokens=4)
    assert (answer.text, answer.written.ids, answer.written.finish_reason) == ("", (), "length")
    assert answer.written.thought
    assert len(answer.written.thought_ids) == 12
    assert answer.quotes[0].text == TOWER
    assert answer.shown_text == TOWER


def test_a_thought_has_to_fit_in_the_context(index, encoder, decoder):
    budget = decoder.max_tokens - SETTINGS.max_new_tokens
    answered(index, encoder, decoder, max_prompt_tokens=budget, write=False)
    with pytest.raises(ContextLengthError, match="or let the model not think first"):
        answered(index, encoder, decoder, max_prompt_tokens=budget - MAX_THOUGHT_TOKENS + 1, think=True)
