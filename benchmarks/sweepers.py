"""The sweeps that ``benchmarks.sweep`` compares, each run in a process of its own.

``python -m benchmarks.sweepers NAME MODEL_FOLDER SCRATCH_FOLDER``: loads what it needs, measures the grid,
and prints one JSON object. Glassbox runs first: it leaves the questions, the texts of its chunks and which of
them answer which question in the scratch folder, for the loop.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import CORES, memory, say

SIZES, OVERLAPS = (64, 128), (0, 16)
POOLINGS = ("mean", "max")
RETRIEVERS = ("dense", "hybrid")
K, MAX_TOKENS, N_SPECIAL, RRF_CONSTANT, WARM_ROUNDS = 5, 256, 2, 60, 3
SHARED = "splittings.json"  # what Glassbox leaves for the loop
CUT = "documents.json"


def ours(folder: str, scratch: Path) -> dict[str, Any]:
    """Sweep with an empty cache, then with what it holds; then embed the same texts and do nothing else."""
    from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
    from engine.documents.splitters import split
    from engine.evaluation.grid import grid
    from engine.evaluation.questions import load_questions, relevance
    from engine.evaluation.sweep import SweepInputs, sweep
    from engine.kernels.primitives import prepare_compiled
    from engine.models.encoder import Encoder
    from engine.retrieval.vector_cache import VectorCache

    encoder = Encoder.load(folder)
    prepare_compiled().join()
    documents, questions = load_corpus(BUNDLED_CORPUS), load_questions()
    cells = grid(
        chunk_tokens=SIZES,
        overlap=OVERLAPS,
        model=[folder],
        pooling=POOLINGS,
        retriever=RETRIEVERS,
        k=[K],
        max_tokens=[MAX_TOKENS],
    ).configurations
    cache = VectorCache(scratch / "vectors.sqlite3")

    def timed() -> tuple[float, float, Any]:
        begin, busy = time.perf_counter(), time.process_time()
        rows = list(sweep(SweepInputs(documents, questions, cells, {folder: encoder}), cache))
        return time.perf_counter() - begin, time.process_time() - busy, rows

    cold, cold_cpu, rows = timed()
    again = [timed()[:2] for _ in range(WARM_ROUNDS)]
    warm, warm_cpu = (statistics.median(each) for each in zip(*again, strict=True))
    peak = memory("VmHWM")

    splittings: dict[str, Any] = {}
    for size, overlap in product(SIZES, OVERLAPS):
        [splitting] = {
            cell.splitting for cell in cells if (cell.chunk_tokens, cell.overlap) == (size, overlap)
        }
        chunks = [chunk for each in documents for chunk in split(each, encoder.tokenizer, splitting)]
        splittings[key(size, overlap)] = {
            "texts": [chunk.text for chunk in chunks],
            "relevant": [np.flatnonzero(row).tolist() for row in relevance(questions, chunks)],
        }
    shared = {"questions": [question.text for question in questions], "splittings": splittings}
    (scratch / SHARED).write_text(json.dumps(shared), encoding="utf-8")
    (scratch / CUT).write_text(json.dumps([each.text for each in documents]), encoding="utf-8")

    distinct = list(dict.fromkeys(text for each in splittings.values() for text in each["texts"]))
    begin = time.perf_counter()
    encoder.encode(distinct, list(POOLINGS), max_tokens=MAX_TOKENS)
    return {
        "cold_s": cold,
        "warm_s": warm,
        "cold_cpu_s": cold_cpu,
        "warm_cpu_s": warm_cpu,
        "embedding_s": time.perf_counter() - begin,
        "peak_mb": peak,
        "n_texts": len(distinct),
        "mrr": {
            key(row.cell.chunk_tokens, row.cell.overlap, row.cell.pooling, row.cell.retriever): row.metrics[
                "mrr"
            ]
            for row in rows
        },
    }


def loop(folder: str, scratch: Path) -> dict[str, Any]:
    """Measure cell by cell with sentence-transformers, LangChain's splitter and bm25s, nothing shared."""
    import torch
    from langchain_text_splitters.base import (  # type: ignore[import-not-found,unused-ignore]
        Tokenizer,
        split_text_on_tokens,
    )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from benchmarks.chunkers import tokenizers_library

    torch.set_num_threads(CORES)
    transformer = modules.Transformer(folder, max_seq_length=MAX_TOKENS)
    library = tokenizers_library(folder)
    shared = json.loads((scratch / SHARED).read_text(encoding="utf-8"))
    documents = json.loads((scratch / CUT).read_text(encoding="utf-8"))
    asked = shared["questions"]
    models = {
        pooling: SentenceTransformer(
            modules=[
                transformer,
                modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling),
                modules.Normalize(),
            ],
            device="cpu",
        )
        for pooling in POOLINGS
    }
    models["mean"].encode(["a first text"])

    def measure(size: int, overlap: int, pooling: str, retriever: str) -> float:
        """Measure one cell: cut, embed, search, judge."""
        tokenizer = Tokenizer(
            chunk_overlap=overlap,
            tokens_per_chunk=size - N_SPECIAL,
            decode=library.decode,
            encode=lambda text: library.encode(text, add_special_tokens=False).ids,
        )
        for text in documents:
            split_text_on_tokens(text=text, tokenizer=tokenizer)
        splitting = shared["splittings"][key(size, overlap)]
        texts = splitting["texts"]
        vectors = models[pooling].encode(texts, show_progress_bar=False)
        scores = models[pooling].encode(asked, show_progress_bar=False) @ vectors.T
        if retriever == "hybrid":
            scores = sum(1 / (RRF_CONSTANT + ranks(each)) for each in (scores, bm25_scores(asked, texts)))
        return mean_reciprocal_rank(scores, splitting["relevant"])

    seconds, found = {}, {}
    busy = time.process_time()
    for cell in product(SIZES, OVERLAPS, POOLINGS, RETRIEVERS):
        begin = time.perf_counter()
        found[key(*cell)] = measure(*cell)
        seconds[key(*cell)] = time.perf_counter() - begin
        say(f"{len(found)}: {key(*cell)} {seconds[key(*cell)]:.1f} s")
    return {
        "s": sum(seconds.values()),
        "cpu_s": time.process_time() - busy,
        "cells_s": seconds,
        "peak_mb": memory("VmHWM"),
        "mrr": found,
    }


def bm25_scores(asked: list[str], texts: list[str]) -> Any:
    """Score texts by bm25s with its defaults: ``(n_questions, n_texts)``."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(asked, return_ids=False, show_progress=False)
    return np.array([index.get_scores(each) for each in tokens])


def ranks(scores: Any) -> Any:
    """Rank texts for each question, 1 for the best; equals share a rank."""
    from scipy.stats import rankdata

    return rankdata(-scores, method="min", axis=1)


def mean_reciprocal_rank(scores: Any, relevant: list[list[int]]) -> float:
    """Mean of 1 over the rank of the first text that answers."""
    total = 0.0
    for row, answers in zip(scores, relevant, strict=True):
        places = np.flatnonzero(np.isin(np.argsort(-row, kind="stable"), answers))
        total += 1 / (places[0] + 1) if len(places) else 0
    return total / len(scores)


def key(*settings: object) -> str:
    """Name a cell or a splitting."""
    return " ".join(map(str, settings))


CONTESTANTS: dict[str, Callable[[str, Path], dict[str, Any]]] = {"glassbox": ours, "loop": loop}


if __name__ == "__main__":
    print(json.dumps(CONTESTANTS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))))
