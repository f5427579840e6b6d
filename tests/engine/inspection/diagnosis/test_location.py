import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.evaluation.questions import relevance
from engine.inspection.diagnosis.location import Location, chunk_overlaps, locate, matching_rows, middle_half
from engine.inspection.diagnosis.setting_changes import passage_question


@pytest.mark.parametrize(
    ("passage", "how"),
    [
        ("The keeper said: \"It's the bees' honey\" – and left.", "exact"),
        ("The keeper  said:\n“It’s the bees’ honey” - and left.", "alike"),
        ("The old keeper said: \"It's all the bees' honey\", and left.", "approximate"),
    ],
)
def test_a_passage_is_found_as_it_is_spelled_alike_or_approximately(passage, how):
    text = "Before. The keeper said: \"It's the bees' honey\" – and left. After."
    far = Document("far.txt", "The lazy keeper said on a day in spring: It's all the same, and stayed.")
    place = locate(passage, [far, Document("bees.txt", text)])
    assert (place.document, place.how) == ("bees.txt", how)
    assert text[place.start : place.end].startswith("The keeper said")
    assert text[place.start : place.end].rstrip(".").endswith("and left")
    assert (place.likeness < 1) == (how == "approximate")


spans = st.tuples(st.integers(0, 60), st.integers(1, 40)).map(lambda span: (span[0], sum(span)))


@given(spans, st.lists(spans, min_size=1, max_size=6))
def test_what_counts_as_found_is_what_a_metric_counts(passage, cuts):
    chunks = [Chunk("d.md", start, end, "x" * (end - start), 3) for start, end in cuts]
    place = Location("d.md", *passage)
    document = Document("d.md", "x" * 120)
    [relevant] = relevance([passage_question("Why?", place, document)], chunks)
    assert matching_rows(place, chunks) == np.flatnonzero(relevant).tolist()
    start, end = middle_half(place)
    assert passage[0] <= start < end <= passage[1]


@given(spans, st.lists(spans, min_size=1, max_size=6))
def test_a_chunk_holds_the_characters_that_it_shares(passage, cuts):
    chunks = [Chunk("d.md", start, end, "x" * (end - start), 3) for start, end in cuts]
    middles = [(chunk.start + chunk.end) // 2 for chunk in chunks]
    overlaps = {each.row: each for each in chunk_overlaps(Location("d.md", *passage), chunks, middles)}
    wanted = set(range(*passage))
    for row, chunk in enumerate(chunks):
        shared = len(wanted & set(range(chunk.start, chunk.end)))
        read = len(wanted & set(range(chunk.start, middles[row])))
        assert (row in overlaps) == bool(shared)
        if shared:
            assert overlaps[row].share == pytest.approx(shared / len(wanted))
            assert overlaps[row].read == pytest.approx(read / len(wanted))
