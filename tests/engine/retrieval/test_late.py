from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.retrieval.late import late_vectors, rank_changes, vector_cosines, window_starts
from tests.pytorch import torch

TOWER = "The Vardholm tower stands above the harbour. It was finished in 1891 by forty masons. It is white. "
DOUGH = "Knead the dough for ten minutes, then let it rest overnight under a damp cloth — naïvely, 東京. "
LONG = (TOWER + DOUGH) * 30  # some 1,500 tokens


def cut(document, *borders):
    """Chunks between some characters of a document."""
    text = document.text
    return [Chunk(document.name, a, b, text[a:b], 0) for a, b in pairwise(borders)]


def official_tokens(official, text):
    """Token vectors of a text that fits the position table, by the official model, and their offsets."""
    batch = official.tokenizer(text, return_offsets_mapping=True, return_tensors="pt", truncation=False)
    offsets = batch.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        hidden = official[0].auto_model(**batch).last_hidden_state[0].numpy()
    return hidden, offsets


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_a_chunk_is_the_mean_of_its_tokens_in_the_context_of_the_document(encoder, official):
    document = Document("d.md", TOWER + DOUGH)
    within_a_word, behind_a_word = TOWER.index("finished") + 3, TOWER.index(" forty")
    chunks = cut(document, 0, within_a_word, behind_a_word, len(TOWER), len(document.text))
    hidden, offsets = official_tokens(official, document.text)
    expected = []
    for chunk in chunks:
        own = [i for i, (a, b) in enumerate(offsets) if a < chunk.end and b > chunk.start]
        # [CLS] counts for the first chunk and [SEP] for the last.
        own += [0] * (chunk is chunks[0]) + [len(offsets) - 1] * (chunk is chunks[-1])
        expected.append(unit(hidden[own].mean(0)))
    vectors = late_vectors(document, chunks, encoder)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("text", [DOUGH * 17, "\u200b"])
def test_a_chunk_that_is_the_whole_document_has_its_ordinary_vector(encoder, official, text):
    document = Document("d.md", text)
    [late] = late_vectors(document, cut(document, 0, len(text)), encoder)
    np.testing.assert_allclose(late, encoder.encode([text], max_tokens=512)[0], rtol=0, atol=1e-5)
    hidden, _ = official_tokens(official, text)
    np.testing.assert_allclose(late, unit(hidden.mean(0)), rtol=0, atol=1e-5)


def test_a_long_document_is_read_in_windows(encoder, official):
    """A chunk's vector is that of the official model's tokens in a window of the document around it."""
    document = Document("d.md", LONG)
    start = LONG.index("It was finished", len(LONG) // 2)
    [chunk] = cut(document, start, start + len("It was finished in 1891 by forty masons."))
    seen = []
    [vector] = late_vectors(document, [chunk], encoder, 128, on_progress=lambda *step: seen.append(step))
    assert seen == [(1, 1)]
    ids = encoder.tokenizer.encode(LONG)
    own = [i for i, (a, b) in enumerate(ids.offsets) if a < chunk.end and b > chunk.start]
    window = window_starts(np.array([own[0] - 1]), np.array([own[-1]]), len(ids) - 2, 126)[0]
    begin, end = ids.offsets[window + 1][0], ids.offsets[window + 126][1]
    assert begin < chunk.start < chunk.end < end
    hidden, offsets = official_tokens(official, LONG[begin:end])
    assert len(offsets) == 128
    inside = [i for i, (a, b) in enumerate(offsets) if a < chunk.end - begin and b > chunk.start - begin]
    np.testing.assert_allclose(vector, unit(hidden[inside].mean(0)), rtol=0, atol=1e-5)


@given(n_tokens=st.integers(1, 4000), room=st.integers(1, 510), place=st.floats(0, 1), size=st.floats(0, 1))
def test_every_window_holds_its_chunk_and_context_on_both_sides(n_tokens, room, place, size):
    length = max(1, int(size * min(room, n_tokens)))
    first = int(place * (n_tokens - length))
    [start] = window_starts(np.array([first]), np.array([first + length]), n_tokens, room)
    end = start + room
    assert 0 <= start <= first < first + length <= end
    assert start == 0 or end <= n_tokens
    least = room / 4 - length / 2 - 2  # half of what is free in a window, less half a step
    assert start == 0 or first - start >= least
    assert end >= n_tokens or end - (first + length) >= least


def test_moves_tell_both_ranks():
    ordinary = np.eye(3, dtype=np.float32)
    late = ordinary[[2, 0, 1]]
    question = np.array([0.9, 0.4, 0.1], np.float32)
    assert [(one.row, one.rank, one.late_rank) for one in rank_changes(question, ordinary, late)] == [
        (1, 2, 1),
        (2, 3, 2),
        (0, 1, 3),
    ]
    assert rank_changes(question, ordinary, late)[0].late_score == pytest.approx(0.9)
    np.testing.assert_array_equal(vector_cosines(ordinary, late), [0, 0, 0])


@pytest.mark.parametrize(
    ("chunk", "context", "reason"),
    [
        (Chunk("e.md", 0, 3, "The", 3), 512, "not one of d.md"),
        (Chunk("d.md", 0, 3, "the", 3), 512, "not one of d.md"),
        (Chunk("d.md", 0, len(TOWER), TOWER, 25), 16, "room for 14"),
        (Chunk("d.md", 0, 3, "The", 3), 513, "3 to 512"),
    ],
)
def test_what_cannot_be_read_is_refused(encoder, chunk, context, reason):
    with pytest.raises(InputError, match=reason):
        late_vectors(Document("d.md", TOWER), [chunk], encoder, context)


def test_vectors_that_do_not_fit_each_other_are_refused():
    with pytest.raises(InputError, match="shapes"):
        vector_cosines(np.eye(3), np.eye(2))
    with pytest.raises(InputError, match="shape"):
        rank_changes(np.ones(2), np.eye(3), np.eye(3))
    with pytest.raises(InputError, match="finite"):
        rank_changes(np.full(3, np.nan), np.eye(3), np.eye(3))
