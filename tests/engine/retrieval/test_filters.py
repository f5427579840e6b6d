import pytest

from engine.documents.document import Document
from engine.errors import InputError
from engine.retrieval.filters import DocumentFilter

DOCUMENTS = [
    Document("a.md", "a", date="2025-12-31", tags=("Bees", "garden")),
    Document("b.md", "b", date="2026-01-01", tags=("garden",)),
    Document("c.md", "c", date="2026-02-01"),
    Document("d.txt", "d"),
]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["a.md", "b.md", "c.md", "d.txt"]),
        ({"tags": ("bees", "GARDEN")}, ["a.md", "b.md"]),
        ({"since": "2026-01-01"}, ["b.md", "c.md"]),
        ({"until": "2026-01-01"}, ["a.md", "b.md"]),
        ({"tags": ("garden",), "since": "2026-01-01"}, ["b.md"]),
    ],
)
def test_documents_have_one_of_the_tags_and_a_date_within_the_days(wanted, names):
    assert DocumentFilter(**wanted).names(DOCUMENTS) == names
    assert bool(DocumentFilter(**wanted)) == bool(wanted)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"tags": ("bread", "dough")}, "no document has the tag bread or dough: their tags are Bees, garden"),
        ({"since": "2027-01-01"}, "from 2027-01-01 to any day: of 4 documents, 3 state one"),
        ({"since": "1 May"}, "'1 May' is no day: give year, month and day, such as 2026-05-01"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "no day is from 2026-02-01 to 2026-01-01"),
    ],
)
def test_what_allows_no_document_is_said(wanted, message):
    with pytest.raises(InputError, match=message):
        DocumentFilter(**wanted).names(DOCUMENTS)
    with pytest.raises(InputError, match="they have no tags"):
        DocumentFilter(("a",)).names(DOCUMENTS[2:])
