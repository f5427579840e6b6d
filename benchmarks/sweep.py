"""How fast a grid of settings is measured: ``python -m benchmarks.sweep [--json]``.

16 settings (2 chunk sizes, 2 overlaps, 2 poolings, 2 retrievers) are measured on the bundled corpus and its
questions, and by the usual loop over them with sentence-transformers and bm25s.

The retrievers are cosines, and reciprocal rank fusion of them with BM25. For each cell the peer embeds our
chunks and the questions, searches and takes the mean reciprocal rank.
Glassbox takes eight metrics with intervals, first with an empty cache of vectors, then with a full one. Each
runs in a process of its own on the same two cores, its model loaded before the clock starts. The largest
difference comes from rankings in which float32 rounding swapped near ties.
"""

import json
import sys
import tempfile
import time
from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants
from benchmarks.processes import CORES, Lineup, environment, memory, pin, run_once, say
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

WARM = f"{OURS}, vectors in the cache"
PEER = "sentence-transformers + bm25s, cell by cell"
MODULE = "benchmarks.sweep"
SIZES, OVERLAPS = (64, 128), (0, 16)
POOLINGS = ("mean", "max")
RETRIEVERS = ("dense", "hybrid")
K, MAX_TOKENS, RRF_CONSTANT = 5, 256, 60
SHARED = "splittings.json"  # what Glassbox leaves for the loop


def sweep_ours(folder: str, scratch: Path) -> dict[str, Any]:
    """Sweep with the cache of vectors in the scratch folder, empty or full."""
    from engine.documents.loaders import load_corpus
    from engine.documents.splitters import split
    from engine.evaluation.grid import grid
    from engine.evaluation.questions import load_questions, relevance
    from engine.evaluation.sweep import SweepInputs, sweep
    from engine.kernels.primitives import prepare_compiled
    from engine.models.encoder import Encoder
    from engine.retrieval.vector_cache import VectorCache

    encoder = Encoder.load(folder)
    prepare_compiled().join()
    documents, questions = load_corpus(), load_questions()
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

    begin, busy = time.perf_counter(), time.process_time()
    rows = list(sweep(SweepInputs(documents, questions, cells, {folder: encoder}), cache))
    figures = {
        "s": time.perf_counter() - begin,
        "cpu_s": time.process_time() - busy,
        "peak_mb": memory("VmHWM"),
    }
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
    cells_of = {row.configuration: row.metrics["mrr"] for row in rows}
    return figures | {
        "mrr": {key(c.chunk_tokens, c.overlap, c.pooling, c.retriever): mrr for c, mrr in cells_of.items()}
    }


def loop(folder: str, scratch: Path) -> dict[str, Any]:
    """Measure cell by cell with sentence-transformers and bm25s, nothing shared."""
    import torch
    from scipy.stats import rankdata
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from engine.evaluation.metrics import reciprocal_rank

    torch.set_num_threads(CORES)
    transformer = modules.Transformer(folder, max_seq_length=MAX_TOKENS)
    shared = json.loads((scratch / SHARED).read_text(encoding="utf-8"))
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
        """Measure one cell: embed, search, judge."""
        splitting = shared["splittings"][key(size, overlap)]
        texts = splitting["texts"]
        vectors = models[pooling].encode(texts, show_progress_bar=False)
        scores = models[pooling].encode(asked, show_progress_bar=False) @ vectors.T
        if retriever == "hybrid":
            both = (scores, bm25_scores(asked, texts))  # equals share a rank
            scores = sum(1 / (RRF_CONSTANT + rankdata(-each, method="min", axis=1)) for each in both)
        relevant = np.zeros(scores.shape, bool)
        for row, answers in zip(relevant, splitting["relevant"], strict=True):
            row[answers] = True
        return float(reciprocal_rank(scores, relevant).mean())

    begin, busy = time.perf_counter(), time.process_time()
    found = {key(*cell): measure(*cell) for cell in product(SIZES, OVERLAPS, POOLINGS, RETRIEVERS)}
    return {
        "s": time.perf_counter() - begin,
        "cpu_s": time.process_time() - busy,
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


def key(*settings: object) -> str:
    """Name a cell or a splitting."""
    return " ".join(map(str, settings))


def table(result: Result) -> Table:
    """Tabulate Glassbox with an empty and a full cache, and the peer."""
    return contestants(
        result,
        {
            "seconds": "{s:.1f}",
            "ratio": "{ratio:.1f}",
            "CPU s": "{cpu_s:.1f}",
            "CPU ratio": "{cpu_ratio:.1f}",
            "peak MB": "{peak_mb:,.0f}",
            "largest difference of the MRR": "{difference:.1e}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Run both sweeps, Glassbox first."""
    pin()
    folder, env = str(model_path(DEFAULT_ENCODER)), environment()
    with tempfile.TemporaryDirectory() as scratch:
        lineup, rows = Lineup((OURS, WARM, PEER), needed=(OURS, WARM)), dict[str, Any]()
        for name, order in {OURS: "cold", WARM: "warm", PEER: "loop"}.items():
            with lineup.turn(name):
                say(f"running {name}")
                rows[name] = json.loads(run_once(MODULE, [order, folder, scratch], env))
    ours = rows.pop(OURS)
    for row in (ours, *rows.values()):
        row["difference"] = max(abs(mrr - row["mrr"][cell]) for cell, mrr in ours["mrr"].items())
        row |= {"ratio": row["s"] / ours["s"], "cpu_ratio": row["cpu_s"] / ours["cpu_s"]}
    return {
        "workload": (
            f"{len(ours['mrr'])} cells: chunks of {', '.join(map(str, SIZES))} tokens, overlaps "
            f"{', '.join(map(str, OVERLAPS))}, poolings {', '.join(POOLINGS)}, retrievers "
            f"{', '.join(RETRIEVERS)}; at most {MAX_TOKENS} tokens read, on {CORES} cores"
        ),
        "ours": ours,
        "peers": rows | lineup.ended_rows,
    }


BENCHMARK = Benchmark(__doc__, run, table)


if __name__ == "__main__":
    if sys.argv[1:2] in (["cold"], ["warm"], ["loop"]):
        measured = loop if sys.argv[1] == "loop" else sweep_ours
        print(json.dumps(measured(sys.argv[2], Path(sys.argv[3]))))
    else:
        BENCHMARK.main()
