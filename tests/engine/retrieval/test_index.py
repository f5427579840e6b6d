from dataclasses import replace

import numpy as np
import pytest

from engine.documents.document import Chunk, Document
from engine.documents.splitters import split
from engine.errors import InputError
from engine.kernels.primitives import prepare_compiled
from engine.retrieval.embedding_model import embed_query
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import build_index, join_indexes
from engine.retrieval.vector_cache import VectorCache

TEXTS = ["The cat sat on the mat.", "Knead the dough.", "The tower was finished in 1891.", "Dogs bark."]


@pytest.fixture(scope="module")
def index(encoder):
    chunks = [Chunk("d.md", 0, len(text), text, 10) for text in TEXTS]
    return build_index(chunks, encoder)


def test_bad_requests_are_refused(index, encoder):
    with pytest.raises(InputError, match="k is 0"):
        index.search(embed_query("x", encoder), 0)
    with pytest.raises(InputError, match="shape"):
        index.search(Query(np.zeros(3, np.float32), index.spec), 1)
    with pytest.raises(InputError, match="finite"):
        index.search(Query(np.full(384, np.nan, np.float32), index.spec), 1)
    with pytest.raises(InputError, match="no chunks"):
        build_index([], encoder)
    with pytest.raises(InputError, match="2 different ways"):
        join_indexes([index, build_index(index.chunks, encoder, pooling="cls")])


def test_an_index_built_through_a_cache_is_the_same_bit_for_bit(index, encoder):
    prepare_compiled().join()
    twice = [*index.chunks, *index.chunks[:2]]
    plain = build_index(twice, encoder)
    cache, seen = VectorCache(), []
    for chunks in (twice[1:3], twice, twice):  # with nothing in the cache, with a part, with everything
        cached = build_index(chunks, encoder, cache=cache, on_progress=lambda *step: seen.append(step))
        assert cached.chunks == tuple(chunks)
        assert seen[-1] == (len(chunks), len(chunks))
        expected = plain.vectors[1:3] if chunks == twice[1:3] else plain.vectors
        assert cached.vectors.tobytes() == expected.tobytes()
    assert cached.spec == plain.spec


@pytest.mark.parametrize(
    "other",
    [
        lambda encoder: embed_query("cats", encoder, "cls"),
        lambda encoder: embed_query("cats", encoder, max_tokens=64),
        lambda encoder: embed_query("cats", replace(encoder, compiled=not encoder.compiled)),
    ],
    ids=["pooling", "limit", "model"],
)
def test_a_question_embedded_in_another_way_is_refused_though_its_shape_fits(index, encoder, other):
    with pytest.raises(InputError, match="embed both in one way"):
        index.search(other(encoder), 1)


def test_an_index_keeps_the_documents_it_was_built_with_and_copies_no_text(encoder):
    document = Document("d.md", "The cat sat on the mat.")
    chunks = split(document, encoder.tokenizer)
    other = build_index([Chunk("e.md", 0, 5, "Cats.", 4)], encoder)
    index = join_indexes([build_index(chunks, encoder, documents=[document]), other])
    assert index.only(["d.md"]).document_text("d.md") is document.text
    with pytest.raises(InputError, match=r"lacks the text of e\.md"):
        index.document_text("e.md")
