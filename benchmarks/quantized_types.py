"""How fast each type of weights is multiplied: ``python -m benchmarks.quantized_types [--json]``.

One core multiplies a vector by a matrix of each type of GGUF files, as for every new token of a language
model, beside the rate at which the same core reads memory.

The types and the reading take turns. Times are those of the thread, figures are medians over the rounds, and
a share is the rate over that of reading in the same round. Loading rearranges the bytes of a file for the
kernels, and is counted in these.
"""

import os
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.command import Benchmark, Result, Table, median_ratio
from benchmarks.processes import say
from engine.layers.tracing import Array
from engine.weights.stored import FLOATS, HELD, block_size

D_IN, LOADED_ROWS, MATRIX_BYTES = 2048, 4096, 200_000_000


def rate(work: Callable[[], object], n_bytes: int) -> float:
    """GB/s of a function that goes through so many bytes."""
    start = time.thread_time()
    work()
    return n_bytes / (time.thread_time() - start) / 1e9


def file_rows(kind: str) -> Array:
    """Rows of a matrix as a file has them; all bytes are alike, and all numbers finite."""
    n_columns, n_bytes = block_size(kind)
    rows = np.full((LOADED_ROWS, D_IN // n_columns * n_bytes), 17, np.uint8)
    return rows.view(FLOATS[kind]) if kind in FLOATS else rows


def prepare(kind: str) -> tuple[dict[str, float], Callable[[], object], int]:
    """Load a matrix: its bits for each weight, GB/s of loading; a function that multiplies it; its bytes."""
    from engine.kernels.op_tape import OpTape
    from engine.kernels.packed import PackedMatrix, pack

    say(f"preparing {kind}")
    rows = file_rows(kind)
    loading = max(rate(lambda: pack(kind, rows), rows.nbytes) for _ in range(3))
    part = pack(kind, rows)
    n_parts = MATRIX_BYTES // part.nbytes
    matrix = PackedMatrix(kind, (n_parts * LOADED_ROWS, D_IN), np.tile(part.panels, (n_parts, 1)))
    tape = OpTape(0, record=True)
    tape.linear(np.random.default_rng(0).normal(size=(1, D_IN)).astype(np.float32), matrix)
    bits = 8 * part.nbytes / (LOADED_ROWS * D_IN)
    return {"bits": bits, "loading_gb_per_s": loading}, lambda: tape.replay(0, 1), matrix.nbytes


def run(arguments: Namespace) -> Result:
    """Measure all types on one core."""
    if hasattr(os, "sched_setaffinity"):  # before the import of the kernels, which counts the cores
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    prepared = {kind: prepare(kind) for kind in HELD}
    memory = np.ones(MATRIX_BYTES // 8, np.int64)
    works = {kind: (multiply, n_bytes) for kind, (_, multiply, n_bytes) in prepared.items()}
    rates: dict[str, list[float]] = {kind: [] for kind in HELD}
    reading = []
    for turn in range(arguments.rounds + 1):  # the first warms up and is dropped
        say(f"round {turn} of {arguments.rounds}")
        reading.append(rate(memory.sum, memory.nbytes))
        for kind, work in works.items():
            rates[kind].append(rate(*work))
    types = {
        kind: figures
        | {
            "gb_per_s": statistics.median(rates[kind][1:]),
            "share": median_ratio(rates[kind][1:], reading[1:]),
        }
        for kind, (figures, _, _) in prepared.items()
    }
    return {
        "workload": f"matrices of {MATRIX_BYTES / 1e6:.0f} MB with {D_IN} columns, one core",
        "ours": {"types": types},
        "limit": {"read_gb_per_s": statistics.median(reading[1:])},
    }


def tables(result: Result) -> Iterator[Table | str]:
    """Yield a row for each type."""
    rows = [
        [
            kind,
            f"{figures['bits']:.2f}",
            f"{figures['gb_per_s']:.1f}",
            f"{figures['share']:.0%}",
            f"{8 * figures['gb_per_s'] / figures['bits']:.1f}",
            f"{figures['loading_gb_per_s']:.2f}",
        ]
        for kind, figures in result["ours"]["types"].items()
    ]
    columns = ["bits in memory", "GB/s", "share of reading", "10^9 weights/s", "loading, GB/s"]
    yield Table(["type", *columns], rows)
    yield f"one core reads memory with {result['limit']['read_gb_per_s']:.1f} GB/s"


EXPLANATION = """\
Matrices keep the bits of their file; only the 6-bit scales of Q3_K, Q4_K, Q5_K and IQ4_XS become bytes, at
most 4 % more. Kernels unpack the codes in registers. With AVX-512 VNNI the vector is rounded to 16 bits of
the largest of 32 numbers, and codes of fewer than 8 bits are multiplied as integers; elsewhere, and for the
other types, products are of float32."""
BENCHMARK = Benchmark(__doc__, run, tables, rounds=15, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
