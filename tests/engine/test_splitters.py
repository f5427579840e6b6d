from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.budget import limit_warning, over_limit
from engine.documents.document import Document
from engine.documents.splitters import split_by_tokens
from engine.errors import InputError

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.lists(
        st.sampled_from(
            ["retrieval", "unhappily", "한국어", "東京", "🙂", "e\u0301", "x" * 150, "\x00", "\n\n", "."]
        ),
        max_size=80,
    ).map(" ".join),
    st.text("ab한é ", max_size=200),
)


@given(text=TEXTS, chunk_tokens=st.integers(8, 40), overlap=st.integers(0, 5))
def test_chunks_keep_their_place_cover_the_text_and_fit(encoder, text, chunk_tokens, overlap):
    document = Document("d.md", text)
    chunks = split_by_tokens(document, encoder.tokenizer, chunk_tokens, overlap)
    covered = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert chunk.n_tokens == len(encoder.tokenizer.encode(chunk.text)) <= chunk_tokens
        covered.update(range(chunk.start, chunk.end))
    if chunks:
        assert all(i in covered for i, character in enumerate(text) if not character.isspace())
    assert all(a.start < b.start and a.end <= b.end for a, b in pairwise(chunks))


def test_chunks_end_between_words_and_repeat_the_overlap(encoder):
    text = " ".join(["unhappily retrieved passages"] * 60)
    chunks = split_by_tokens(Document("d.md", text), encoder.tokenizer, chunk_tokens=32, overlap=8)
    for before, after in pairwise(chunks):
        shared = text[after.start : before.end]
        assert 0 < len(encoder.tokenizer.encode(shared)) - 2 <= 8
        assert text[before.end] == " "


def test_without_overlap_nothing_is_repeated(encoder):
    text = "one two three four five six seven eight nine ten " * 20
    chunks = split_by_tokens(Document("d.md", text), encoder.tokenizer, chunk_tokens=16, overlap=0)
    assert all(a.end <= b.start for a, b in pairwise(chunks))


def test_a_chunk_of_the_models_limit_just_fits_it(encoder):
    chunks = split_by_tokens(Document("d.md", "word " * 1000), encoder.tokenizer, chunk_tokens=256)
    assert max(chunk.n_tokens for chunk in chunks) == 256
    assert limit_warning(chunks, encoder.max_tokens) is None


def test_chunks_over_the_limit_are_counted_with_what_they_lose(encoder):
    chunks = split_by_tokens(Document("d.md", "word " * 1000), encoder.tokenizer, chunk_tokens=300, overlap=0)
    assert len(over_limit(chunks, 256)) == 3
    warning = limit_warning(chunks, 256)
    assert warning.startswith("3 of 4 chunks have more than the 256 tokens the model reads, the longest 300")
    assert "132 tokens would never be searched" in warning


@pytest.mark.parametrize(("size", "overlap"), [(7, 0), (0, 0), (16, 14), (16, -1)])
def test_settings_that_leave_no_room_are_refused(encoder, size, overlap):
    with pytest.raises(InputError, match=r"chunk size|overlap"):
        split_by_tokens(Document("d.md", "text"), encoder.tokenizer, size, overlap)


@pytest.mark.parametrize("text", ["\ue000" * 40, "\u200b", "\u0301"])
def test_text_that_the_tokenizer_drops_is_still_in_a_chunk(encoder, text):
    chunks = split_by_tokens(Document("d.md", text), encoder.tokenizer, chunk_tokens=16, overlap=0)
    assert "".join(chunk.text for chunk in chunks) == text


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_blank_document_has_no_chunks(encoder, text):
    assert split_by_tokens(Document("d.md", text), encoder.tokenizer) == []
