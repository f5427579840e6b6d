"""Many questions asked of an index at once, as the app searches."""

import streamlit as st

from engine import Encoder
from engine.layers.tracing import Array
from engine.retrieval.index import Index
from engine.retrieval.retrievers import all_index_scores
from engine.retrieval.vector_cache import VectorCache, cached_encode


def all_scores(
    questions: tuple[str, ...], index: Index, encoder: Encoder, retriever: str, cache: VectorCache
) -> Array:
    """Score every chunk for every question, under a bar that counts what is read.

    Parameters
    ----------
    questions
        Their texts.
    index, encoder
        The chunks, and the encoder of their vectors.
    retriever
        One of `RETRIEVERS`. MMR orders all that it looks at, as in a sweep.
    cache
        Where the vectors of the questions are kept.

    Returns
    -------
    Array
        float32 ``(n_questions, n_chunks)``, larger is better.
    """
    kind, bar = index.kind, st.progress(0.0, f"Asking {len(questions):,} questions…")

    def embedding(done: int, total: int) -> None:
        bar.progress(done / total, f"Embedding: {done:,} of {total:,} questions")

    def reading(done: int, total: int) -> None:
        bar.progress(done / total, f"MaxSim: the tokens of {done:,} of {total:,} chunks are read")

    try:
        vectors = cached_encode(
            questions, index.encoder(encoder), kind.pooling, kind.max_tokens, cache, embedding
        )  # (n_questions, d_model)
        return all_index_scores(retriever, questions, vectors, index, encoder, on_progress=reading)
    finally:
        bar.empty()
