import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.documents import truncation
from engine.documents.document import Chunk
from engine.errors import InputError
from engine.weights.fetch import model_path

LIMITS = (16, 32, 64)
WORDS = st.sampled_from(
    ["retrieval", "unhappily", "한국어", "東京", "e\u0301té", "🙂", ".", "x" * 150, "[MASK]"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=70).map(" ".join)


def cut(text, tokenizer, spans, document="d.md"):
    """Chunks of a text at some spans."""
    counts = [len(ids) for ids in tokenizer.ids_batch([text[start:end] for start, end in spans])]
    return [
        Chunk(document, start, end, text[start:end], n) for (start, end), n in zip(spans, counts, strict=True)
    ]


@pytest.fixture(scope="module")
def official_tokenizer(encoder):
    tokenizer = Tokenizer.from_file(str(model_path(encoder.name) / "tokenizer.json"))
    tokenizer.no_padding()
    return tokenizer


@given(text=TEXTS)
def test_reading_stops_where_the_official_tokenizer_truncates(encoder, official_tokenizer, text):
    reports = truncation.truncation_reports(
        cut(text, encoder.tokenizer, [(0, len(text))]), encoder.tokenizer, LIMITS
    )
    official_tokenizer.no_truncation()
    whole = official_tokenizer.encode(text)
    for limit, report in zip(LIMITS, reports, strict=True):
        official_tokenizer.enable_truncation(limit)
        read = official_tokenizer.encode(text)
        assert report.n_tokens == len(whole.ids)
        n_truncated = len(whole.ids) - len(read.ids)
        expected = [(read.offsets[-2][1], n_truncated)] if n_truncated else []
        assert [(each.start, each.tokens_truncated) for each in report.truncated] == expected


def test_the_truncated_text_is_a_span_of_the_document(encoder):
    text = "Before. " + "word " * 20 + "lost words at the end"
    [chunk] = cut(text, encoder.tokenizer, [(8, len(text))])
    [report] = truncation.truncation_reports([chunk], encoder.tokenizer, [22])
    [truncated] = report.truncated
    assert truncated.text == " lost words at the end" == text[truncated.start : chunk.end]
    assert truncation.read_ends([chunk], encoder.tokenizer, 22) == [truncated.start]
    assert truncation.read_ends([chunk], encoder.tokenizer, 27) == [chunk.end]
    assert (report.n_tokens, report.tokens_truncated) == (27, 5)
    assert (report.characters_unread, report.n_characters) == (22, len(text) - 8)


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 30), st.sampled_from("ab")),
        min_size=1,
        max_size=12,
        unique_by=lambda span: (span[0], span[2], span[3]),
    )
)
def test_unread_is_what_some_chunk_holds_and_none_reads(spans):
    chunks = {Chunk(name, start, start + n, "x" * n, n): min(n, n_read) for start, n_read, n, name in spans}
    truncated = [
        truncation.TruncatedChunk(chunk, chunk.start + n_read, chunk.n_tokens - n_read)
        for chunk, n_read in chunks.items()
        if n_read < chunk.n_tokens
    ]
    report = truncation.truncation_report(list(chunks), 1, truncated)
    whole = {(chunk.document, i) for chunk in chunks for i in range(chunk.start, chunk.end)}
    read = {(c.document, i) for c, n_read in chunks.items() for i in range(c.start, c.start + n_read)}
    assert (report.characters_unread, report.n_characters) == (len(whole - read), len(whole))
    assert report.share_unread == len(whole - read) / len(whole)


def test_chunks_over_the_limit_are_warned_of(encoder):
    chunks = cut("word " * 400, encoder.tokenizer, [(0, 1490), (1490, 2000)])
    assert "1 of 2 chunks, the longest 300" in truncation.limit_warning(chunks, 299)
    assert truncation.limit_warning(chunks, 300) is None


@pytest.mark.parametrize(
    ("limits", "reason"), [([], "no limit"), ([64, 0], "limit of 0"), ([2], "3 or more")]
)
def test_limits_without_room_are_refused(encoder, limits, reason):
    with pytest.raises(InputError, match=reason):
        truncation.truncation_reports([], encoder.tokenizer, limits)
