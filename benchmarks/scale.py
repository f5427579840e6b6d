"""What a chunk costs: ``python -m benchmarks.scale [--chunks 20000] [--json]``.

Chunks of the bundled documents, cut at random places, in each precision and kind of index.

The figures of BM25 are of as many chunks of 90 words. Times are those of a processor core, which other
programs on the machine disturb little. `docs/scale.md` computes with these figures.
"""

import random
import tempfile
import time
import tracemalloc
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from benchmarks.texts import corpus_words, passage
from engine.documents.loaders import BUNDLED_CORPUS
from engine.documents.splitters import DEFAULT_SPLITTING
from engine.kernels.primitives import prepare_compiled
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.models.precision import PRECISIONS
from engine.retrieval.bm25 import Bm25
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index_choice import NEAREST as K
from engine.retrieval.index_choice import measure, with_least_effort
from engine.retrieval.index_kinds import FLAT, INDEX_KINDS, build_ann, exact_nearest
from engine.retrieval.stored.index_folder import IndexSettings, open_index
from engine.retrieval.stored.index_update import update_index
from engine.retrieval.vector_cache import VectorCache

T = TypeVar("T")

CHUNK_WORDS = 24
MEASURED_TEXTS = 400  # in each precision, of the length of chunks in use
TEXT_WORDS = 90
QUESTIONS = 20
CACHED = 5_000  # vectors


def core_s(work: Callable[[], T]) -> tuple[T, float]:
    """Return a result and the seconds of processor time that it took, of all threads.

    OpenMP and the BLAS have one thread: others that wait for each other would count, too.
    """
    with threadpool_limits(1):
        start = time.process_time()
        result = work()
        return result, time.process_time() - start


def windows(n_texts: int, n_words: int, rng: random.Random) -> list[str]:
    """Cut texts of some words at random places of the bundled corpus."""
    words = corpus_words()
    return [passage(words, n_words, rng) for _ in range(n_texts)]


def embedding_figures(texts: list[str]) -> dict[str, float]:
    """Return core-seconds for a thousand tokens, by precision."""
    encoder, found = Encoder.load(), {}
    prepare_compiled().join()
    ids = [encoder.truncate(each) for each in encoder.tokenizer.ids_batch(texts)]
    for precision in PRECISIONS:
        rounded = encoder.with_precision(precision)
        rounded.encode_ids(ids[:8])
        _, seconds = core_s(lambda model=rounded: model.encode_ids(ids))  # type: ignore[misc]
        found[precision] = 1000 * seconds / sum(map(len, ids))
        say(f"{precision}: {found[precision]:.3f} core-seconds for 1,000 tokens")
    return found


def kind_figures(vectors: Array) -> dict[str, dict[str, float]]:
    """Return bytes, building, search and recall of each kind of index on vectors ``(n_chunks, d_model)``."""
    found = {}
    for kind in INDEX_KINDS:
        if kind == FLAT:
            find, build_s, n_bytes = exact_nearest, 0.0, vectors.nbytes
            measured = measure(vectors, None)
        else:
            ann, build_s = core_s(lambda name=kind: build_ann(vectors, name))  # type: ignore[misc]
            n_bytes = ann.to_bytes().nbytes
            ann, measured = with_least_effort(vectors, ann)
            find = ann.nearest
        _, search_s = core_s(lambda using=find: [using(vectors, q[None], K) for q in vectors[:QUESTIONS]])  # type: ignore[misc]
        found[kind] = {
            "n_chunks": len(vectors),
            "bytes": n_bytes / len(vectors),
            "recall": measured.recall,
            "build_ms": 1000 * build_s / len(vectors),
            "search_ms": 1000 * search_s / QUESTIONS,
        }
        say(f"{kind}: {found[kind]}")
    return found


def word_figures(texts: list[str]) -> dict[str, float]:
    """Return bytes, building and search of BM25's index."""
    index, build_s = core_s(lambda: Bm25(texts))
    _, search_s = core_s(lambda: index.scores(texts[:QUESTIONS]))
    return {
        "bytes": (index.postings.rows.nbytes + index.postings.impacts.nbytes) / len(texts),
        "build_ms": 1000 * build_s / len(texts),
        "search_ms": 1000 * search_s / QUESTIONS,
    }


def folder_figures(texts: list[str], vectors: Array, encoder: Encoder, scratch: Path) -> dict[str, float]:
    """Return bytes, memory and times of an index folder of the bundled documents, and of the cache."""
    folder = scratch / "index"
    settings = IndexSettings(encoder.name, DEFAULT_SPLITTING, index_kind=FLAT)
    stored = update_index(BUNDLED_CORPUS, folder, encoder, settings).stored
    n_chunks = len(stored.index.chunks)
    n_bytes = sum(path.stat().st_size for path in folder.glob("*/files.jsonl"))
    del stored
    open_index(folder)  # imports what it needs
    tracemalloc.start()
    kept = open_index(folder)
    n_memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    _, open_s = core_s(lambda: open_index(folder))
    cache = VectorCache(scratch / "cache")
    cache.put_many(texts[:CACHED], vectors[:CACHED], embedding_spec(encoder, None, None))
    cache.close()
    n_cached = sum(path.stat().st_size for path in scratch.glob("cache*"))
    return {
        "n_chunks": n_chunks,
        "text_bytes": n_bytes / n_chunks,
        "memory_bytes": n_memory / n_chunks,
        "open_ms": 1000 * open_s / n_chunks,
        "cache_bytes": n_cached / CACHED,
    }


def run(arguments: Namespace) -> Result:
    """Measure all of it."""
    rng, encoder = random.Random(0), Encoder.load()
    embedding = embedding_figures(windows(MEASURED_TEXTS, TEXT_WORDS, rng))
    texts = windows(arguments.chunks, CHUNK_WORDS, rng)
    say(f"embedding {len(texts):,} chunks")
    vectors = encoder.with_precision("int8").encode(texts)
    with tempfile.TemporaryDirectory() as scratch:
        return {
            "workload": f"{arguments.chunks} chunks of {CHUNK_WORDS} words, {vectors.shape[1]} numbers each",
            "ours": {
                "embedding": embedding,
                "kinds": kind_figures(vectors),
                "words": word_figures(windows(arguments.chunks, TEXT_WORDS, rng)),
                "folder": folder_figures(texts, vectors, encoder, Path(scratch)),
            },
        }


def table(result: Result) -> Table:
    """Tabulate embedding, the kinds of indexes, and the rest."""
    ours = result["ours"]
    words, folder = ours["words"], ours["folder"]
    rows = [
        [f"embedding in {name}, 1,000 tokens", "", f"{1000 * seconds:.0f}", "", ""]
        for name, seconds in ours["embedding"].items()
    ]
    rows += [
        [
            f"{INDEX_KINDS[kind].label}, {own['n_chunks']:,} chunks",
            f"{own['bytes']:,.0f}",
            f"{own['build_ms']:.2f}",
            f"{own['search_ms']:.2f}",
            f"{own['recall']:.3f}",
        ]
        for kind, own in ours["kinds"].items()
    ]
    rows += [
        ["BM25", f"{words['bytes']:,.0f}", f"{words['build_ms']:.3f}", f"{words['search_ms']:.2f}", ""],
        ["text and spans in an index folder", f"{folder['text_bytes']:,.0f}", "", "", ""],
        ["the same in memory, opening", f"{folder['memory_bytes']:,.0f}", f"{folder['open_ms']:.3f}", "", ""],
        ["a vector in the cache", f"{folder['cache_bytes']:,.0f}", "", "", ""],
    ]
    return Table(["", "bytes a chunk", "core-ms a chunk", "search, core-ms", f"recall@{K}"], rows)


def add_options(parser: ArgumentParser) -> None:
    """Add the number of chunks."""
    parser.add_argument("--chunks", type=int, default=20_000, help="how many")


EXPLANATION = """\
Chunks overlap, so recall only compares kinds. [Large corpora](scale.md) computes with these figures."""
BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
