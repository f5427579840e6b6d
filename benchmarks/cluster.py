"""How embedding scales with workers of Ray: ``python -m benchmarks.cluster [--files 24] [--json]``.

A folder of text files of one size is indexed with `--ray local`, by one worker and by two, each on one core.

The rate is that of the files after the first one that each run finished, so that it leaves out the start of
Ray and of the model in each worker; the seconds are those of the whole index. Each run is a process of its
own, in turns, and a ratio is the median of those of two runs next to each other.
"""

import json
import random
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.command import Benchmark, Result, Table, median_ratio
from benchmarks.processes import CORES, environment, pin, run_once, say
from benchmarks.texts import corpus_words
from engine import Encoder
from engine.documents.splitters import DEFAULT_SPLITTING
from engine.retrieval.stored.index_folder import IndexSettings
from engine.retrieval.stored.index_update import update_index
from engine.retrieval.stored.ray_shards import LOCAL, SHARD_BYTES, Cluster
from engine.weights.catalog import DEFAULT_ENCODER
from engine.wording import counted

MODULE = "benchmarks.cluster"
WORKERS = (1, 2)
AIM = 1.7  # times the rate of one worker


def write_corpus(folder: Path, n_files: int) -> None:
    """Write files of a shard's size, of words of the bundled corpus in another order each."""
    words = corpus_words()
    for number in range(n_files):
        drawn = random.Random(number).choices(words, k=SHARD_BYTES // 4)
        lines = (" ".join(drawn[start : start + 16]) + "." for start in range(0, len(drawn), 16))
        text = "\n\n".join(lines).encode()[: SHARD_BYTES - 1]
        (folder / f"{number:04}.txt").write_bytes(text.decode(errors="ignore").encode())


def index_once(corpus: Path, n_workers: int) -> dict[str, Any]:
    """Index a corpus by Ray; return the seconds, and the files a second after the first."""
    settings = IndexSettings(DEFAULT_ENCODER, DEFAULT_SPLITTING)
    times: list[float] = []
    encoder, start = Encoder.load(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        update = update_index(
            corpus,
            Path(folder) / "index",
            encoder,
            settings,
            on_progress=lambda done, total: times.append(time.perf_counter()),
            cluster=Cluster(LOCAL, Encoder.load, n_workers),
        )
    return {
        "seconds": time.perf_counter() - start,
        "files_per_s": (len(times) - 1) / (times[-1] - times[0]),
        "chunks": update.embedded_chunks,
    }


def run(arguments: Namespace) -> Result:
    """Run each number of workers in turns; or once, in this process, where a turn is asked for."""
    if arguments.turn:
        return {"workload": "a turn", "ours": index_once(arguments.turn, arguments.workers)}
    pin()
    turns: dict[int, list[dict[str, Any]]] = {n: [] for n in WORKERS}
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), arguments.files)
        for _ in range(arguments.rounds):
            for n in WORKERS:
                options = ["--json", "--turn", folder, "--workers", str(n)]
                turns[n].append(json.loads(run_once(MODULE, options, environment()))["ours"])
                say(f"{n} workers: {turns[n][-1]}")
    ours = {
        str(n): {
            name: statistics.median(turn[name] for turn in turns[n]) for name in ("seconds", "files_per_s")
        }
        for n in WORKERS
    }
    rates, seconds = (
        [[turn[name] for turn in turns[n]] for n in WORKERS] for name in ("files_per_s", "seconds")
    )
    ours["2"] |= {"ratio": median_ratio(rates[1], rates[0]), "whole_ratio": median_ratio(*seconds)}
    return {
        "workload": (
            f"{arguments.files} files of {SHARD_BYTES // 1024} kB, {turns[1][0]['chunks']:,} chunks, "
            f"all-MiniLM-L6-v2, {CORES} cores, median of {arguments.rounds}"
        ),
        "ours": ours,
        "limit": {"ratio": 2.0, "aim": AIM},
    }


def tables(result: Result) -> Iterator[Table]:
    """Yield a row for each number of workers, and the limit."""
    rows = []
    for n, row in result["ours"].items():
        ratios = [f"{row[name]:.2f}" if n != "1" else "" for name in ("ratio", "whole_ratio")]
        label = counted(int(n), "worker")
        rows.append([label, f"{row['files_per_s']:.2f}", ratios[0], f"{row['seconds']:.0f}", ratios[1]])
    rows.append(["limit, and aim", "", f"{result['limit']['ratio']:.0f}, {result['limit']['aim']}", "", ""])
    yield Table(["", "files/s", "ratio", "seconds in all", "ratio"], rows)


def add_options(parser: ArgumentParser) -> None:
    """Add the number of files, and the options of a turn."""
    parser.add_argument("--files", type=int, default=24, help="number of files")
    parser.add_argument("--turn", type=Path, help="index this folder once, in this process")
    parser.add_argument("--workers", type=int, default=1, help="of the turn")


BENCHMARK = Benchmark(__doc__, run, tables, rounds=3, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
