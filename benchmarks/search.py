"""How fast a question finds its passages: ``python -m benchmarks.search [--json] [--chunks 100000]``.

Kinds of index, hnswlib and exact NumPy, then BM25 and the hybrids: one question on one core.

The vectors, 384 numbers each, are a mixture around the chunks of the bundled corpus: to that of one chunk, a
share of the difference of two others is added, 0.3 to 0.9 of it, and the sum scaled to length 1. The texts
hold every other word of two chunks and a made-up word. The questions are the bundled ones. All is drawn by a
fixed seed. Each contestant is built in one process on two cores and searched in another on one core, where
memory is measured; the vectors are mapped from the disk, but for NumPy. Each kind searches as thoroughly as
its recall in a sample of the chunks asks for, as in the command `index`. 100,000 chunks take about four
minutes, ``--chunks 1000000`` about 40 and 9 GB of disk. hnswlib comes with ``pip install -r
benchmarks/requirements.txt``.
"""

import json
import os
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants
from benchmarks.processes import CORES, Lineup, environment, pin, run_once, say
from benchmarks.searchers import HNSWLIB, NUMPY, K
from engine import Encoder
from engine.documents.loaders import BUNDLED_INDEX
from engine.evaluation.questions import load_questions
from engine.layers.norm import l2_normalize
from engine.retrieval.index_choice import by_size
from engine.retrieval.index_kinds import INDEX_KINDS, exact_nearest
from engine.storage.workspace import open_workspace

CHUNKS = 100_000
BLOCK = 50_000  # vectors made at a time
SHARES = (0.3, 0.9)  # of a difference of two vectors, that is added to a third
CONTESTANTS = (*INDEX_KINDS, HNSWLIB, NUMPY)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def make_workload(folder: Path, n_chunks: int) -> tuple[int, float]:
    """Write vectors, the parts of texts, questions and what exact search finds for them.

    Returns the number of questions, and their mean cosine with the tenth passage.
    """
    index = open_workspace(BUNDLED_INDEX).index
    assert index is not None
    real, random = index.vectors, np.random.default_rng(0)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (n_chunks, real.shape[1]))
    parts = random.integers(0, len(real), (n_chunks, 3))
    for start in range(0, n_chunks, BLOCK):
        own, plus, minus = parts[start : start + BLOCK].T
        shares = random.uniform(*SHARES, (len(own), 1)).astype(np.float32)
        vectors[start : start + BLOCK] = l2_normalize(real[own] + shares * (real[plus] - real[minus]))
    questions = [question.text for question in load_questions()]
    embedded = Encoder.load().encode(questions)
    exact, _ = exact_nearest(vectors, embedded, K)
    for name, array in {"parts": parts[:, :2], "questions": embedded, "exact": exact}.items():
        np.save(folder / f"{name}.npy", array)
    for name, texts in {"questions": questions, "bases": list(index.texts)}.items():
        (folder / f"{name}.json").write_text(json.dumps(texts), encoding="utf-8")
    return len(questions), float(exact[:, -1].mean())


def row_name(contestant: str, chosen: str) -> str:
    """Return the name of a contestant's row; the kind chosen by size is Glassbox's own."""
    if contestant == chosen:
        return OURS
    return f"{OURS}, {INDEX_KINDS[contestant].label}" if contestant in INDEX_KINDS else contestant


def run(arguments: Namespace) -> Result:
    """Build and search each index."""
    pin()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        n_questions, tenth = make_workload(folder, arguments.chunks)
        chosen, _ = by_size(np.load(folder / "vectors.npy", mmap_mode="r"))
        others = [name for name in arguments.contestants if name != chosen]
        lineup = Lineup([chosen, *others], needed=(chosen,))
        figures: dict[str, Any] = {}
        rounds = str(arguments.rounds)

        def run_phase(phase: str, name: str) -> Any:
            say(f"{name}: {phase}")
            order, env = [phase, name, str(folder), rounds], {} if phase == "build" else ONE_THREAD
            return json.loads(run_once("benchmarks.searchers", order, environment(**env)))

        for name in lineup:
            with lineup.turn(name):
                figures[name] = run_phase("build", name) | run_phase("search", name)
        words = run_phase("words", chosen)
    rows = figures | lineup.ended_rows
    return {
        "workload": (
            f"{arguments.chunks:,} chunks of 384 numbers, {n_questions} questions with a mean cosine of "
            f"{tenth:.2f} with their tenth passage, {arguments.rounds} rounds; built on {CORES} cores, "
            f"searched on one; load of the machine {os.getloadavg()[0]:.0f}"
        ),
        "ours": rows.pop(chosen) | {"kind": chosen},
        "peers": {row_name(name, chosen): row | {"kind": name} for name, row in rows.items()},
        "words": words,
    }


def table(result: Result) -> Table:
    """Tabulate the indexes, then the retrievers that read words."""
    indexes = contestants(
        result,
        {
            "index": "{index}",
            "build, s": "{build_s:.1f}",
            "resident MB": "{resident_mb:,.0f}",
            f"recall@{K}": "{recall:.3f}",
            "p50 ms": "{median_ms:.2f}",
        },
    )
    words = result["words"]
    rows = [
        [
            f"{OURS}, {row['label']}",
            words["index"],
            f"{words['build_s']:.1f}",
            f"{words['resident_mb']:,.0f}",
            f"{row['recall']:.3f}",
            f"{row['median_ms']:.2f}",
        ]
        for row in words["rows"].values()
    ]
    return Table(indexes.columns, [*indexes.rows, *rows])


def add_options(parser: ArgumentParser) -> None:
    """Add the number of chunks."""
    parser.add_argument(
        "--chunks",
        type=int,
        default=CHUNKS,
        help="how many; the default takes about four minutes, 1000000 about 40",
    )
    parser.add_argument(
        "--contestants",
        nargs="+",
        choices=CONTESTANTS,
        default=CONTESTANTS,
        help="with the kind that is chosen by size; HNSW and hnswlib take the most of the time",
    )


EXPLANATION = """\
Resident memory is that of a search, without the texts. The hybrids score candidates only."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=2, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
