import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.chunk_context import heads_above
from engine.documents.document import Chunk, Document
from engine.documents.sentences import sentence_spans
from engine.documents.splitters import Splitting, split
from engine.retrieval import evidence
from engine.retrieval.index import Hit, Index
from engine.retrieval.words import words
from tests.indexes import index_of_documents, index_of_texts
from tests.one_document import parse_document

BRIDGE = (
    "# The bridge of Orrin\n\nThe Orrin bridge was opened in 1932. The mayor Ada Holm cut the ribbon. It was "
    "extended in 1986. On the Orrin bridge cars pay two crowns. In January the river below the Orrin bridge "
    "freezes.\n\n## Upkeep\n\nThe cables of the bridge are greased by hand every second summer."
)
BREAD = "Knead the dough for ten minutes. Let it rest overnight under a cloth. Bake it at 230 degrees."
SENTENCES = [
    "The Orrin bridge was opened in 1932.",
    "It was extended in 1986!",
    "Dr. Holm paid 3.50 crowns, and left.",
    "Why does the river freeze?",
    "# Upkeep",
    "- one of a list",
    "東京の橋は長い。",
    "Ok.",
]


def candidates_of(text, chunks=None, name="d.md"):
    """The candidates of a document's chunks, by default one with the whole text."""
    if chunks is None:
        chunks = [Chunk(name, 0, len(text), text, 9)]
    index = Index(tuple(chunks), None, None, documents={name: Document(name, text)})
    return evidence.candidates([Hit(chunk, 0.5) for chunk in chunks], index)


@pytest.mark.parametrize(
    ("rows", "quoted"),
    [
        (b"Item,Price\nOak,4\nAsh,5\n", ["Item: Oak\nPrice: 4", "Item: Ash\nPrice: 5"]),
        (b"Q,A\nWhy?,It is old.\n", ["Q: Why?\nA: It is old."]),
        (b"Q,A\nWhy?,It is old. It is hard.\n", ["A: It is old.", "It is hard."]),
    ],
)
def test_a_row_is_quoted_whole_where_no_cell_has_several_sentences(encoder, rows, quoted):
    table = parse_document("a.csv", rows)
    hits = [Hit(chunk, 0.5) for chunk in split(table, encoder.tokenizer)]
    index = Index(tuple(hit.chunk for hit in hits), None, None, documents={"a.csv": table})
    found = evidence.candidates(hits, index)
    assert [each.text for each in found] == quoted


def hits_of(index):
    return [Hit(chunk, 0.5) for chunk in index.chunks]


@pytest.fixture(scope="module")
def index(encoder):
    return index_of_documents({"bridge.md": BRIDGE, "bread.md": BREAD}, encoder)


@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=12).map("\n".join),
    st.sampled_from([(8, 0), (16, 0), (16, 4), (48, 16), (192, 0)]),
)
def test_candidates_are_the_sentences_whole_wherever_chunks_are_cut(encoder, text, sizes):
    method = "fixed" if sizes[0] < 192 else "sentences"
    chunks = split(Document("d.md", text), encoder.tokenizer, Splitting(method, *sizes))
    wanted = [text[start:end].strip() for start, end in sentence_spans(text)]
    wanted = [each for each in wanted if len(each) >= evidence.SHORTEST_SENTENCE]
    wanted = [each for each in wanted if not each.startswith("#") and not each.endswith("?")]
    found = sorted(candidates_of(text, chunks), key=lambda c: c.start)
    for each in found:
        assert text[each.start : each.end].split() == each.text.split()
    # a heading that is cut after its mark is no longer known as one
    kept = [each.text for each in found if each.text[0] != "#" and each.text != "Upkeep"]
    assert " ".join(" ".join(each.split()) for each in kept) == " ".join(wanted)


@pytest.mark.parametrize(
    "heading",
    [
        "# One",
        "= Title =",
        " # Indented",
        "2. Copenhagen, Denmark",
        "Upkeep",
        "市民図書館のご案内",
        "| Years of service | Days of leave, at 40 hours |\n|---|:-:|",
        "[the guide]: https://example.org/guide (all of it)",
    ],
)
def test_what_is_a_heading(heading):
    text = f"{heading}\n\nA sentence."
    [only] = candidates_of(text)
    assert only.text == "A sentence."


@pytest.mark.parametrize(
    "line",
    [
        "30 layers",
        "- a layer",
        "It rains.",
        "We went there by train",
        "東京は日本の首都です。",
        "会議室は三階にあります",
        "・駐車場は無料",
        "Best month: June",
        "Lind | North wing",
        "[^1]: A note.",
        "| over 5 | 27 days. Unused ones expire. | all |",
    ],
)
def test_what_is_a_sentence_although_it_is_short(line):
    text = f"A beginning.\n{line}\nAn end."
    assert line in [each.text for each in candidates_of(text)]


@pytest.mark.parametrize(
    ("table", "n_heads"),
    [
        ("Item | Price\nLamp | 12\nDesk | 149", 1),
        ("Station | Pumps | Output (m3/h) | In charge\nNorth | 3 | 410 | Berg\nSouth | 2 | 285 | Ness", 1),
        ("| Key | Value |\n|-----|-------|\n| two, three | texts |\n| 4 | 5 |", 2),
        ("Tenant | Marta Lind\nRent | 950\nPets | none", 0),
        ("Tenant | Marta Lind\nRent | 950", 0),
        ("Monday | closed | closed\nTuesday | 9-12 | 14-16\nFriday | 9-12 | 14-16", 0),
    ],
)
def test_the_first_row_of_a_table_names_its_columns_above_numbers(table, n_heads):
    assert [each.text for each in candidates_of(table)] == table.split("\n")[n_heads:]


@pytest.mark.parametrize(
    "question",
    ["Who knows?", "What was the revenue in 2011?", "“Who knows?”", "**Who knows?**", "谁知道？", "(Who?)"],
)
def test_a_question_is_no_evidence(question):
    found = [each.text for each in candidates_of(f"A beginning.\n\n{question}\n\nAn end.")]
    assert found == ["A beginning.", "An end."]


def test_the_items_of_a_list_are_no_headings():
    text = "We bake:\n1. Rye\n2. Wheat\n3. Oats.\n"
    found = [each.text for each in candidates_of(text)]
    assert found == ["We bake:", "1. Rye", "2. Wheat", "3. Oats."]


def test_a_long_sentence_is_cut_between_words():
    text = "; ".join(f"word{number} and more" for number in range(200))
    found = candidates_of(text)
    assert all(evidence.SHORTEST_SENTENCE <= len(each.text) <= evidence.LONGEST_SENTENCE for each in found)
    assert [text[each.start : each.end] for each in found] == [each.text for each in found]
    assert " ".join(each.text for each in found).split() == text.split()


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("When was the bridge extended?", "It was extended in 1986."),  # which does not name it
        ("When was the bridge opened?", "The Orrin bridge was opened in 1932."),
        ("What do drivers pay on the Orrin bridge?", "On the Orrin bridge cars pay two crowns."),
        ("Who cut the ribbon of the bridge?", "The mayor Ada Holm cut the ribbon."),
        ("How long is dough kneaded?", "Knead the dough for ten minutes."),
        ("How hot is the oven for bread?", "Bake it at 230 degrees."),
    ],
)
def test_the_sentence_that_answers_comes_first(index, encoder, question, sentence):
    first, *_ = evidence.find_evidence(question, hits_of(index), index, encoder)
    assert first.text == sentence
    text = {"bridge.md": BRIDGE, "bread.md": BREAD}[first.document]
    assert text[first.start : first.end] == sentence


def test_probabilities_are_the_softmax_of_the_scores(index, encoder):
    quotes = evidence.find_evidence("When was the Orrin bridge extended?", hits_of(index), index, encoder)
    assert len(quotes) == len(evidence.candidates(hits_of(index), index))
    scores = np.array([quote.score for quote in quotes])
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_allclose(
        [quote.probability for quote in quotes], np.exp(scores) / np.exp(scores).sum(), rtol=1e-5
    )
    assert sum(quote.probability for quote in quotes) == pytest.approx(1)
    weights = np.array(list(evidence.FEATURES.values()))
    np.testing.assert_allclose(scores, [weights @ quote.features for quote in quotes], rtol=1e-6)
    assert all(-1.001 <= quote.cosine <= 1.001 for quote in quotes)


@pytest.mark.parametrize("text", ["# Only a heading", "\u200b"])
def test_a_passage_without_sentences_gives_no_evidence(encoder, text):
    index = index_of_texts([text], encoder)
    assert evidence.find_evidence("Why?", hits_of(index), index, encoder) == ()
    assert evidence.find_evidence("Why?", [], index, encoder) == ()


def test_shared_words_count_more_in_a_language_that_the_model_was_not_trained_on(encoder):
    text = (
        "博物馆展出港口和船只的画。去机场的公共汽车每二十分钟一班。"
        "医生星期五接待没有预约的病人。暖气从五月到九月关闭。"
    )
    index = index_of_texts([text], encoder)
    best, *_ = evidence.find_evidence("暖气什么时候关？", hits_of(index), index, encoder)
    assert best.text == "暖气从五月到九月关闭。"


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("How many masons?", "Forty masons, 2 of them women.", 1),
        ("How many masons?", "There were twelve dozen of them.", 1),
        ("How many masons?", "There were masons.", -1),
        ("When was it built?", "It was built in 1891.", 1),
        ("Which year?", "In the spring.", 1),
        ("When was it built?", "It has 212 steps.", -1),
        ("Who built it?", "It was built by Ada Holm.", 1),
        ("Who was Ada Holm?", "She was Ada Holm.", -1),  # the question gives the name
        ("Who built it?", "Masons built it.", -1),  # a capital at the beginning is none of a name
        ("Where is it?", "It is in Oslo.", 1),
        ("Why was it built?", "It was built in 1891.", 0),
    ],
)
def test_a_sentence_holds_the_kind_of_answer_asked_for(question, sentence, expected):
    [stems] = words([question], leave_out_more=True)
    assert evidence.kind_match(question, sentence, set(stems)) == expected


def test_shares_and_rarity_by_hand():
    assert evidence.share_of({"orrin": 3.0, "bridg": 1.0}, {"orrin", "cabl"}) == 0.75
    assert evidence.share_of({}, {"orrin"}) == evidence.share_of({"orrin": 0.0}, {"orrin"}) == 0
    assert evidence.rarity(0, 9) == 0
    assert evidence.rarity(1, 9) == pytest.approx(np.log(1 + 8.5 / 1.5))
    assert evidence.rarity(9, 9) < evidence.rarity(5, 9) < evidence.rarity(1, 9)


def test_features_of_two_sentences_by_hand():
    own, around = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.6, 0.8], [0.6, 0.8]])
    sentences = [
        evidence.CandidateSentence("a.md", 0, 9, "Cables rust.", 0),
        evidence.CandidateSentence("a.md", 10, 19, "Bridges last.", 0),
    ]
    hits = [Hit(Chunk("a.md", 0, 19, "Cables rust. Bridges last.", 6), 0.5)]
    asked = "Which cables?", sentences, hits, (own, around), np.array([1.0, 0.0])
    found = evidence.sentence_features(*asked, Index((hits[0].chunk,), None, None))
    # (1, 0) and (0, 1) without their mean (0.5, 0.5), and without (0.6, 0.8), as the question's
    np.testing.assert_allclose(found[:, 0], [1, -1], atol=1e-6)
    np.testing.assert_allclose(found[:, 1], [1, (-0.6 * 0.4 - 0.2 * 0.8) / np.sqrt(0.4 * 0.8)], atol=1e-6)
    np.testing.assert_allclose(found[:, 2:4], [[1, 1], [0, 1]])
    np.testing.assert_allclose(found[:, 5], np.log([2, 3]))


def test_a_text_without_spaces_is_cut_all_the_same():
    text = "x" * (3 * evidence.LONGEST_SENTENCE + 10)
    assert "".join(each.text for each in candidates_of(text)) == text


TABLE = "| Years | Days |\n|-------|:----:|\n| 0 to 5 | 25 |\n| over 5 | 27 |\n"


@pytest.mark.parametrize(
    ("text", "row", "heads"),
    [
        (f"Leave:\n\n{TABLE}\nAll.", "| over 5", "| Years | Days |"),
        (f"{TABLE}{TABLE.replace('Years', 'Months')}", "| 0 to 5", "| Years | Days |"),
        ("Years | Days\n--- | ---\nover 5 | 27", "over 5", "Years | Days"),
        ("|---|---|\n| over 5 | 27 |", "| over 5", ""),
        ("| 0 to 5 | 25 |\n| over 5 | 27 |", "| over 5", ""),
        (f"{TABLE}Over 5, all the same.", "Over 5", ""),
        (f"{TABLE}\n| a choice | of words |", "| a choice", ""),
    ],
)
def test_the_row_above_a_table_names_its_columns(text, row, heads):
    assert heads_above(text, text.index(row)) == heads
