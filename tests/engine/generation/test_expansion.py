import pytest

from engine.errors import InputError
from engine.generation.expansion import expanded

QUESTION = "Why is the sky blue?"


def test_a_question_is_followed_by_a_passage_that_is_always_the_same(decoder):
    text = expanded(f"  {QUESTION}\n", decoder, max_new_tokens=16)
    question, passage = text.split("\n")
    assert question == QUESTION
    assert "sky" in passage.lower()
    assert len(decoder.tokenizer.encode(passage).ids) <= 16
    assert expanded(QUESTION, decoder, max_new_tokens=16) == text


@pytest.mark.parametrize("question", ["", " \n"])
def test_nothing_is_not_expanded(decoder, question):
    with pytest.raises(InputError, match="the question is empty"):
        expanded(question, decoder)
