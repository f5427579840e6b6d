"""Titles, headings and names of columns before the text of chunks: spans stay, and tokens count."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.chunk_context import CONTEXT_SHARE, CONTEXTS
from engine.documents.document import Document
from engine.documents.formats.markdown import read_markdown
from engine.documents.loaders import parse_file
from engine.documents.splitters import SPLITTERS, Splitting, split
from engine.documents.truncation import truncation_reports
from engine.errors import InputError

MANUAL = (
    b"# Pump\n\nWords about it.\n\n## Care\n\nRinse it.\n\nAll of it is cleaned with warm water each day.\n\n"
    b"| Part | Torque |\n|---|---|\n| Bolt A | 5 Nm |\n| Bolt B | 9 Nm |\n| Bolt C | 12 Nm |\n"
)
TEXTS = st.text("ab #|-\n.", max_size=300).map(lambda text: f"# Head\n\n{text}")


def cut(document, encoder, context, size=16, method="sentences"):
    return split(document, encoder.tokenizer, Splitting(method, size, 0, context), encoder.encode)


@pytest.mark.parametrize(
    ("context", "above"), [("off", ""), ("headings", "Pump\nCare"), ("title", "Pump\nCare")]
)
def test_headings_stand_before_a_chunk_that_lacks_them(context, above, encoder):
    chunks = cut(read_markdown("m.md", MANUAL), encoder, context, 14)
    assert [chunk.context for chunk in chunks if "warm water" in chunk.text] == [above]


def test_rows_have_the_names_of_columns_and_files_without_a_title_their_name(encoder):
    rows = [
        one.context
        for one in cut(read_markdown("m.md", MANUAL), encoder, "headings", 24)
        if "12 Nm" in one.text
    ]
    assert rows == ["Pump\nCare\n| Part | Torque |"]
    assert {
        one.context for one in cut(Document("notes/depot_rules.txt", "No smoking. " * 20), encoder, "title")
    } == {"depot_rules"}
    [table] = parse_file("a.csv", b"name,price\nLamp,12\nDesk,90\n").documents
    assert {one.context for one in cut(table, encoder, "headings")} == {""}  # a row's cells have their names


@given(
    text=TEXTS,
    method=st.sampled_from(["fixed", "sentences", "recursive"]),
    context=st.sampled_from([*CONTEXTS]),
)
def test_spans_stay_and_tokens_are_those_that_the_model_reads(text, method, context, encoder):
    document = read_markdown("some notes.md", text.encode())
    chunks, alone = cut(document, encoder, context, 16, method), cut(document, encoder, "off", 16, method)
    assert [replace(one, context="", n_tokens=0) for one in chunks] == [
        replace(one, n_tokens=0) for one in alone
    ]
    for chunk in chunks:
        assert chunk.n_tokens == len(encoder.tokenizer.encode(chunk.indexed).ids)
        assert len(encoder.tokenizer.encode(chunk.context).ids) - 2 <= 16 // CONTEXT_SHARE


def test_tokens_of_a_context_count_against_the_limit(encoder):
    [*_, last] = cut(read_markdown("m.md", MANUAL), encoder, "headings", 24)
    [report] = truncation_reports([last], encoder.tokenizer, [last.n_tokens - 2])
    [lost] = report.truncated
    assert lost.tokens_truncated == 2
    assert last.text.endswith(lost.text)
    [report] = truncation_reports([last], encoder.tokenizer, [4])  # less than the context
    assert report.truncated[0].text == last.text


def test_an_unknown_context_is_told(encoder):
    with pytest.raises(InputError, match="context 'some' is not one of off, headings, title"):
        cut(Document("a", "b"), encoder, "some", method=next(iter(SPLITTERS)))
