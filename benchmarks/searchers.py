"""The indexes that ``benchmarks.search`` compares, each built and searched in processes of its own.

``python -m benchmarks.searchers PHASE NAME FOLDER ROUNDS`` prints a JSON object. ``build`` builds the index
of vectors.npy into the folder; ``search`` reads it and asks the questions one by one on one core; ``words``
asks them by the retrievers that read words, of texts that it makes. Each imports only what it needs, since
memory is part of the comparison.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import CORES, memory

Vectors = Any  # (n, d_model), float32
# The vectors of questions (n_questions, d_model) and k in; scores and rows (n_questions, k) out.
Find = Callable[[Vectors, int], tuple[Vectors, Vectors]]

K = 10
SAME_SCORE = 1e-6  # float32 rounding
LINKS, CONSTRUCTION = 32, 40  # of hnswlib, as FAISS has them in the kind "hnsw"
HNSWLIB, NUMPY = "hnswlib", "NumPy"
N_COMPARED = 50  # questions of `words` that are scored by all chunks, too
RETRIEVERS = ("bm25", "hybrid", "weighted")


def build_ours(kind: str, folder: Path, vectors: Vectors) -> dict[str, Any]:
    """Build one of our kinds and raise its effort until its recall in a sample is enough."""
    from engine.retrieval.index_choice import tuned

    ann, measured = tuned(vectors, kind)
    np.save(folder / f"{kind}.npy", ann.to_bytes())
    (folder / f"{kind}-effort.json").write_text(json.dumps(ann.effort))
    return {"build_s": measured.build_s}


def build_hnswlib(folder: Path, vectors: Vectors) -> dict[str, Any]:
    """Build hnswlib's graph; raise its effort on the same sample by the same steps."""
    import hnswlib  # type: ignore

    from engine.retrieval.index_choice import EFFORTS, SAMPLE, TRUSTED
    from engine.retrieval.index_kinds import exact_nearest

    index = hnswlib.Index("ip", vectors.shape[1])
    start = time.perf_counter()
    index.init_index(len(vectors), M=LINKS, ef_construction=CONSTRUCTION, random_seed=0)
    index.add_items(vectors, num_threads=CORES)
    build_s = time.perf_counter() - start
    sample = vectors[np.random.default_rng(0).permutation(len(vectors))[:SAMPLE]]
    exact, _ = exact_nearest(vectors, sample, K + 1)
    for effort in EFFORTS:
        index.set_ef(effort)
        _, distances = index.knn_query(sample, K + 1)
        if recall_of(1 - distances, exact) >= TRUSTED:
            break
    index.save_index(str(folder / f"{HNSWLIB}.bin"))
    (folder / f"{HNSWLIB}-effort.json").write_text(json.dumps(index.ef))
    return {"build_s": build_s}


def build(name: str, folder: Path) -> dict[str, Any]:
    """Build an index into the folder."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    if name in (NUMPY, "flat"):
        return {"build_s": 0.0}
    return build_hnswlib(folder, vectors) if name == HNSWLIB else build_ours(name, folder, vectors)


def open_ours(kind: str, folder: Path, vectors: Vectors) -> Any:
    """Read one of our kinds, None for exact search."""
    from engine.retrieval.index_kinds import AnnIndex

    if kind == "flat":
        return None
    content = np.load(folder / f"{kind}.npy", mmap_mode="r")
    return AnnIndex.from_bytes(
        kind, json.loads((folder / f"{kind}-effort.json").read_text()), content, vectors.shape
    )


def open_index(name: str, folder: Path) -> tuple[Find, str]:
    """Read an index of the folder; return its search, and its kind with the effort."""
    if name == NUMPY:
        matrix = np.load(folder / "vectors.npy")

        def find(questions: Vectors, k: int) -> tuple[Vectors, Vectors]:
            scores = questions @ matrix.T  # (n_questions, n)
            rows = np.argpartition(-scores, k, axis=1)[:, :k]
            scores = np.take_along_axis(scores, rows, 1)
            order = np.argsort(-scores, axis=1)
            return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)

        return find, "exact, argpartition"
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    if name == HNSWLIB:
        import hnswlib

        index = hnswlib.Index("ip", vectors.shape[1])
        index.load_index(str(folder / f"{HNSWLIB}.bin"))
        index.set_num_threads(1)
        effort = json.loads((folder / f"{HNSWLIB}-effort.json").read_text())
        index.set_ef(effort)

        def find_hnswlib(questions: Vectors, k: int) -> tuple[Vectors, Vectors]:
            rows, distances = index.knn_query(questions, k)
            return 1 - distances, rows

        return find_hnswlib, f"HNSW (ef {effort})"

    from engine.retrieval.index_kinds import INDEX_KINDS, exact_nearest

    ann, kind = open_ours(name, folder, vectors), INDEX_KINDS[name]
    if ann is None:
        return lambda questions, k: exact_nearest(vectors, questions, k), kind.label
    return (
        lambda questions, k: ann.nearest(vectors, questions, k),
        f"{kind.label} ({kind.effort} {ann.effort})",
    )


def recall_of(scores: Vectors, exact: Vectors) -> float:
    """Mean share of found scores that are at least as high as the last exact one: both ``(n, k)``."""
    return float((scores >= exact[:, -1:] - SAME_SCORE).mean())


def timed(find: Find, questions: Vectors, rounds: int) -> tuple[Vectors, dict[str, float]]:
    """Ask question by question; return the scores found, and milliseconds over ``rounds`` behind a first."""
    found, watch = [], Stopwatch()
    for turn in range(rounds + 1):
        for question in questions:
            watch.start()
            scores, _ = find(question[None], K)
            if turn:
                watch.stop()
            else:
                found.append(scores[0])
    return np.array(found), watch.milliseconds


class Stopwatch:
    """Times of searches."""

    def __init__(self) -> None:
        self.seconds = list[float]()
        self.started = 0.0

    def start(self) -> None:
        """Begin a search."""
        self.started = time.perf_counter()

    def stop(self) -> None:
        """End it."""
        self.seconds.append(time.perf_counter() - self.started)

    @property
    def milliseconds(self) -> dict[str, float]:
        """Median and 99th percentile."""
        median, slow = np.quantile(1000 * np.array(self.seconds), (0.5, 0.99))
        return {"median_ms": float(median), "p99_ms": float(slow)}


def one_core() -> None:
    """Restrict this process to one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])


def search(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Ask the questions on one core."""
    one_core()
    find, label = open_index(name, folder)
    questions, exact = np.load(folder / "questions.npy"), np.load(folder / "exact.npy")
    scores, times = timed(find, questions, rounds)
    return {"index": label, "recall": recall_of(scores, exact), "resident_mb": memory("VmRSS"), **times}


def words(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Ask the questions by the retrievers that read words, with one of our kinds, on one core."""
    from dataclasses import replace

    from engine.documents.document import Chunk
    from engine.retrieval.embedding_spec import EmbeddingSpec, Query
    from engine.retrieval.index import index_vectors
    from engine.retrieval.index_kinds import INDEX_KINDS
    from engine.retrieval.ranking import top
    from engine.retrieval.retrievers import RETRIEVERS as LABELLED
    from engine.retrieval.retrievers import found_rows, index_scores

    vectors, questions = np.load(folder / "vectors.npy", mmap_mode="r"), np.load(folder / "questions.npy")
    texts = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    chunks = [Chunk("d", row, row + 1, text, 0) for row, text in enumerate(made_texts(folder))]
    spec = EmbeddingSpec("benchmark", "mean", 256, vectors.shape[1])
    exact = index_vectors(chunks, vectors, spec)
    start = time.perf_counter()
    postings = exact.words.postings
    build_s = time.perf_counter() - start
    ann = open_ours(name, folder, vectors)
    index = replace(exact, ann=ann, postings=postings)
    one_core()
    rows: dict[str, Any] = {}
    for retriever in RETRIEVERS:
        watch, recalls = Stopwatch(), []
        for turn in range(rounds + 1):
            for place, (text, vector) in enumerate(zip(texts, questions, strict=True)):
                query = Query(vector, spec)
                watch.start()
                found = found_rows(retriever, text, query, index, None, K)
                index.search(query, K, found)
                if turn:
                    watch.stop()
                elif place < N_COMPARED:
                    scores = index_scores(retriever, text, query, exact, None)
                    best = top(scores, K)
                    least = scores[best[-1]] - SAME_SCORE if len(best) else 0
                    recalls.append((scores[found[:K]] >= least).sum() / len(best) if len(best) else 1.0)
        rows[retriever] = {
            "label": LABELLED[retriever].label,
            "recall": float(np.mean(recalls)),
            **watch.milliseconds,
        }
    return {
        "index": INDEX_KINDS[name].label,
        "build_s": build_s,
        "resident_mb": memory("VmRSS"),
        "rows": rows,
    }


def made_texts(folder: Path) -> list[str]:
    """Make a text for each vector, of every other word of two real chunks and a word of two halves."""
    bases = [text.split() for text in json.loads((folder / "bases.json").read_text(encoding="utf-8"))]
    texts = []
    for first, second in np.load(folder / "parts.npy").tolist():
        one, other = bases[first], bases[second]
        joined = one[(first + second) % len(one)][:4] + other[(3 * first + second) % len(other)][-4:]
        texts.append(" ".join([*one[::2], *other[1::2], joined]))
    return texts


PHASES = {"search": search, "words": words}


if __name__ == "__main__":
    phase, contestant, path, rounds = sys.argv[1:]
    if phase == "build":
        result = build(contestant, Path(path))
    else:
        result = PHASES[phase](contestant, Path(path), int(rounds))
    print(json.dumps(result))
