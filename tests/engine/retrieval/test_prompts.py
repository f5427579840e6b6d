"""A search puts the model's prompts before questions and documents, and never mixes vectors with others."""

import numpy as np
import pytest
from sentence_transformers.sentence_transformer import modules

from engine import Encoder
from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.sweep import vectors_of
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.retrieval.embedding_model import embed_query, embedding_spec
from engine.retrieval.index import build_index
from engine.retrieval.vector_cache import VectorCache, cached_encode
from tests.sentence_transformer_folders import library, library_vectors, save_bert, save_modules

PROMPTS = {"query": "a b: ", "passage": "j "}
TEXTS = ["abc def", "bead cafe", "j i h g f e d"]
CHUNKS = [Chunk("d.md", place, place + len(text), text, 9) for place, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("prompted")
    base = save_bert(place / "base")
    return save_modules(place / "model", base, modules.Pooling(24, "mean"), prompts=PROMPTS)


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(folder)


def test_chunks_and_questions_have_their_own_prompts(encoder, folder):
    official, index = library(folder), build_index(CHUNKS, encoder)
    expected = library_vectors(official, TEXTS, prompt_name="passage", normalize_embeddings=True)
    np.testing.assert_allclose(index.vectors, expected, atol=1e-5)
    query = embed_query("de", encoder)
    [expected] = library_vectors(official, ["de"], prompt_name="query", normalize_embeddings=True)
    np.testing.assert_allclose(query.vector, expected, atol=1e-5)
    found = retrieve("de", index, encoder, SearchSettings(3, 0, "dense"))
    scores = [hit.score for hit in index.search(query, 3)]
    np.testing.assert_allclose([hit.score for hit in found.hits], scores, atol=1e-6)


def test_a_cache_keeps_them_apart(encoder):
    cache = VectorCache()
    both = {
        role: cached_encode(["abc"], encoder, None, None, cache, role=role) for role in ("query", "document")
    }
    assert np.abs(both["query"] - both["document"]).max() > 0.01
    for role, vectors in both.items():
        again = cached_encode(["abc"], encoder, None, None, cache, role=role)
        np.testing.assert_array_equal(again, vectors)
        np.testing.assert_allclose(encoder.encode_as(role, ["abc"], "mean"), vectors, atol=1e-6)


def test_a_sweep_embeds_questions_and_chunks_as_a_search_does(encoder):
    found = vectors_of(["de"], TEXTS, encoder, ["mean"], None, VectorCache(), lambda n_more: None)["mean"]
    np.testing.assert_allclose(found[0], embed_query("de", encoder).vector, atol=1e-6)
    np.testing.assert_allclose(found[1:], build_index(CHUNKS, encoder).vectors, atol=1e-6)


def test_vectors_with_and_without_prompts_are_not_compared(encoder):
    bare = encoder.with_prompts("none")
    assert embedding_spec(bare) != embedding_spec(encoder)
    with pytest.raises(InputError, match="with its prompts"):
        build_index(CHUNKS, bare).search(embed_query("de", encoder), 1)
