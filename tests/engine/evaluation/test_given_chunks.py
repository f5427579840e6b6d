"""Documents put together from chunks whose vectors are given."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.errors import DocumentError, InputError
from engine.evaluation.given_chunks import given_documents
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.index import index_vectors
from engine.retrieval.vector_files import documents_of

SPEC = EmbeddingSpec("model", "own", 256, 3)


def index_of(*chunks, scale=1.0):
    vectors = scale * np.arange(3 * len(chunks)).reshape(-1, 3)
    pieces = [Chunk(*chunk, 5) for chunk in chunks]
    return index_vectors(pieces, vectors, SPEC, documents=documents_of(pieces, "vectors.npz"))


@given(order=st.permutations(range(4)), texts=st.lists(st.text("ab c\n", min_size=1), min_size=4, max_size=4))
def test_each_chunk_stands_at_its_place_whatever_their_order(order, texts):
    starts = np.cumsum([0, *(len(text) + 2 for text in texts)]).tolist()
    rows = [("a.md", start, start + len(text), text) for start, text in zip(starts[:-1], texts, strict=True)]
    before = index_of(*(rows[row] for row in order), ("b.md", 3, 5, "it"))
    index, documents = given_documents(before)
    assert [document.name for document in documents] == ["a.md", "b.md"]
    by_name = {document.name: document.text for document in documents}
    assert all(by_name[chunk.document][chunk.start : chunk.end] == chunk.text for chunk in index.chunks)
    vector_of = dict(zip(before.chunks, before.vectors.tolist(), strict=True))
    assert [vector_of[chunk] for chunk in index.chunks] == index.vectors.tolist()
    assert [chunk.start for chunk in index.chunks[:4]] == starts[:-1]


def test_documents_with_other_vectors_or_from_elsewhere_are_not_equal():
    chunk = ("a.md", 0, 5, "tides")
    [one], [again] = (given_documents(index_of(chunk, ("a.md", 6, 7, "x")))[1] for _ in range(2))
    [scaled] = given_documents(index_of(chunk, ("a.md", 6, 7, "x"), scale=2))[1]
    assert one == again
    assert one != scaled
    assert one.text == scaled.text
    other = index_of(chunk, ("a.md", 6, 7, "x"))
    [of_other] = given_documents(replace(other, spec=replace(SPEC, model="other")))[1]
    assert one != of_other
    assert one != Document(one.name, one.text)


def test_chunks_that_contradict_are_refused():
    with pytest.raises(InputError, match="given chunk 1 does not stand at 3 to 8"):
        given_documents(index_of(("a.md", 0, 5, "tides"), ("a.md", 3, 8, "XXXXX")))


def test_chunks_that_stand_too_far_out_are_refused():
    with pytest.raises(DocumentError, match="lacks over 100,000,000 characters between its chunks"):
        index_of(("a.md", 99_999_998, 99_999_999, "x"), ("b.md", 99_999_998, 99_999_999, "x"))
