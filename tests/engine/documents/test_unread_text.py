import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.documents.document import Chunk
from engine.documents.unread_text import (
    TruncatedChunk,
    UnreadReport,
    limit_changes,
    limit_warning,
    read_ends,
    read_length,
    unread_report,
    unread_reports,
)
from engine.errors import InputError
from engine.tokenizers.encoding import Encoding
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


def losing(name, start, read_end, end):
    """A chunk of one token a character, read up to a character of its document."""
    chunk = Chunk(name, start, end, "x" * (end - start), end - start)
    return chunk, TruncatedChunk(chunk, read_end, end - read_end)


@pytest.fixture(scope="module")
def official_tokenizer(encoder):
    tokenizer = Tokenizer.from_file(str(model_path(encoder.name) / "tokenizer.json"))
    tokenizer.no_padding()
    return tokenizer


@given(text=TEXTS)
def test_reading_stops_where_the_official_tokenizer_truncates(encoder, official_tokenizer, text):
    reports = unread_reports(cut(text, encoder.tokenizer, [(0, len(text))]), encoder.tokenizer, LIMITS)
    official_tokenizer.no_truncation()
    whole = official_tokenizer.encode(text)
    for limit, report in zip(LIMITS, reports, strict=True):
        official_tokenizer.enable_truncation(limit)
        read = official_tokenizer.encode(text)
        assert report.n_tokens == len(whole.ids)
        n_lost = len(whole.ids) - len(read.ids)
        expected = [(read.offsets[-2][1], n_lost)] if n_lost else []
        assert [(loss.start, loss.tokens_lost) for loss in report.truncated] == expected


@pytest.mark.parametrize(("n_after", "n_read"), [(0, 3), (1, 2)])
def test_special_tokens_behind_a_text_take_its_last_places(n_after, n_read):
    letters = Encoding([1] * 5, list("abcde"), [(i, i + 1) for i in range(5)])
    assert read_length(letters, "abcde", 3, n_after) == n_read


def test_a_loss_is_a_span_of_the_document(encoder):
    text = "Before. " + "word " * 20 + "lost words at the end"
    [chunk] = cut(text, encoder.tokenizer, [(8, len(text))])
    [report] = unread_reports([chunk], encoder.tokenizer, [22])
    [loss] = report.truncated
    assert loss.text == " lost words at the end" == text[loss.start : chunk.end]
    assert loss.tokens_lost == 5
    assert read_ends([chunk], encoder.tokenizer, 22) == [loss.start]
    assert read_ends([chunk], encoder.tokenizer, 27) == [chunk.end]
    assert (report.n_tokens, report.tokens_lost) == (27, 5)
    assert (report.characters_unseen, report.n_characters) == (22, len(text) - 8)


def test_what_the_next_chunk_reads_is_not_unseen():
    first, lost_first = losing("d.md", 0, 60, 100)
    second, lost_second = losing("d.md", 80, 140, 180)
    report = unread_report([first, second], 60, [lost_first, lost_second])
    assert [(span.start, span.end) for span in report.unseen] == [(60, 80), (140, 180)]
    assert report.tokens_lost == 80
    assert report.characters_share == 60 / 180


def test_the_same_place_in_two_documents_is_two_places():
    first, lost = losing("a.md", 0, 10, 30)
    other = Chunk("b.md", 0, 30, "x" * 30, 30)
    report = unread_report([first, other], 30, [lost])
    assert [(span.document, span.start, span.end) for span in report.unseen] == [("a.md", 10, 30)]
    assert report.characters_share == 20 / 60


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 30), st.sampled_from("ab")),
        min_size=1,
        max_size=12,
    )
)
def test_unseen_is_what_some_chunk_holds_and_none_reads(spans):
    pairs = [losing(name, start, start + min(n_read, n), start + n) for start, n_read, n, name in spans]
    report = unread_report([chunk for chunk, _ in pairs], 1, [loss for _, loss in pairs if loss.tokens_lost])
    held = {(c.document, i) for c, _ in pairs for i in range(c.start, c.end)}
    # The same chunk can be drawn twice with other ends: the furthest loss of it is not of interest here.
    ends = {loss.chunk: loss.start for loss in report.truncated}
    read = {(c.document, i) for c, _ in pairs for i in range(c.start, ends.get(c, c.end))}
    unseen = [(span.document, i) for span in report.unseen for i in range(span.start, span.end)]
    assert len(unseen) == len(set(unseen))
    assert set(unseen) == held - read
    assert report.n_characters == len(held)


def test_the_worst_chunks_come_first_and_limits_in_the_order_asked_for(encoder):
    text = "word " * 300
    chunks = cut(text, encoder.tokenizer, [(0, 100), (100, 600), (600, 900)])
    wide, narrow = unread_reports(chunks, encoder.tokenizer, [64, 16])
    assert (wide.max_tokens, narrow.max_tokens) == (64, 16)
    assert [loss.chunk.start for loss in wide.truncated] == [100]
    assert [loss.tokens_lost for loss in narrow.truncated] == [102 - 16, 62 - 16, 22 - 16]
    assert narrow.n_chunks == 3


def test_without_chunks_nothing_is_lost(encoder):
    [report] = unread_reports([], encoder.tokenizer, [64])
    assert report == UnreadReport(64, 0, 0, 0, (), ())
    assert (report.tokens_lost, report.characters_share) == (0, 0)


def test_every_suggestion_leaves_nothing_lost(encoder):
    text = "word " * 400
    chunks = cut(text, encoder.tokenizer, [(0, 1490), (1490, 2000)])
    smaller, longer = limit_changes(chunks, max_tokens=256, max_positions=512)
    assert (smaller.chunk_tokens, smaller.max_tokens) == (256, 256)
    assert (longer.chunk_tokens, longer.max_tokens) == (None, 300)
    assert limit_warning(chunks, 256) is not None
    assert limit_warning(chunks, longer.max_tokens) is None
    assert limit_warning(chunks, longer.max_tokens - 1) is not None


def test_a_limit_that_the_model_cannot_take_is_not_suggested(encoder):
    chunks = cut("word " * 600, encoder.tokenizer, [(0, 3000)])
    assert [one.chunk_tokens for one in limit_changes(chunks, 256, 512)] == [256]


def test_where_nothing_is_lost_nothing_is_suggested(encoder):
    chunks = cut("word " * 254, encoder.tokenizer, [(0, 1270)])
    assert limit_changes(chunks, 256, 512) == []


@pytest.mark.parametrize(
    ("limits", "reason"), [([], "no limit"), ([64, 0], "limit of 0"), ([2], "3 or more")]
)
def test_limits_without_room_are_refused(encoder, limits, reason):
    with pytest.raises(InputError, match=reason):
        unread_reports([], encoder.tokenizer, limits)
