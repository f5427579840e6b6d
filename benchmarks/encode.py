"""How fast texts are embedded: ``python -m benchmarks.encode [--precision int8] [--json] [--rounds 2]``.

Glassbox, onnxruntime and sentence-transformers embed the same texts, of mixed lengths and of fixed ones.

The contestants take turns on the same two cores, each in a process of its own. Figures are medians over the
rounds: tokens per second, start-up (from starting Python to the first vector), resident memory after loading,
peak memory, and the largest difference from float32 sentence-transformers. The limit is the best matrix
product of the BLAS, measured in between. The row of Glassbox, and the ratios, are of float32 unless
``--precision`` names another.
"""

import json
import random
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.encoders import MAX_TOKENS
from benchmarks.processes import CORES, Lineup, Served, environment, pin, run_once, say
from benchmarks.texts import corpus_words, passage
from engine.models.bert import EncoderConfig
from engine.models.encoder import Encoder
from engine.models.precision import PRECISIONS
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

REFERENCE = "sentence-transformers float32"
OWN = {name: f"glassbox {name}" for name in PRECISIONS}
CONTESTANTS = (
    *OWN.values(),
    "glassbox, NumPy only",
    REFERENCE,
    "sentence-transformers bfloat16",
    "onnxruntime float32",
    "onnxruntime int8",
)
MIXED = "mixed"
MIXED_WORDS, MIXED_CHUNKS = (20, 160), 640  # fewer would make the peers' batches of like lengths pad more
FIXED_LENGTHS, FIXED_TOKENS = (32, 128, 256), 4_096


@dataclass
class Workload:
    """Texts to embed; ``lengths`` are the tokens read of each."""

    texts: list[str]
    lengths: list[int]


@dataclass
class Contestant:
    """A running contestant and its measurements."""

    served: Served
    startup_s: float
    peak_mb: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    vectors: dict[str, Any] = field(default_factory=dict)


def workloads(encoder: Encoder) -> dict[str, Workload]:
    """Cut chunks at random places of the bundled corpus, with a fixed seed."""
    rng = random.Random(0)
    words = corpus_words()

    def chunk(n_words: int) -> str:
        return passage(words, n_words, rng)

    def chunk_of_tokens(n_tokens: int) -> str:
        text = chunk(n_tokens)  # every word has at least one token
        last = encoder.tokenizer.encode_batch([text])[0].offsets[n_tokens - 2]
        return text[: last[1]]

    texts = {
        f"{length} tokens": [chunk_of_tokens(length) for _ in range(FIXED_TOKENS // length)]
        for length in FIXED_LENGTHS
    }
    texts[MIXED] = [chunk(rng.randint(*MIXED_WORDS)) for _ in range(MIXED_CHUNKS)]
    return {
        name: Workload(some, [min(len(ids), MAX_TOKENS) for ids in encoder.tokenizer.ids_batch(some)])
        for name, some in texts.items()
    }


def flops(lengths: list[int], config: EncoderConfig) -> int:
    """Floating-point operations of the matrix products that texts of these lengths need."""
    d, d_ff = config.d_model, config.d_ff
    per_token = 2 * (4 * d * d + 2 * d * d_ff)  # query, key, value, output; up, down
    return config.n_layers * sum(n * per_token + 4 * n * n * d for n in lengths)


def start(name: str, folder: Path, env: dict[str, str], errors: Path) -> Contestant:
    """Start a contestant and wait for its first vector."""
    began = time.time()
    served = Served("benchmarks.encoders", [name, str(folder)], env, errors)
    return Contestant(served, served.ready["ready"] - began)


def take_turns(
    own: str, rounds: int, folder: Path, work: dict[str, Workload], scratch: Path
) -> dict[str, Any]:
    """Run the contestants in turn; return what was measured."""
    env, errors = environment(ONNX_FOLDER=str(scratch)), scratch / "errors.txt"
    say("exporting to ONNX")
    run_once("benchmarks.encoders", ["export", str(folder)], env)
    say("first start on a fresh machine")
    fresh = start(own, folder, {**env, "NUMBA_CACHE_DIR": str(scratch / "kernels")}, errors)
    fresh.served.stop()

    lineup = Lineup(CONTESTANTS, needed=(own, REFERENCE))
    startups: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    running: dict[str, Contestant] = {}
    for turn in range(rounds + 1):  # the first fills the disk cache and is dropped
        for name in lineup:
            if name in running:
                running[name].served.stop()
            with lineup.turn(name):
                running[name] = start(name, folder, env, errors)
                if turn:
                    startups[name].append(running[name].startup_s)
    for name, some in work.items():
        (scratch / f"{name}.json").write_text(json.dumps(some.texts), encoding="utf-8")
    peaks: list[dict[str, Any]] = []
    for turn in range(rounds):
        peaks.append(json.loads(run_once("benchmarks.encoders", ["gemm", str(folder)], env)))
        for workload in work:
            for name in lineup:
                say(f"round {turn + 1} of {rounds}, {workload}: {name}")
                with lineup.turn(name):
                    embed_workload(running[name], workload, scratch)
    for name in lineup:
        running[name].served.stop()
    running = {name: running[name] for name in lineup}
    ended = lineup.ended_rows
    return {"running": running, "startups": startups, "fresh": fresh, "peaks": peaks, "ended": ended}


def embed_workload(contestant: Contestant, workload: str, scratch: Path) -> None:
    """Embed one workload with one contestant."""
    order = {"texts": str(scratch / f"{workload}.json"), "vectors": str(scratch / "vectors.npy")}
    answer = contestant.served.ask(order)
    contestant.seconds.setdefault(workload, []).append(answer["seconds"])
    contestant.peak_mb = answer["peak_mb"]
    contestant.vectors[workload] = np.load(scratch / "vectors.npy")


def figures_of(
    own: str, measured: dict[str, Any], work: dict[str, Workload], config: EncoderConfig
) -> Result:
    """Return the figures of what was measured."""
    running = measured["running"]

    def figures(name: str) -> dict[str, Any]:
        contestant = running[name]
        return {
            "tokens_per_s": {
                workload: sum(some.lengths) / statistics.median(contestant.seconds[workload])
                for workload, some in work.items()
            },
            "startup_s": statistics.median(measured["startups"][name]),
            "resident_mb": contestant.served.ready["resident_mb"],
            "peak_mb": contestant.peak_mb,
            "max_difference": max(
                float(np.abs(contestant.vectors[workload] - running[REFERENCE].vectors[workload]).max())
                for workload in work
            ),
        }

    ours = figures(own) | {"first_start_s": measured["fresh"].startup_s}
    peers = {}
    for name in (each for each in running if each != own):
        theirs = figures(name)
        ratios = {
            workload: median_ratio(running[name].seconds[workload], running[own].seconds[workload])
            for workload in work
        }
        peers[name] = theirs | {
            "ratio": ratios[MIXED],
            "ratios": ratios,
            "startup_ratio": theirs["startup_s"] / ours["startup_s"],
        }
    peak = max(peak["gflops"] for peak in measured["peaks"])
    rates = {
        workload: flops(some.lengths, config) / statistics.median(running[own].seconds[workload]) / 1e9
        for workload, some in work.items()
    }
    n_mixed = work[MIXED]
    return {
        "workload": f"{len(n_mixed.texts)} chunks of {min(n_mixed.lengths)} to {max(n_mixed.lengths)} tokens "
        f"({sum(n_mixed.lengths)} in all), and {FIXED_TOKENS} tokens in chunks of each fixed length, "
        f"on {CORES} cores; {OURS} is {own}",
        "ours": ours,
        "peers": peers | measured["ended"],
        "limit": {
            "gemm_gflops": peak,
            "blas_kernel": measured["peaks"][0]["kernel"],
            "fraction": {workload: rate / peak for workload, rate in rates.items()},
        },
    }


def table(result: Result) -> Table:
    """Tabulate rate, start-up and memory of each encoder."""
    return contestants(
        result,
        {
            "mixed, tokens/s": "{tokens_per_s[mixed]:,.0f}",
            "mixed, ratio": "{ratios[mixed]:.2f}",
            "256 tokens each, tokens/s": "{tokens_per_s[256 tokens]:,.0f}",
            "256 tokens each, ratio": "{ratios[256 tokens]:.2f}",
            "start-up, s": "{startup_s:.2f}",
            "peak MB": "{peak_mb:,.0f}",
            "largest difference": "{max_difference:.1e}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Cut the texts and measure."""
    pin()
    encoder, own = Encoder.load(), OWN[arguments.precision]
    work = workloads(encoder)
    with tempfile.TemporaryDirectory() as scratch:
        measured = take_turns(own, arguments.rounds, model_path(DEFAULT_ENCODER), work, Path(scratch))
    return figures_of(own, measured, work, encoder.config)


def add_options(parser: ArgumentParser) -> None:
    """Add the precision of Glassbox."""
    parser.add_argument(
        "--precision", choices=list(PRECISIONS), default="float32", help="of Glassbox, for the ratios"
    )


EXPLANATION = """\
No padding, one worker a core, packed weights and compiled row formulas; `compiled=False` is the readable
NumPy path."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=2, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
