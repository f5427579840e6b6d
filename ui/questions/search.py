"""Searches for question sets: many questions in an index at once, and sentences by their words."""

import streamlit as st

from engine.documents.sentences import stripped_sentences
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import Index
from engine.retrieval.retrievers import all_index_scores
from engine.retrieval.vector_cache import VectorCache, cached_encode
from ui.progress import counting

sentences_of = st.cache_data(max_entries=64, show_spinner=False, scope="session")(stripped_sentences)


def all_scores(
    questions: tuple[str, ...], index: Index, model: Model, retriever: str, cache: VectorCache
) -> Array:
    """Score all chunks for all questions, as the app searches: float32 ``(n_questions, n_chunks)``."""
    with counting("Embedding", "questions") as embedding:
        spec = index.spec
        vectors = cached_encode(
            questions, index.encoder(model), spec.pooling, spec.max_tokens, cache, embedding, "query"
        )  # (n_questions, d_model)
    with counting("Scoring", "chunks") as reading:
        return all_index_scores(retriever, questions, vectors, index, model.as_encoder, on_progress=reading)


def sentences_with(words: str, text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences that contain all of some words in any case; none for no words."""
    wanted = words.casefold().split()
    return [
        (start, end)
        for start, end in sentences_of(text)
        if wanted and all(word in text[start:end].casefold() for word in wanted)
    ]
