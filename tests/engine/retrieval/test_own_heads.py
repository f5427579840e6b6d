"""Indexes of models whose own head is more than a pooling: concatenated, dense, cut, of any length."""

import numpy as np
import pytest
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

from engine import Encoder
from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.retrieval.embedding_spec import EmbeddingSpec, embed_query
from engine.retrieval.index import build_index
from engine.retrieval.vector_cache import VectorCache
from tests.sentence_transformer_folders import SIZES, save_bert, save_modules

D_MODEL = SIZES["hidden_size"]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Encoders of the same weights, by their modules."""
    base = save_bert(tmp_path_factory.mktemp("base"))
    behind = {
        "mean": [Pooling(D_MODEL, "mean"), Normalize()],
        "cls": [Pooling(D_MODEL, "cls")],
        "two": [Pooling(D_MODEL, ("cls", "mean"))],
        "dense": [Pooling(D_MODEL, "mean"), Dense(D_MODEL, 8)],
        "dense again": [Pooling(D_MODEL, "mean"), Dense(D_MODEL, 8)],
    }
    return {
        name: Encoder.load(save_modules(tmp_path_factory.mktemp("model"), base, *modules))
        for name, modules in behind.items()
    }


@pytest.mark.parametrize(
    ("name", "pooling", "width"),
    [("mean", "mean", 24), ("cls", "cls", 24), ("two", "own", 48), ("dense", "own", 8)],
)
def test_an_index_has_the_vectors_of_the_model_with_length_1(encoders, name, pooling, width):
    encoder = encoders[name]
    chunks = split(
        Document("d", "a bad dad. had a jade bee. " * 5), encoder.tokenizer, Splitting("fixed", 10, 0)
    )
    own = encoder.encode([chunk.text for chunk in chunks])
    for index in (build_index(chunks, encoder), build_index(chunks, encoder, cache=VectorCache())):
        assert (index.spec.pooling, index.spec.d_model) == (pooling, width)
        np.testing.assert_allclose(index.vectors, own / np.linalg.norm(own, axis=1)[:, None], atol=1e-6)
        query = embed_query("jade", encoder)
        assert query.spec == index.spec
        assert np.linalg.norm(query.vector) == pytest.approx(1)
        index.search(query, 2)


def test_vectors_of_different_heads_are_never_compared(encoders):
    specs = {name: EmbeddingSpec.of(encoder) for name, encoder in encoders.items()}
    assert len(set(specs.values())) == len(specs)
    assert (
        specs["mean"]
        == EmbeddingSpec.of(encoders["cls"], "mean")
        == EmbeddingSpec.of(encoders["mean"], "own")
    )
