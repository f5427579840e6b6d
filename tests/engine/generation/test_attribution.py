import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.errors import ContextLengthError, InputError
from engine.generation.attribution import (
    DROP_WITHOUT_ANY,
    DROP_WITHOUT_ONE,
    LeaveOneOut,
    attention_to_passages,
    leave_one_out,
    support,
)
from engine.generation.passages import ids_without, passage_of_tokens
from engine.generation.prompt import assemble_prompt
from engine.generation.sentences import Sentence, sentences_of
from engine.retrieval.index import Hit

QUESTION = "When was the Vardholm tower finished?"
TOWER = "The Vardholm tower was finished in 1891 by forty masons who sang. Its clock came later."
BREAD = "Knead the dough for ten minutes, then let it rest overnight in a cold room, covered."
BEES = "The keeper of the lighthouse kept bees and sold 東京 honey 🙂 to visitors every summer."


def prompt_of(decoder, *texts):
    hits = [Hit(Chunk(f"{n}.md", 0, len(text), text, 20), 0.5) for n, text in enumerate(texts)]
    return assemble_prompt(QUESTION, hits, decoder, 1024)


def generated(decoder, prompt):
    ids = [step.token_id for step in decoder.generate(prompt.ids, max_new_tokens=24)]
    return [number for number in ids if number not in decoder.end_ids]


@pytest.fixture(scope="module")
def prompt(decoder):
    return prompt_of(decoder, BREAD, BEES, TOWER)


@pytest.fixture(scope="module")
def answer(decoder, prompt):
    return generated(decoder, prompt)


@pytest.fixture(scope="module")
def left_out(decoder, prompt, answer):
    return leave_one_out(decoder, prompt, answer)


@pytest.fixture(scope="module")
def attended(decoder, prompt, answer):
    return attention_to_passages(decoder, prompt, answer)


def test_each_reading_is_that_of_the_prompt_without_the_passages(decoder, prompt, answer, left_out):
    assert left_out.without.shape == (3, len(answer))
    for removed, row in (
        ([], left_out.complete),
        ([2], left_out.without[1]),
        ([1, 2, 3], left_out.without_any),
    ):
        ids = ids_without(prompt, removed, decoder)
        expected = decoder.log_probabilities([*ids, *answer], len(ids))
        np.testing.assert_allclose(row, expected, atol=5e-3)


def test_the_passage_that_holds_the_answer_makes_the_largest_drop(decoder, answer, left_out):
    assert "1891" in decoder.tokenizer.decode(answer)
    sentences = sentences_of(answer, decoder.tokenizer)
    assert (left_out.drops(sentences)[:, :-1].argmax(axis=1) == 2).all()
    assert {found.passages for found in support(left_out, sentences)} == {(3,)}  # decoys are not used


@pytest.mark.parametrize(("texts", "supported"), [((TOWER, TOWER), True), ((BREAD, BEES), False)])
def test_a_fact_told_twice_rests_on_both_passages_together_and_one_told_nowhere_on_none(
    decoder, texts, supported
):
    prompt = prompt_of(decoder, *texts)
    answer = generated(decoder, prompt)
    assert "Vardholm" in decoder.tokenizer.decode(answer)  # it answers all the same
    [found] = support(leave_one_out(decoder, prompt, answer), sentences_of(answer, decoder.tokenizer))
    assert found.passages == ()  # each can be missing
    assert found.together == found.is_supported == supported


def test_attention_is_shared_out_whole(decoder, prompt, answer, attended):
    config = decoder.config
    assert attended.shares.shape == (config.n_layers, config.n_heads, len(answer), 3 + 3)
    np.testing.assert_allclose(attended.shares.sum(axis=-1), 1, atol=1e-5)
    sentences = sentences_of(answer, decoder.tokenizer)
    np.testing.assert_allclose(attended.by_sentence(sentences, 2, None).sum(axis=-1), 1, atol=1e-5)
    [one_head, *_] = attended.by_sentence(sentences, 3, 1)
    expected = attended.shares[3, 1, : sentences[0].last_token].mean(axis=0)
    np.testing.assert_allclose(one_head, expected, atol=1e-6)


def test_attention_is_that_of_a_whole_trace(decoder, prompt, answer, attended):
    ids = [*prompt.ids, *answer]
    trace = decoder.trace(ids, keep=["layers.4.attention.weights"])
    weights = trace["layers.4.attention.weights"]  # (n_heads, n_tokens, n_tokens)
    queries = weights[:, len(prompt.ids) - 1 : -1]
    of_token = passage_of_tokens(prompt, decoder)
    for number in range(3):
        expected = queries[..., np.flatnonzero(of_token == number)].sum(axis=-1)
        np.testing.assert_allclose(attended.shares[4, :, :, number], expected, atol=2e-3)
    np.testing.assert_allclose(attended.shares[4, :, :, 3], queries[..., 0], atol=5e-3)
    expected = queries[..., len(prompt.ids) :].sum(axis=-1)
    np.testing.assert_allclose(attended.shares[4, :, :, 5], expected, atol=2e-3)


def test_an_answer_of_one_token_is_read_once_for_each_passage(decoder, prompt):
    attended = attention_to_passages(decoder, prompt, [5])
    assert attended.shares.shape[2] == 1
    np.testing.assert_allclose(attended.shares[..., -1], 0)  # no answer before it
    for read, n_passages in ((prompt, 3), (assemble_prompt(QUESTION, [], decoder, 1024), 0)):
        seen = []
        found = leave_one_out(decoder, read, [5], lambda done, total, seen=seen: seen.append((done, total)))
        assert found.without.shape == (n_passages, 1)
        assert seen == [(n, n_passages + 2) for n in range(1, n_passages + 3)]
    np.testing.assert_allclose(found.complete, found.without_any, atol=1e-5)


@pytest.mark.parametrize("measure", [attention_to_passages, leave_one_out])
def test_what_cannot_be_measured_is_said(decoder, prompt, measure):
    with pytest.raises(InputError, match="the answer is empty"):
        measure(decoder, prompt, [])
    too_long = [5] * decoder.max_tokens
    with pytest.raises(ContextLengthError, match="shorten the prompt or give fewer passages"):
        measure(decoder, prompt, too_long)


@pytest.mark.parametrize(
    ("one", "all_of_them", "passages", "supported"),
    [
        (DROP_WITHOUT_ONE, 0.0, (1,), True),
        (DROP_WITHOUT_ONE * 0.99, DROP_WITHOUT_ANY, (), True),
        (DROP_WITHOUT_ONE * 0.99, DROP_WITHOUT_ANY * 0.99, (), False),
        (-5.0, -5.0, (), False),
    ],
)
def test_a_sentence_is_supported_by_one_passage_or_by_all_together(one, all_of_them, passages, supported):
    found = LeaveOneOut(np.zeros(2), np.array([[-one, -one], [0, 0]]), np.full(2, -all_of_them))
    [verdict] = support(found, [Sentence("x", 0, 1, 0, 2)])
    assert verdict.passages == passages
    assert verdict.is_supported is supported
