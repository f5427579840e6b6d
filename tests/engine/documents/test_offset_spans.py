import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.token_spans import token_spans
from engine.tokenizers.tokenizer_file import read_tokenizer
from tests.sentence_transformer_folders import (
    WORDS,
    modern_bert_tokenizer,
    qwen3_tokenizer,
    roberta_tokenizer,
    unigram_tokenizer,
)

MADE = (roberta_tokenizer, modern_bert_tokenizer, qwen3_tokenizer, unigram_tokenizer)
TEXTS = st.lists(
    st.sampled_from([*WORDS.split(" "), "\n", "  ", '").', "🙂🙂", "東京は", ""]), max_size=30
).map(" ".join)


@pytest.fixture(scope="module", params=MADE, ids=lambda make: make.__name__)
def tokenizer(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    request.param().save(str(path))
    return read_tokenizer(path)


@given(text=TEXTS)
def test_the_tokens_of_all_words_are_those_of_the_text(tokenizer, text):
    spans = token_spans(text, tokenizer)
    assert spans.n_tokens == len(tokenizer.encode(text)) or not text.strip()
    covered = {
        place for start, end in zip(spans.starts, spans.ends, strict=True) for place in range(start, end)
    }
    assert covered >= {place for place, character in enumerate(text) if not character.isspace()}
    assert (np.diff(spans.starts) > 0).all()
    assert (spans.starts[1:] >= spans.ends[:-1]).all()


@given(text=TEXTS)
def test_no_token_lies_in_two_words(tokenizer, text):
    spans = token_spans(text, tokenizer)
    borders = set(spans.starts.tolist())
    for start, end in tokenizer.encode(text).offsets:
        letters = [place for place in range(start, end) if not text[place].isspace()]
        assert not borders & set(letters[1:])
