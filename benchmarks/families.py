"""How fast the other encoder families embed texts: ``python -m benchmarks.families [--json] [--rounds 2]``.

Glassbox and onnxruntime (float32, exported from the same weights) embed the same texts of mixed lengths with
models of the real sizes and random weights. A cross-encoder of 6 layers reads 50 pairs of 256 tokens beside
an encoder that embeds the same tokens.

The two take turns on the same two cores, each in a process of its own; a ratio is the median over the rounds.
onnxruntime pads few texts of like length at a time, so that little of its work is padding. All models read
the tokens of the default encoder's tokenizer.
``--family NAME`` chooses a family, any number of times.
"""

import json
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, median_ratio
from benchmarks.encode import MIXED, OWN, Contestant, Workload, embed_workload, start, workloads
from benchmarks.processes import CORES, Lineup, environment, pin, run_once, say
from benchmarks.random_encoders import ENCODERS
from engine.kernels.primitives import prepare_compiled
from engine.models.encoder import Encoder
from engine.models.reranker import Reranker

PEER = "onnxruntime float32"
LOADED = {OURS: OWN["float32"], PEER: PEER}  # names of `benchmarks.encoders`
N_CHUNKS = 32  # of the mixed workload
BATCH_TEXTS = 6  # of onnxruntime; larger batches of so few texts would be padded more
PAIRS, PAIR_TOKENS = 50, "256 tokens"


def measure(name: str, work: Workload, rounds: int, scratch: Path) -> dict[str, Any]:
    """Write a random model of a family and embed the texts in turn: the figures of the two."""
    folder = scratch / name
    folder.mkdir()
    env = environment(ONNX_FOLDER=str(folder), BATCH_TEXTS=str(BATCH_TEXTS))
    say(f"{name}: writing and exporting random weights")
    run_once("benchmarks.random_encoders", [name, str(folder)], env)
    lineup = Lineup((OURS, PEER), needed=(OURS,))
    running: dict[str, Contestant] = {}
    for each in lineup:
        with lineup.turn(each):
            running[each] = start(LOADED[each], folder, env, scratch / "errors.txt")
    for turn in range(rounds + 1):  # the first warms up and is dropped
        say(f"{name}: round {turn} of {rounds}")
        for each in lineup:
            with lineup.turn(each):
                embed_workload(running[each], MIXED, scratch)
    for each in lineup:
        running[each].served.stop()
    seconds = {each: running[each].seconds[MIXED][1:] for each in lineup}
    figures = {
        "note": ENCODERS[name].note,
        "tokens_per_s": {each: sum(work.lengths) / statistics.median(own) for each, own in seconds.items()},
    }
    if PEER in lineup.ended:
        return figures | lineup.ended_rows[PEER]
    vectors = [running[each].vectors[MIXED] for each in lineup]
    return figures | {
        "ratio": median_ratio(seconds[PEER], seconds[OURS]),
        "max_difference": float(np.abs(vectors[0] - vectors[1]).max()),
    }


def measure_reranker(passages: Sequence[str], rounds: int, folder: Path) -> dict[str, float]:
    """Seconds of scoring pairs, and of embedding the same tokens with the same layers."""
    say("cross-encoder: writing random weights")
    run_once("benchmarks.random_encoders", ["reranker", str(folder)], environment())
    encoder, reranker = Encoder.load(folder), Reranker.load(folder)
    prepare_compiled().join()
    question = "What does a cross-encoder read together?"
    pairs = [reranker.read(question, passage) for passage in passages]
    scored, embedded = [], []
    for turn in range(rounds + 1):
        say(f"cross-encoder: round {turn} of {rounds}")
        began = time.perf_counter()
        reranker.score(question, passages)
        between = time.perf_counter()
        encoder.encode_ids([pair.ids for pair in pairs])
        if turn:
            scored.append(between - began)
            embedded.append(time.perf_counter() - between)
    return {
        "tokens": sum(map(len, pairs)),
        "seconds": statistics.median(scored),
        "encode_seconds": statistics.median(embedded),
        "ratio": median_ratio(scored, embedded),
    }


def run(arguments: Namespace) -> Result:
    """Cut the texts and measure."""
    pin()
    work = workloads(Encoder.load())
    mixed = Workload(work[MIXED].texts[:N_CHUNKS], work[MIXED].lengths[:N_CHUNKS])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / f"{MIXED}.json").write_text(json.dumps(mixed.texts), encoding="utf-8")
        families = {
            name: measure(name, mixed, arguments.rounds, scratch) for name in arguments.family or ENCODERS
        }
        reranker = measure_reranker(work[PAIR_TOKENS].texts[:PAIRS], arguments.rounds, scratch / "reranker")
    return {
        "workload": f"{N_CHUNKS} chunks of {min(mixed.lengths)} to {max(mixed.lengths)} tokens "
        f"({sum(mixed.lengths)} in all), on {CORES} cores",
        "ours": {"families": families, "reranker": reranker},
    }


def tables(result: Result) -> Iterator[Table | str]:
    """Yield rates and ratios of each family, then the cross-encoder's."""
    rows = []
    for name, figures in result["ours"]["families"].items():
        rates = figures["tokens_per_s"]
        if "ended" in figures:
            beside = [figures["ended"], "", ""]
        else:
            beside = [f"{rates[PEER]:,.0f}", f"{figures['ratio']:.2f}", f"{figures['max_difference']:.1e}"]
        words = f"{name} ({figures['note']})" if figures["note"] else name
        rows.append([words, f"{rates[OURS]:,.0f}", *beside])
    yield Table(["sizes of", f"{OURS}, tokens/s", f"{PEER}, tokens/s", "ratio", "largest difference"], rows)
    reranker = result["ours"]["reranker"]
    yield (
        f"a cross-encoder of 6 layers read {PAIRS} pairs ({reranker['tokens']:,} tokens) in "
        f"{reranker['seconds']:.2f} s; embedding the same tokens took {reranker['encode_seconds']:.2f} s, "
        f"by the median of the rounds reranking takes {reranker['ratio']:.2f} times as long"
    )


def add_options(parser: ArgumentParser) -> None:
    """Add the choice of families."""
    parser.add_argument("--family", action="append", choices=list(ENCODERS), help="only this one; repeatable")


EXPLANATION = """\
Rates and ratios are medians of the rounds, in which the two take turns: where other
programs use the same cores, the ratios count.
With random weights the vectors of all texts are much alike, so their differences are small. DistilBERT,
RoBERTa and XLM-R have the layers of BERT. All families run by the same compiled kernels: attention takes a
bias by distance (MPNet), a window (ModernBERT) or the tokens to the left alone (Qwen3), and does not compute
scores outside a window."""
BENCHMARK = Benchmark(__doc__, run, tables, rounds=2, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
