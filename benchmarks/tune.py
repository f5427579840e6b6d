"""Tuning on labelled questions: ``python -m benchmarks.tune [--beir FOLDER] [--json] [--rounds 5]``.

The step comparison: one step of training the last layer (16 questions, their chunks and as many hard
negatives; the frozen layers' outputs given) by Glassbox and by PyTorch in eager mode, each in a process of
its own on the same two cores, taking turns; medians. With ``--beir FOLDER`` (Cranfield: see
`benchmarks.cranfield`) the reference run too: nDCG@10 of the adapter and of the fine-tuned last layers,
5 folds by question and by document, alone and in the weighted hybrid. ``--depths`` leaves some of it out.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import CORES, Served, environment, pin, say
from engine import Encoder
from engine.evaluation.beir import load_beir
from engine.retrieval.bm25 import Bm25
from engine.retrieval.fusion import weighted_fusion
from engine.retrieval.retrievers import DENSE_WEIGHT
from engine.training.adapter import adapter_fit
from engine.training.cross_validation import CrossValidated, Fit, cross_validate
from engine.training.fine_tune import FineTuning, fine_tuning_fit
from engine.training.folds import Labelled, folds_by_document, folds_by_question
from engine.training.frozen_layers import freeze
from engine.training.hard_negatives import hard_negatives
from engine.training.verdict import judge

OURS, PEER = "glassbox", "torch eager"
N_FOLDS, HARD_DEPTH = 5, 20
SPLITS = {"question": folds_by_question, "document": folds_by_document}


def reference_run(folder: Path, depths: list[str], splits: list[str]) -> dict[str, Any]:
    """Cross-validate each depth on a BEIR folder whose documents are chunks, one each."""
    collection, encoder = load_beir(folder), Encoder.load()
    documents = tuple(document.name for document in collection.documents)
    texts = tuple(document.text for document in collection.documents)
    labelled = Labelled(collection.questions, texts, documents, collection.relevance(documents))
    say("encoding")
    asked, chunks = encoder.encode(labelled.questions), encoder.encode(labelled.chunks)
    bm25 = Bm25(labelled.chunks).scores(labelled.questions)
    negatives = hard_negatives([asked @ chunks.T, bm25], labelled.relevant, HARD_DEPTH)
    found: dict[str, Any] = {}
    for depth in depths:
        began = time.perf_counter()
        fit: Fit
        if depth == "adapter":
            fit = adapter_fit(asked, chunks, labelled)
        else:
            settings = FineTuning(n_last=int(depth))
            frozen = [freeze(encoder, some, settings.n_last) for some in (labelled.questions, texts)]
            fit = fine_tuning_fit(encoder, frozen[0], frozen[1], labelled, negatives, settings)
        for split in splits:
            say(f"{depth}, by {split}")
            folds = SPLITS[split](labelled, N_FOLDS)
            run = cross_validate(
                asked, chunks, labelled, folds, fit, lambda done, total: say(f"{done} of {total}")
            )
            found[f"{depth}, by {split}"] = figures(run, bm25, labelled, time.perf_counter() - began)
            say(json.dumps(found[f"{depth}, by {split}"]))
    return found


def figures(run: CrossValidated, bm25: Any, labelled: Labelled, seconds: float) -> dict[str, Any]:
    """Metrics of a run before and after, alone and with BM25."""
    hybrid = [
        weighted_fusion([scores, bm25], [DENSE_WEIGHT, 1 - DENSE_WEIGHT])
        for scores in (run.before, run.after)
    ]
    pairs = {"dense": (run.before, run.after), "weighted hybrid": (hybrid[0], hybrid[1])}
    return {
        name: {
            one.metric: {
                "before": float(one.before.mean()),
                "after": float(one.after.mean()),
                "difference": one.comparison.difference,
                "interval": [one.comparison.low, one.comparison.high],
                "p": one.comparison.p_value,
            }
            for one in judge(before, after, labelled.relevant)
        }
        for name, (before, after) in pairs.items()
    } | {"choices": run.choices, "losses": run.losses, "seconds": seconds}


def measure_steps(rounds: int) -> dict[str, Any]:
    """Let Glassbox and PyTorch take turns at the same step."""
    seconds: dict[str, list[float]] = {OURS: [], PEER: []}
    with tempfile.TemporaryDirectory() as scratch:
        errors, env = Path(scratch) / "errors.txt", environment()
        served = {name: Served("benchmarks.tuners", [name], env, errors) for name in seconds}
        answers = {name: one.ask({}) for name, one in served.items()}  # warm: not counted
        for _ in range(rounds):
            for name, one in served.items():
                answers[name] = one.ask({})
                seconds[name].append(answers[name]["seconds"])
        for one in served.values():
            one.stop()
    medians = {name: statistics.median(some) for name, some in seconds.items()}
    ratio = statistics.median(np.array(seconds[PEER]) / np.array(seconds[OURS]))
    first = {name: one.ready["loss"] for name, one in served.items()}
    return {
        "workload": f"a step of training the last layer on {served[OURS].ready['n_tokens']} tokens, "
        f"{CORES} cores",
        "ours": {"seconds": medians[OURS], "loss": first[OURS], "peak_mb": answers[OURS]["peak_mb"]},
        "peers": {
            PEER: {
                "seconds": medians[PEER],
                "loss": first[PEER],
                "peak_mb": answers[PEER]["peak_mb"],
                "ratio": float(ratio),
            }
        },
        "limit": {},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--beir", type=Path, help="a BEIR folder: the reference run too")
    parser.add_argument("--depths", default="adapter,1", help="adapter, and numbers of last layers")
    parser.add_argument("--splits", default="question,document", help="how the folds are dealt")
    parser.add_argument("--rounds", type=int, default=5, help="turns of the step comparison, 0 for none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    pin()
    result: dict[str, Any] = {"workload": "the reference run alone"}
    if arguments.rounds:
        result = measure_steps(arguments.rounds)
    if arguments.beir:
        result["reference"] = reference_run(
            arguments.beir, arguments.depths.split(","), arguments.splits.split(",")
        )
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
