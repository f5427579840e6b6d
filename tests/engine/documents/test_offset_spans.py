import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.documents.splitters import SPLITTERS, Splitting, split
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


def test_the_blank_in_front_of_a_word_is_no_part_of_it(tokenizer):
    spans = token_spans("the cat", tokenizer)
    assert [("the cat")[a:b] for a, b in zip(spans.starts, spans.ends, strict=True)] == ["the", "cat"]


@pytest.mark.parametrize("method", [name for name in SPLITTERS if name != "semantic"])
def test_every_splitter_cuts_by_the_tokens_of_the_model(tokenizer, method):
    document = Document("d", ". ".join([WORDS] * 6))
    chunks = split(document, tokenizer, Splitting(method, 40, 0))
    assert len(chunks) > 5
    for chunk in chunks:
        assert document.text[chunk.start : chunk.end] == chunk.text
        # A word that follows no blank may have other tokens than in the text.
        assert abs(len(tokenizer.encode(chunk.text)) - chunk.n_tokens) <= 3
