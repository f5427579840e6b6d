"""The evidence for causes: words, numbers and rows."""

import pytest

from engine.documents.document import Document
from engine.inspection.diagnosis import wordings
from engine.inspection.diagnosis.location import Location
from engine.inspection.diagnosis.table_rows import flattened, is_head, is_twin, scattered, took_head
from tests.indexes import index_of_texts
from tests.one_document import parse_document


@pytest.mark.parametrize(
    ("asked", "passage", "forms"),
    [
        ("Who paid 1250 EUR?", "paid by: Nora\namount: 1.250 EUR", {"1250": "1.250"}),
        ("What is on 3 May 2024?", "day: 2024-05-03", {"3 May 2024": "2024-05-03"}),
        ("What starts at 5 pm?", "time: 17:00", {"5 pm": "17:00"}),
        ("Which room is number twelve?", "room: 12", {"twelve": "12"}),
        ("What is E4471?", "E4471: the tray is empty", {}),
        ("What costs 12 euros?", "It costs 12 euros.", {}),
        ("What costs 13 euros?", "It costs 12 euros.", {}),
    ],
)
def test_numbers_are_compared_by_their_values(asked, passage, forms):
    assert wordings.other_forms(asked, passage) == forms


@pytest.fixture(scope="module")
def index(encoder):
    texts = [
        "The refrigerant of the heat pump is propane.",
        "Prints are sold by Duncan Moray in Glenvarroch.",
    ]
    return index_of_texts(texts, encoder)


@pytest.mark.parametrize(
    ("asked", "mended"),
    [
        ("Which refrigernt is it?", "Which refrigerant is it?"),
        ("Who lives in Glenvarok?", "Who lives in Glenvarroch?"),
        ("What does the heatpump use?", "What does the heat pump use?"),
        ("Who sold a print?", "Who sold a print?"),  # another form of a word
        ("Which refrigerator is it?", "Which refrigerator is it?"),  # another word
        ("Is it 2024?", "Is it 2024?"),
        ("Do vistors pay?", "Do visitors pay?"),  # a word that no document holds either
        ("What about the handover?", "What about the handover?"),
    ],
)
def test_a_word_that_no_document_holds_is_spelled_as_the_nearest(index, encoder, asked, mended):
    near = " ".join(index.texts)
    assert wordings.respelled(asked, wordings.misspelled(asked, near, index, encoder.tokenizer)) == mended


def test_a_question_takes_the_rare_words_of_a_passage_but_not_its_answer(index):
    passage = index.texts[0]
    assert wordings.in_words_of("What cools the house?", passage, ["propane"], index, "english") == [
        "What cools the house? (refrigerant, heat, pump)",
        "What refrigerant heat pump?",
    ]
    assert wordings.in_words_of("Which?", "propane", ["propane"], index, "english") == []
    assert wordings.share_covered("Which pumps heat the house?", passage, "english") == pytest.approx(2 / 3)
    assert wordings.share_covered("Which pumps heat the house?", passage, "english", index.words) < 0.5


BLANKS = "Type    Flow   Head\nAlder   12     30\nBirch   18     45\nCedar   25     60"
LINES = "Type Flow Head\nAlder 12 30\nBirch 18 45\nCedar 25 60\nThey are old."
CELLS = "Room\nBeds\nPrice\nHeron\n2\n95\nOwl\n1\n55"
PROSE = "The pump gives 18 litres.\nIt weighs 45 kilograms.\nIt was built in 2009."
FINES = "Zone 2 by day: a fine of 60 francs\nZone 2 by night: a fine of 90 francs\nZone 1 by day: a fine of 6"
LABELS = "Pump: Birch\nFlow: 18\nHead: 45"


@pytest.mark.parametrize(
    ("text", "passage", "lost"),
    [
        (BLANKS, "Birch   18     45", "its columns are only blanks"),
        (LINES, "Birch 18 45", "its cells stand in a line without columns"),
        (CELLS, "Owl\n1\n55", "each of its cells is a line"),
        (PROSE, "It weighs 45 kilograms.", ""),
        (LABELS, "Flow: 18", ""),
        (FINES, "by day: a fine of 60 francs", ""),
        ("| Type | Flow |\n|---|---|\n| Alder | 12 |\n| Birch | 18 |", "| Birch | 18 |", ""),
    ],
)
def test_a_table_without_columns_is_told_from_prose_and_rows(text, passage, lost):
    start = text.index(passage)
    assert flattened(Document("d.txt", text), Location("d.txt", start, start + len(passage))) == lost


def test_the_cells_of_a_row_are_found_in_another_order():
    columns = "Lift\nNorth\nSouth\nLoad\n450\n630\nFloors\n3\n4"
    document = Document("d.txt", columns)
    assert scattered("South 630 4", [document]).document == "d.txt"
    assert scattered("South 990 4", [document]) is None
    assert scattered("South 18", [Document("d.txt", "In the South it has 18 degrees.")]) is None


ROWS = ["name: Finch\npower: 120", "name: Wren\npower: 95", "name: Robin\npower: 150"]


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        ("name: name of the engine\npower: kilowatts", True),
        ("name: Name\npower: Power", True),
        ("power: kilowatts", True),
        ("name: Martin\npower: on request", False),
        (ROWS[0], False),
    ],
)
def test_a_row_of_heads_reads_as_names_or_lacks_the_digits(row, is_one):
    assert is_head(row, [*ROWS, row]) == is_one


def test_names_of_columns_are_no_answer():
    table = parse_document("t.csv", b"engine,power\nengine name,kilowatts\nFinch,120\nWren,95\nRobin,150\n")
    for words, is_one in (("kilowatts", True), ("power", True), ("120", False)):
        start = table.text.index(words)
        assert took_head(table, start, start + len(words)) == is_one


@pytest.mark.parametrize(
    ("one", "other", "answer", "twins"),
    [
        (
            "The gas oven gets up to 280 degrees.",
            "The electric oven gets up to 300 degrees.",
            "280 degrees",
            True,
        ),
        ("lock: Tarn\nside: north\nwidth: 6 m", "lock: Tarn\nside: south\nwidth: 7 m", "6 m", True),
        ("plant: rose\nneeds: sun", "plant: fern\nneeds: shade", "sun", False),
        ("The comet was seen by the baker.", "A bright comet is named after a king.", "the baker", False),
    ],
)
def test_twins_differ_in_a_word_or_two(one, other, answer, twins):
    assert is_twin(one, other, [answer]) == twins


def test_words_that_only_one_text_has_are_told():
    assert wordings.differing(
        "The gas oven gets up to 280 degrees.", "The electric oven gets up to 300 degrees."
    ) == (["gas"], ["electric"], 6)
