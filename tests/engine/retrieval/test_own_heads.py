"""Indexes of models with a head or prompts of their own, whose vectors are never mixed with others."""

import numpy as np
import pytest

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting, split
from engine.evaluation.sweep import vectors_of
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.retrieval.embedding_model import embed_query, embedding_spec
from engine.retrieval.evidence import find_evidence
from engine.retrieval.index import build_index
from engine.retrieval.late import late_vectors
from engine.retrieval.vector_cache import VectorCache
from tests import sentence_transformer_folders as folders
from tests.pytorch import modules, transformers

D_MODEL = folders.SIZES["hidden_size"]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Encoders of the same weights, by their modules."""
    base = folders.save_bert(tmp_path_factory.mktemp("base"))
    behind = {
        "mean": [modules.Pooling(D_MODEL, "mean"), modules.Normalize()],
        "cls": [modules.Pooling(D_MODEL, "cls")],
        "two": [modules.Pooling(D_MODEL, ("cls", "mean"))],
        "dense": [modules.Pooling(D_MODEL, "mean"), modules.Dense(D_MODEL, 8)],
        "dense again": [modules.Pooling(D_MODEL, "mean"), modules.Dense(D_MODEL, 8)],
    }
    return {
        name: Encoder.load(folders.save_modules(tmp_path_factory.mktemp("model"), base, *parts))
        for name, parts in behind.items()
    }


@pytest.mark.parametrize(
    ("name", "pooling", "width"),
    [("mean", "mean", 24), ("cls", "cls", 24), ("two", "own", 48), ("dense", "own", 8)],
)
def test_an_index_has_the_vectors_of_the_model_with_length_1(encoders, name, pooling, width):
    encoder = encoders[name]
    document = Document("d", "a bad dad. had a jade bee. " * 5)
    chunks = split(document, encoder.tokenizer, Splitting("fixed", 10, 0))
    own = encoder.encode([chunk.text for chunk in chunks])
    for index in (build_index(chunks, encoder), build_index(chunks, encoder, cache=VectorCache())):
        assert (index.spec.pooling, index.spec.d_model) == (pooling, width)
        np.testing.assert_allclose(index.vectors, own / np.linalg.norm(own, axis=1)[:, None], atol=1e-6)
        query = embed_query("jade", encoder)
        assert query.spec == index.spec
        assert np.linalg.norm(query.vector) == pytest.approx(1)
        index.search(query, 2)


def test_vectors_of_different_heads_are_never_compared(encoders):
    specs = {name: embedding_spec(encoder) for name, encoder in encoders.items()}
    assert len(set(specs.values())) == len(specs)
    assert specs["mean"] == embedding_spec(encoders["cls"], "mean") == embedding_spec(encoders["mean"], "own")


@pytest.mark.parametrize(
    ("family", "tokenizer"), [("qwen3", folders.qwen3_tokenizer), ("roberta", folders.roberta_tokenizer)]
)
def test_search_and_its_evidence_work_with_other_tokenizers(tmp_path, family, tokenizer):
    base, made = tmp_path / "base", tokenizer()
    sizes = {
        **folders.SIZES,
        "vocab_size": made.get_vocab_size(),
        "max_position_embeddings": 130,
        "pad_token_id": 1,
    }
    sizes |= {"num_key_value_heads": 1} if family == "qwen3" else {}
    config = transformers.AutoConfig.for_model(family, **sizes)
    folders.random_model(transformers.AutoModel.from_config, config).save_pretrained(base)
    folders.save_tokenizer(made, base, 120, pad_token=made.id_to_token(1))
    head = modules.Pooling(D_MODEL, "lasttoken"), modules.Dense(D_MODEL, 8)
    encoder = Encoder.load(folders.save_modules(tmp_path / "model", base, *head))
    document = Document("d", "The cat sat on the mat. Paris is far away." * 3)
    chunks = split(document, encoder.tokenizer, Splitting("fixed", 60, 0))
    index = build_index(chunks, encoder, documents=[document])
    hits = index.search(embed_query("Where did the cat sit?", encoder), 2)
    quotes = find_evidence("Where did the cat sit?", hits, index, encoder)
    assert quotes
    assert all(np.isfinite([quote.score, quote.cosine]).all() for quote in quotes)
    whole = split(document, encoder.tokenizer, Splitting("fixed", 128, 0))
    [late] = late_vectors(document, whole, encoder, 128)
    np.testing.assert_allclose(late, encoder.encode([document.text], "mean")[0], atol=1e-5)


PROMPTS = {"query": "a b: ", "passage": "j "}
TEXTS = ["abc def", "bead cafe", "j i h g f e d"]
CHUNKS = [Chunk("d.md", place, place + len(text), text, 9) for place, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("prompted")
    base = folders.save_bert(place / "base")
    return folders.save_modules(place / "model", base, modules.Pooling(24, "mean"), prompts=PROMPTS)


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(folder)


def test_chunks_and_questions_have_their_own_prompts(encoder, folder):
    official, index = folders.library(folder), build_index(CHUNKS, encoder)
    expected = folders.library_vectors(official, TEXTS, prompt_name="passage", normalize_embeddings=True)
    np.testing.assert_allclose(index.vectors, expected, atol=1e-5)
    query = embed_query("de", encoder)
    [expected] = folders.library_vectors(official, ["de"], prompt_name="query", normalize_embeddings=True)
    np.testing.assert_allclose(query.vector, expected, atol=1e-5)
    found = retrieve("de", index, encoder, SearchSettings(3, 0, "dense"))
    scores = [hit.score for hit in index.search(query, 3)]
    np.testing.assert_allclose([hit.score for hit in found.hits], scores, atol=1e-6)


def test_a_sweep_embeds_questions_and_chunks_as_a_search_does(encoder):
    found = vectors_of(["de"], TEXTS, encoder, ["mean"], None, VectorCache(), lambda n_more: None)["mean"]
    np.testing.assert_allclose(found[0], embed_query("de", encoder).vector, atol=1e-6)
    np.testing.assert_allclose(found[1:], build_index(CHUNKS, encoder).vectors, atol=1e-6)
