"""How fast texts are embedded: ``python -m benchmarks.encode [--json] [--rounds 2]``.

Glassbox, onnxruntime and sentence-transformers embed the same texts, of mixed lengths and of fixed ones.

The contestants take turns on the same two cores, each in a process of its own. Figures are medians over the
rounds: tokens per second, peak memory, and the largest difference from float32 sentence-transformers.
"""

import json
import random
import statistics
import tempfile
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.encoders import MAX_TOKENS
from benchmarks.processes import CORES, Lineup, Served, environment, pin, run_once, say
from benchmarks.texts import corpus_words, passage
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
FIXED, FIXED_LENGTH, FIXED_CHUNKS = "256 tokens", 256, 16


@dataclass
class Workload:
    """Texts to embed; ``lengths`` are the tokens read of each."""

    texts: list[str]
    lengths: list[int]


@dataclass
class Contestant:
    """A running contestant and its measurements."""

    served: Served
    peak_mb: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    vectors: dict[str, Any] = field(default_factory=dict)


def workloads(encoder: Encoder) -> dict[str, Workload]:
    """Cut chunks at random places of the bundled corpus, with a fixed seed."""
    rng = random.Random(0)
    words = corpus_words()

    def chunk_of_tokens(n_tokens: int) -> str:
        text = passage(words, n_tokens, rng)  # every word has at least one token
        return text[: encoder.tokenizer.encode_batch([text])[0].offsets[n_tokens - 2][1]]

    texts = {
        FIXED: [chunk_of_tokens(FIXED_LENGTH) for _ in range(FIXED_CHUNKS)],
        MIXED: [passage(words, rng.randint(*MIXED_WORDS), rng) for _ in range(MIXED_CHUNKS)],
    }
    return {
        name: Workload(some, [min(len(ids), MAX_TOKENS) for ids in encoder.tokenizer.ids_batch(some)])
        for name, some in texts.items()
    }


def take_turns(
    own: str, rounds: int, folder: Path, work: dict[str, Workload], scratch: Path
) -> dict[str, Any]:
    """Run the contestants in turn; return what was measured."""
    env, errors = environment(ONNX_FOLDER=str(scratch)), scratch / "errors.txt"
    say("exporting to ONNX")
    run_once("benchmarks.encoders", ["export", str(folder)], env)
    lineup = Lineup(CONTESTANTS, needed=(own, REFERENCE))
    running: dict[str, Contestant] = {}
    for name in lineup:
        with lineup.turn(name):
            running[name] = Contestant(Served("benchmarks.encoders", [name, str(folder)], env, errors))
    for name, some in work.items():
        (scratch / f"{name}.json").write_text(json.dumps(some.texts), encoding="utf-8")
    for turn in range(rounds):
        for workload in work:
            for name in lineup:
                say(f"round {turn + 1} of {rounds}, {workload}: {name}")
                with lineup.turn(name):
                    embed_workload(running[name], workload, scratch)
    for name in lineup:
        running[name].served.stop()
    running = {name: running[name] for name in lineup}
    return {"running": running, "ended": lineup.ended_rows}


def embed_workload(contestant: Contestant, workload: str, scratch: Path) -> None:
    """Embed one workload with one contestant."""
    order = {"texts": str(scratch / f"{workload}.json"), "vectors": str(scratch / "vectors.npy")}
    answer = contestant.served.ask(order)
    contestant.seconds.setdefault(workload, []).append(answer["seconds"])
    contestant.peak_mb = answer["peak_mb"]
    contestant.vectors[workload] = np.load(scratch / "vectors.npy")


def figures_of(own: str, measured: dict[str, Any], work: dict[str, Workload]) -> Result:
    """Return the figures of what was measured."""
    running = measured["running"]

    def figures(name: str) -> dict[str, Any]:
        contestant = running[name]
        return {
            "tokens_per_s": {
                workload: sum(some.lengths) / statistics.median(contestant.seconds[workload])
                for workload, some in work.items()
            },
            "peak_mb": contestant.peak_mb,
            "max_difference": max(
                float(np.abs(contestant.vectors[workload] - running[REFERENCE].vectors[workload]).max())
                for workload in work
            ),
        }

    peers = {}
    for name in (each for each in running if each != own):
        ratios = {
            workload: median_ratio(running[name].seconds[workload], running[own].seconds[workload])
            for workload in work
        }
        peers[name] = figures(name) | {"ratio": ratios[MIXED], "ratios": ratios}
    n_mixed = work[MIXED]
    return {
        "workload": f"{len(n_mixed.texts)} chunks of {min(n_mixed.lengths)} to {max(n_mixed.lengths)} tokens "
        f"({sum(n_mixed.lengths)} in all), and {FIXED_CHUNKS} of {FIXED_LENGTH}, "
        f"on {CORES} cores; {OURS} is {own}",
        "ours": figures(own),
        "peers": peers | measured["ended"],
    }


def table(result: Result) -> Table:
    """Tabulate rate and memory of each encoder."""
    return contestants(
        result,
        {
            "tokens/s": "{tokens_per_s[mixed]:,.0f}",
            "ratio": "{ratios[mixed]:.2f}",
            "ratio, 256 tokens each": "{ratios[256 tokens]:.2f}",
            "peak MB": "{peak_mb:,.0f}",
            "largest difference": "{max_difference:.1e}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Cut the texts and measure."""
    pin()
    encoder, own = Encoder.load(), OWN["float32"]
    work = workloads(encoder)
    with tempfile.TemporaryDirectory() as scratch:
        measured = take_turns(own, arguments.rounds, model_path(DEFAULT_ENCODER), work, Path(scratch))
    return figures_of(own, measured, work)


EXPLANATION = """\
No padding, one worker a core, packed weights and compiled row formulas."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=2, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
