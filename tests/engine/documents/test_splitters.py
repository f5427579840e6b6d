import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document, Section
from engine.documents.splitters import SPLITTERS, Splitting, split
from engine.documents.token_spans import token_spans
from engine.errors import InputError
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.one_document import parse_document

NASTY = [
    "retrieval", "unhappily", "don't", "한국어", "東京", "。", "🙂", "x" * 150, "한국어" * 30, "Hello. ",
    "≠", "ß", "e\u0301", "\u0301", "\u0316", "\u0903", "\u200b", "\ue000", "\U0001d15e", "\x00", "\x0b",
    "\x1c", "\x85", "##ing", "snake_case", "[12]", "R2-D2", "don’t", "naïve", "İ", "x.y", "\x01",
    "[UNK]", "[mask]", "[MASK]", "[SEP]", "[MAS", "K]", " ", " ", "  ", "\n", "\n\n", "\u00a0", "\u2028",
    ".", "-", "a", "B",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(NASTY), max_size=60).map("".join),
    st.lists(st.sampled_from(NASTY), max_size=60).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=100),
)
PLACES = st.lists(st.integers(0, 150), max_size=4, unique=True).map(sorted)


def embed(texts):
    """Unit vectors that tell short texts from long ones."""
    vectors = np.array([[len(text) % 7 + 1, len(text) % 3, text.count("a")] for text in texts], np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def texts_of(text, encoder, method, chunk_tokens, overlap=0, sections=()):
    document = Document("d.md", text, sections=tuple(sections))
    return [
        chunk.text
        for chunk in split(document, encoder.tokenizer, Splitting(method, chunk_tokens, overlap), embed)
    ]


def check_chunks(document, chunks, tokenizer, chunk_tokens):
    """What holds for the chunks of every method."""
    text, covered = document.text, set()
    for chunk, ids in zip(chunks, tokenizer.ids_batch([chunk.text for chunk in chunks]), strict=True):
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert chunk.n_tokens == len(ids) <= chunk_tokens
        section = document.section_at(chunk.start)
        assert (chunk.headings, chunk.page) == (section.headings, section.page)
        covered.update(range(chunk.start, chunk.end))
    assert all(place in covered for place, character in enumerate(text) if not character.isspace())
    assert all(a.start < b.start for a, b in pairwise(chunks))


def check_counts(text, data, tokenizer):
    """Spans between words are counted as the tokenizer counts them."""
    tokens = token_spans(text, tokenizer)
    borders = st.sampled_from([0, len(text), *tokens.starts.tolist(), *tokens.ends.tolist()])
    spans = [(0, len(text)), *(sorted(data.draw(st.tuples(borders, borders))) for _ in range(4))]
    ids = tokenizer.ids_batch([text[start:end] for start, end in spans])
    assert [tokens.count(start, end) for start, end in spans] == [len(each) for each in ids]


@given(text=TEXTS, data=st.data())
def test_a_span_between_words_is_counted_as_the_tokenizer_counts_it(encoder, text, data):
    check_counts(text, data, encoder.tokenizer)


def test_a_long_text_is_measured_as_the_tokenizer_reads_it(encoder):
    lines = [
        f"Line {i} of a long text, with words{i % 977} that hardly repeat: 東京{i}。" for i in range(20_000)
    ]
    text = "\n".join(lines)  # several blocks
    tokens = token_spans(text, encoder.tokenizer)
    ids = encoder.tokenizer.ids_batch(lines)
    assert tokens.totals[-1] == sum(len(each) - encoder.tokenizer.n_special for each in ids)
    place = text.index(lines[19_000])
    assert tokens.count(place, place + len(lines[19_000])) == len(ids[19_000])


@pytest.mark.parametrize("text", ["東" * 2000, "a." * 2000, "한" * 2000, "[MASK]" * 700])
def test_a_text_without_blanks_is_measured_as_the_tokenizer_reads_it(encoder, text):
    tokens = token_spans(text, encoder.tokenizer)
    assert tokens.count(0, len(text)) == len(encoder.tokenizer.ids_batch([text])[0])


def tokenizer_with(folder, added=(), **changed):
    """The default tokenizer, set otherwise: ``added`` are (token, single_word, normalized)."""
    content = json.loads((model_path(DEFAULT_ENCODER) / "tokenizer.json").read_text(encoding="utf-8"))
    for number, (token, single_word, normalized) in enumerate(added, start=len(content["model"]["vocab"])):
        flags = {"single_word": single_word, "normalized": normalized}
        entry = {"id": number, "content": token, "lstrip": False, "rstrip": False, "special": False} | flags
        content["added_tokens"].append(entry)
    for part in (content["normalizer"], content["model"]):
        part.update({key: value for key, value in changed.items() if key in part})
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return WordPieceTokenizer(folder / "tokenizer.json")


OTHER_TOKENIZERS = {
    "cased": {"lowercase": False},
    "with accents": {"strip_accents": False},
    "with control characters": {"clean_text": False},
    "of short words": {"max_input_chars_per_word": 4},
    "with tokens across words": {"added": [("o.w", False, False), ("é-X", False, True)]},
    "with tokens in words": {"added": [("ell", False, True), ("wxo", True, False), ("[mask", False, False)]},
}
PLAIN = [*"aAoOwéÉxX.-_[]#’1 ", "ell", "wxo", "_wxo", "hello", "o.w", "é-x", "[mask]", "[MASK]", "##ing", "İ"]
PLAIN += ["\x01", "\x1c", "a\x1c "]


@pytest.mark.parametrize("changed", OTHER_TOKENIZERS.values(), ids=OTHER_TOKENIZERS)
def test_plain_words_are_counted_as_any_tokenizer_counts_them(tmp_path, changed):
    tokenizer = tokenizer_with(tmp_path, **changed)

    @given(st.lists(st.sampled_from(PLAIN), max_size=30).map("".join), st.data())
    def check(text, data):
        check_counts(text, data, tokenizer)

    check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't R2-D2", ["don", "'", "t", "R2", "-", "D2"]),
        ("naïve—“ok”", ["naïve", "—", "“", "ok", "”"]),
        ("a_b ##ing", ["a", "_", "b", "#", "#", "ing"]),
        ("see [MASK].", ["see", "[MASK]", "."]),
    ],
)
def test_words_end_at_punctuation_and_added_tokens(encoder, text, words):
    tokens = token_spans(text, encoder.tokenizer)
    assert [text[a:b] for a, b in zip(tokens.starts, tokens.ends, strict=True)] == words


@given(text=TEXTS, data=st.data())
@pytest.mark.parametrize("method", SPLITTERS)
def test_chunks_keep_their_place_cover_the_text_and_fit(encoder, method, text, data):
    places, size = data.draw(PLACES), data.draw(st.integers(8, 40))
    sections = (Section(place, (f"h{place}",), place) for place in places)
    document = Document("d.md", text, sections=tuple(sections))
    splitting = Splitting(method, size, data.draw(st.integers(0, 5)))
    chunks = split(document, encoder.tokenizer, splitting, embed)
    check_chunks(document, chunks, encoder.tokenizer, size)
    assert all(a.end <= b.end for a, b in pairwise(chunks))
    if method != "sliding" and not splitting.overlap:
        assert all(a.end <= b.start for a, b in pairwise(chunks))
    assert chunks == split(
        document, encoder.tokenizer, splitting, embed, tokens=token_spans(text, encoder.tokenizer)
    )


@given(text=TEXTS, data=st.data())
@pytest.mark.parametrize("method", SPLITTERS)
def test_small_chunks_lie_within_their_large_ones(encoder, method, text, data):
    size = data.draw(st.integers(8, 30))
    parent_tokens = size + data.draw(st.integers(0, 60))
    document = Document("d.md", text)
    splitting = Splitting(method, size, data.draw(st.integers(0, 5)))
    chunks = split(document, encoder.tokenizer, splitting, embed, parent_tokens=parent_tokens)
    check_chunks(document, chunks, encoder.tokenizer, size)
    parents = list(dict.fromkeys(chunk.parent for chunk in chunks))
    check_chunks(document, parents, encoder.tokenizer, parent_tokens)
    assert all(a.end <= b.start for a, b in pairwise(parents))
    for chunk in chunks:
        assert chunk.parent.start <= chunk.start <= chunk.end <= chunk.parent.end
        assert chunk.parent.parent is None


def test_sentences_are_packed_whole_and_repeated_whole(encoder):
    text = "One two three. Four five six. Seven eight nine. Ten."  # 4, 4, 4 and 2 tokens
    assert texts_of(text, encoder, "sentences", 10) == [
        "One two three. Four five six.",
        "Seven eight nine. Ten.",
    ]
    assert texts_of(text, encoder, "sentences", 10, overlap=4) == [
        "One two three. Four five six.",
        "Four five six. Seven eight nine.",
        "Seven eight nine. Ten.",
    ]
    assert texts_of(text, encoder, "sentences", 10, overlap=3) == texts_of(text, encoder, "sentences", 10)


def test_paragraphs_are_packed_whole_and_long_ones_cut_into_sentences(encoder):
    text = "One.\n\nTwo three.\n \nFour five six. Seven eight nine. Ten.\n\nEleven."
    assert texts_of(text, encoder, "paragraphs", 10) == [
        "One.\n\nTwo three.",
        "Four five six. Seven eight nine.",
        "Ten.",
        "Eleven.",
    ]


def test_the_recursive_splitter_cuts_paragraphs_then_lines_then_sentences_then_words(encoder):
    text = "One.\n\nTwo three\nfour five\nsix seven eight. Nine ten. A b c d e f g h\n\nZero."
    assert texts_of(text, encoder, "recursive", 8) == [
        "One.",
        "Two three\nfour five",
        "six seven eight.",
        "Nine ten.",
        "A b c d e f",
        "g h",
        "Zero.",
    ]


def test_sections_are_never_mixed_but_pages_of_one_are(encoder):
    text = "# A\n\none two\n\nthree\n\n# B\n\nfour five six seven eight nine\n\n# B\n\nten"
    second, third = text.index("# B"), text.rindex("# B")
    sections = [
        Section(0, ("A",), 1),
        Section(text.index("three"), ("A",), 2),
        Section(second, ("B",), 2),
        Section(third, ("B",), 2),
    ]
    chunks = split(
        Document("d.md", text, sections=tuple(sections)), encoder.tokenizer, Splitting("markdown", 10, 0)
    )
    assert [(chunk.text, chunk.headings, chunk.page) for chunk in chunks] == [
        ("# A\n\none two\n\nthree", ("A",), 1),
        ("# B\n\nfour five six seven eight nine", ("B",), 2),
        ("# B\n\nten", ("B",), 2),
    ]
    assert len(texts_of(text, encoder, "paragraphs", 64, sections=sections)) == 1


@pytest.mark.parametrize("method", SPLITTERS)
def test_no_chunk_crosses_the_border_of_a_row(encoder, method):
    table = parse_document("a.csv", b"Item,Price,About\nOak,4,It is hard. It is old.\nAsh,5,Light.\n" * 9)
    borders = [section.start for section in table.sections]
    for parent_tokens in (0, 128):
        splitting = Splitting(method, 64, 16)
        chunks = split(table, encoder.tokenizer, splitting, embed, parent_tokens=parent_tokens)
        assert all(table.row_at(chunk.start)[1] >= chunk.end for chunk in chunks)
        assert {chunk.start for chunk in chunks} >= set(borders)
        assert [chunk.headings for chunk in chunks if chunk.start == borders[1]] == [("row 3",)]


def test_topics_change_where_neighbours_are_least_alike(encoder):
    sentences = [f"Cats are animals {i}." for i in range(6)] + [f"Bonds are papers {i}." for i in range(6)]
    vectors = {"Cats": [1, 0], "Bonds": [0, 1]}

    def topics(texts):
        return np.array([vectors[text.split()[0]] for text in texts], np.float32)

    document = Document("d.md", " ".join(sentences))
    chunks = split(document, encoder.tokenizer, Splitting("semantic", 256, 0), topics)
    assert [chunk.text for chunk in chunks] == [" ".join(sentences[:6]), " ".join(sentences[6:])]
    chunks = split(document, encoder.tokenizer, Splitting("semantic", 20, 0), topics)
    assert [len(chunk.text.split(". ")) for chunk in chunks] == [3, 3, 3, 3]


@pytest.mark.parametrize("text", ["\ue000" * 40, "\u200b", "\u0301"])
def test_text_that_the_tokenizer_drops_is_still_in_a_chunk(encoder, text):
    assert texts_of(text, encoder, "fixed", 16) == [text]


@pytest.mark.parametrize(
    ("splitting", "parent_tokens", "reason"),
    [
        (Splitting("fixed", 7), 0, "chunk size"),
        (Splitting("fixed", 16, 14), 0, "overlap"),
        (Splitting("fixed", 16, -1), 0, "overlap"),
        (Splitting("fixed", 64), 63, "parent size 63 is smaller than the chunk size 64"),
        (Splitting("pages"), 0, r"splitter 'pages' is not one of fixed, recursive, sentences"),
        (Splitting("semantic"), 0, "give embed"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(encoder, splitting, parent_tokens, reason):
    with pytest.raises(InputError, match=reason):
        split(Document("d.md", "text"), encoder.tokenizer, splitting, parent_tokens=parent_tokens)
    with pytest.raises(InputError, match="surrogate pair"):
        token_spans("a \ud83d b", encoder.tokenizer)


@pytest.mark.parametrize("method", SPLITTERS)
def test_a_blank_document_has_no_chunks(encoder, method):
    assert [texts_of(text, encoder, method, 16) for text in ("", " \n\t ", "\x1c")] == [[], [], []]
