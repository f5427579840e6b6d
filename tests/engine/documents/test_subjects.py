import pytest

from engine.documents.document import Document
from engine.documents.formats.markdown import read_markdown
from engine.documents.subjects import LONGEST, subjects
from tests.one_document import parse_document


def document(text):
    return read_markdown("d.md", text.encode()) if text else Document("d.md", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\n\n## 1. Cables\n\nText.\n\n## Upkeep\nText.", ["Cables", "Upkeep"]),
        ("# Only a title\n\nThe mayor Ada Holm came.", ["Ada Holm"]),
        (" = Title = \n = Early years = \n = Late years = \n", ["Early years", "Late years"]),
        (f"# A\n## {'x' * (LONGEST + 1)}\n## B", ["B"]),
        ("The bridge of Ada Holm stands. Later Ada Holm left for Orrin.", ["Ada Holm", "Orrin"]),
        ("# Title\n## Introduction\n## Patients\n## RESULTS", ["Patients"]),
        ("# Title\n## IV. Patients\n## X rays", ["Patients", "X rays"]),
        ("nothing at all", []),
        ("", []),
    ],
)
def test_subjects_are_headings_or_names(text, expected):
    assert subjects(document(text), 2) == expected


def test_the_numbers_of_rows_are_no_subjects():
    table = parse_document("a.csv", b"Name,City\nAda,Orrin\nOla,Orrin\n")
    assert subjects(table, 1) == ["Orrin"]
    titled = parse_document("a.csv", b"Title,City\nCables,Orrin\nUpkeep,Orrin\n")
    assert subjects(titled, 1) == ["Upkeep"]


def test_of_many_headings_some_of_all_parts_are_taken():
    text = "# Title\n" + "\n".join(f"## Part {number}a" for number in range(21))
    assert subjects(document(text), 4) == ["Part 0a", "Part 5a", "Part 10a", "Part 15a"]
