"""How much memory a long stream of texts needs: ``python -m benchmarks.stream [--chunks 100000] [--json]``.

Texts from a generator, one in ten of them a repetition, are embedded block by block; measured is how far
resident memory rises after the first tenth.

Texts are made when they are requested, and every block of vectors is dropped as soon as it is received.
"""

import random
import resource
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from benchmarks.command import Benchmark, Result, Table
from benchmarks.texts import corpus_words, passage
from engine import Encoder
from engine.kernels.primitives import prepare_compiled

CHUNK_WORDS = 16


def chunks(n_chunks: int) -> Iterator[str]:
    """Yield pieces of the bundled corpus; every tenth repeats an earlier one."""
    rng = random.Random(0)
    words = corpus_words()
    earlier: list[str] = []
    for number in range(n_chunks):
        if number % 10 == 9:
            yield rng.choice(earlier)
            continue
        text = f"{number} {passage(words, CHUNK_WORDS, rng)}"
        if len(earlier) < 1000:
            earlier.append(text)
        yield text


def peak_mb() -> float:
    """Peak memory of this process, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * (1 if sys.platform == "darwin" else 1024) / 1e6


def run(arguments: Namespace) -> Result:
    """Embed the stream."""
    encoder = Encoder.load()
    prepare_compiled().join()
    n_done, early_mb, start = 0, 0.0, time.perf_counter()
    for vectors in encoder.encode_stream(chunks(arguments.chunks)):
        n_done += len(vectors)
        if not early_mb and n_done >= arguments.chunks / 10:
            early_mb = peak_mb()
        if sys.stderr.isatty():
            print(f"\r{n_done} of {arguments.chunks}", end="", file=sys.stderr)
    seconds = time.perf_counter() - start
    return {
        "workload": f"{n_done} chunks of {CHUNK_WORDS + 1} words, every tenth a repetition",
        "ours": {
            "chunks_per_s": n_done / seconds,
            "seconds": seconds,
            "peak_mb": peak_mb(),
            "rise_after_first_tenth_mb": peak_mb() - early_mb,
        },
        "limit": {"vectors_mb": n_done * encoder.config.d_model * 4 / 1e6},
    }


def tables(result: Result) -> Iterator[Table]:
    """Yield the four figures, and the size of all vectors."""
    figures = result["ours"] | result["limit"]
    labels = {
        "chunks_per_s": "texts a second",
        "seconds": "seconds",
        "peak_mb": "peak MB",
        "rise_after_first_tenth_mb": "rise after the first tenth, MB",
        "vectors_mb": "all vectors, MB",
    }
    yield Table(["", "measured"], [[label, f"{figures[name]:.1f}"] for name, label in labels.items()])


def add_options(parser: ArgumentParser) -> None:
    """Add the length of the stream."""
    parser.add_argument("--chunks", type=int, default=100_000, help="number of texts")


EXPLANATION = """\
Some 150 bytes stay in memory for every distinct text, so that a repetition is found; its vector is kept in a
temporary file."""
BENCHMARK = Benchmark(__doc__, run, tables, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
