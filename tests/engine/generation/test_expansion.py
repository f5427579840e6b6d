import pytest

from engine.errors import InputError
from engine.generation.expansion import EXPANSION_TOKENS, expanded

QUESTION = "Why is the sky blue?"


def test_a_question_is_followed_by_a_passage_that_is_always_the_same(decoder):
    text = expanded(f"  {QUESTION}\n", decoder)
    question, passage = text.split("\n")
    assert question == QUESTION
    assert "sky" in passage.lower()
    assert len(decoder.tokenizer.encode(passage).ids) <= EXPANSION_TOKENS
    assert expanded(QUESTION, decoder) == text


@pytest.mark.parametrize("question", ["", " \n"])
def test_nothing_is_not_expanded(decoder, question):
    with pytest.raises(InputError, match="the question is empty"):
        expanded(question, decoder)
