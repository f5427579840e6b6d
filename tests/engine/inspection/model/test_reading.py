"""A reader's answer is taken apart: by probabilities, by leaving parts out, by attention to the question."""

import numpy as np
import pytest

from engine.inspection.model.reading import answer_attention, answer_tokens, without_sentences, without_words

QUESTION = "When was the tower finished?"
PASSAGE = "Is it old? The tower of Vardholm was finished in 1891. Forty masons built it. It is red."
ANSWER = (PASSAGE.index("1891"), PASSAGE.index("1891") + 4)
FILLER = "The tide rises, and the boats go out to sea. " * 40


def test_probabilities_sum_to_1_with_no_answer_and_their_logits_give_the_answers_score(reader):
    [window] = reader.scores(QUESTION, [PASSAGE])
    assert window.probabilities.shape == (1 + len(window.window.offsets), 2)
    np.testing.assert_allclose(window.probabilities.sum(axis=0), 1, rtol=1e-5)
    place = 1 + window.window.offsets.index(ANSWER)
    assert window.probabilities[place].min() > 0.5 > window.probabilities[0].max()
    found = answer_tokens([window], ANSWER)
    [best, *_] = reader.read(QUESTION, [PASSAGE])
    assert (best.start, best.end) == ANSWER
    assert found.score == pytest.approx(best.score, abs=1e-4)
    assert window.no_answer == pytest.approx(float(window.cls_logits.sum()))
    assert reader.scores(QUESTION, [" "]) == []
    assert answer_tokens([], ANSWER) is None


def test_an_answer_is_found_in_the_window_that_has_it(reader):
    windows = reader.scores(QUESTION, [FILLER + PASSAGE])
    answer = (len(FILLER) + ANSWER[0], len(FILLER) + ANSWER[1])
    [best, *_] = reader.read(QUESTION, [FILLER + PASSAGE])
    assert len(windows) > 1
    assert answer_tokens(windows, answer).score == pytest.approx(best.score, abs=1e-4)


def score_of_1891(reader, question, passage):
    """Over no answer, from the logits of the only window."""
    [window] = reader.windows(question, [passage])
    [logits] = reader.logits([window])
    start = passage.index("1891")
    place = window.first + window.offsets.index((start, start + 4))
    return logits[place].sum() - logits[0].sum()


def test_leaving_out_a_word_is_reading_the_shorter_question(reader):
    effects = without_words(reader, QUESTION, PASSAGE, ANSWER)
    assert [QUESTION[each.start : each.end] for each in effects] == QUESTION.strip("?").split()
    complete = score_of_1891(reader, QUESTION, PASSAGE)
    rest = " was the tower finished?"
    assert effects[0].drop == pytest.approx(complete - score_of_1891(reader, rest, PASSAGE), abs=1e-3)
    [best, *_] = reader.read(rest, [PASSAGE], [[(0, 10)]])
    assert effects[0].instead == PASSAGE[best.start : best.end]
    assert effects[0].score == pytest.approx(best.score, abs=1e-3)
    assert without_words(reader, "When?", PASSAGE, ANSWER) == []


def test_leaving_out_a_sentence_is_reading_the_shorter_passage(reader):
    effects = without_sentences(reader, QUESTION, PASSAGE, ANSWER)
    parts = [PASSAGE[each.start : each.end] for each in effects]
    assert "".join(parts) == PASSAGE
    complete = score_of_1891(reader, QUESTION, PASSAGE)
    for effect, part in zip(effects, parts, strict=True):
        rest = PASSAGE.replace(part, "")
        if "1891" in part:  # without its own sentence the answer has no score, but other words have
            assert np.isnan(effect.drop)
            assert effect.instead in rest
        else:
            assert effect.drop == pytest.approx(complete - score_of_1891(reader, QUESTION, rest), abs=1e-3)
            assert "1891" in effect.instead
    [only] = without_sentences(reader, QUESTION, "In 1891.", (3, 7))
    assert (only.instead, np.isnan(only.score)) == ("", True)


def test_shares_of_attention_are_those_of_the_trace(reader):
    [window] = reader.scores(QUESTION, [PASSAGE])
    found = answer_attention(reader, window.window, ANSWER)
    assert (found.question, found.answer) == (["when", "was", "the", "tower", "finished", "?"], ["1891"])
    own = window.window
    place = own.first + own.offsets.index(ANSWER)
    trace = reader.trace(QUESTION, PASSAGE, ["layers.*.attention.weights"])
    there, back = found.shares
    assert there.shape == back.shape == (reader.config.n_layers, reader.config.n_heads)
    weights = trace["layers.3.attention.weights"]
    np.testing.assert_allclose(there[3], weights[:, place, 1 : own.first - 1].sum(axis=-1), rtol=1e-5)
    np.testing.assert_allclose(back[3], weights[:, 1 : own.first - 1, place].mean(axis=-1), rtol=1e-5)
    np.testing.assert_array_equal(found.to_question[3, :, 0], weights[:, place, 1 : own.first - 1])
