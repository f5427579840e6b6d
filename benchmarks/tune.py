"""How fast and how well search is tuned: ``python -m benchmarks.tune [--beir FOLDER] [--json] [--rounds 5]``.

One step of training the encoder's last layer on 16 questions, their chunks and as many hard negatives.

Both start from the outputs of the frozen layers and take turns on the same two cores, each in a process of
its own; figures are medians. ``--beir FOLDER`` (Cranfield: see `benchmarks.cranfield`) adds the adapter and
the fine-tuned last layers, 5 folds by question and by document, alone and in the weighted hybrid.
``--depths`` and ``--splits`` leave some of it out, ``--rounds 0`` the comparison of steps.
"""

import json
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.processes import CORES, Lineup, Served, environment, pin, say
from engine import Encoder
from engine.evaluation.beir import load_beir
from engine.retrieval.bm25 import Bm25
from engine.retrieval.fusion import weighted_fusion
from engine.retrieval.retrievers import DENSE_WEIGHT
from engine.training.search.adapter import adapter_trainer
from engine.training.search.contrastive import TrainingTexts
from engine.training.search.cross_validation import (
    CrossValidated,
    FoldTrainer,
    cross_validate,
    metric_changes,
)
from engine.training.search.fine_tune import FineTuning, fine_tuning_trainer
from engine.training.search.folds import LabelledTexts, folds_by_document, folds_by_question
from engine.training.search.frozen_layers import run_frozen_layers
from engine.training.search.tuning import hard_negatives

PEER = "torch eager"
N_FOLDS, HARD_DEPTH = 5, 20
SEARCHES = ("dense", "weighted hybrid")
SPLITS = {"question": folds_by_question, "document": folds_by_document}


def reference_run(folder: Path, depths: list[str], splits: list[str]) -> dict[str, Any]:
    """Cross-validate each depth on a BEIR folder whose documents are chunks, one each."""
    collection, encoder = load_beir(folder), Encoder.load()
    documents = tuple(document.name for document in collection.documents)
    texts = tuple(document.text for document in collection.documents)
    labelled = LabelledTexts(collection.questions, texts, documents, collection.relevance(documents))
    say("encoding")
    asked, chunks = encoder.encode(labelled.questions), encoder.encode(labelled.chunks)
    bm25 = Bm25(labelled.chunks).scores(labelled.questions)
    negatives = hard_negatives([asked @ chunks.T, bm25], labelled.relevant, HARD_DEPTH)
    found: dict[str, Any] = {}
    for depth in depths:
        began = time.perf_counter()
        fit: FoldTrainer
        if depth == "adapter":
            fit = adapter_trainer(asked, chunks, labelled)
        else:
            settings = FineTuning(n_last=int(depth))
            frozen_asked, frozen_chunks = (
                run_frozen_layers(encoder, some, settings.n_last) for some in (labelled.questions, texts)
            )
            trained_on = TrainingTexts(frozen_asked, frozen_chunks, labelled.relevant, negatives)
            fit = fine_tuning_trainer(encoder, trained_on, settings)
        for split in splits:
            say(f"{depth}, by {split}")
            folds = SPLITS[split](labelled, N_FOLDS)
            run = cross_validate(
                asked, chunks, labelled, folds, fit, lambda done, total: say(f"{done} of {total}")
            )
            found[f"{depth}, by {split}"] = figures(run, bm25, labelled, time.perf_counter() - began)
            say(json.dumps(found[f"{depth}, by {split}"]))
    return found


def figures(run: CrossValidated, bm25: Any, labelled: LabelledTexts, seconds: float) -> dict[str, Any]:
    """Metrics of a run before and after, alone and with BM25."""
    hybrid = [
        weighted_fusion([scores, bm25], [DENSE_WEIGHT, 1 - DENSE_WEIGHT])
        for scores in (run.before, run.after)
    ]
    pairs = dict(zip(SEARCHES, [(run.before, run.after), (hybrid[0], hybrid[1])], strict=True))
    return {
        name: {
            one.metric: {
                "before": float(one.before.mean()),
                "after": float(one.after.mean()),
                "difference": one.comparison.difference,
                "interval": [one.comparison.low, one.comparison.high],
                "p": one.comparison.p_value,
            }
            for one in metric_changes(before, after, labelled.relevant)
        }
        for name, (before, after) in pairs.items()
    } | {"choices": run.choices, "losses": run.losses, "seconds": seconds}


def measure_steps(rounds: int) -> Result:
    """Run the same step by Glassbox and by PyTorch in turn."""
    lineup = Lineup((OURS, PEER), needed=(OURS,))
    served: dict[str, Served] = {}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in lineup}
    with tempfile.TemporaryDirectory() as scratch:
        errors, env = Path(scratch) / "errors.txt", environment()
        for name in lineup:
            with lineup.turn(name):
                served[name] = Served("benchmarks.tuners", [name], env, errors)
        for _ in range(rounds + 1):  # the first warms up and is dropped
            for name in lineup:
                with lineup.turn(name):
                    answers[name].append(served[name].ask({}))
        for name in lineup:
            served[name].stop()
    seconds = {name: [answer["seconds"] for answer in answers[name][1:]] for name in lineup}
    figures = {
        name: {
            "seconds": statistics.median(own),
            "loss": served[name].ready["loss"],
            "peak_mb": answers[name][-1]["peak_mb"],
        }
        for name, own in seconds.items()
    }
    ours = figures.pop(OURS)
    return {
        "workload": f"a step of training the last layer on {served[OURS].ready['n_tokens']} tokens, "
        f"{CORES} cores",
        "ours": ours,
        "peers": {
            name: theirs | {"ratio": median_ratio(seconds[name], seconds[OURS])}
            for name, theirs in figures.items()
        }
        | lineup.ended_rows,
    }


def table(result: Result) -> Table:
    """Tabulate nDCG and recall before and after tuning, or without them the step of each trainer."""
    if "reference" not in result:
        columns = {"step, s": "{seconds:.2f}", "loss": "{loss:.4f}", "peak MB": "{peak_mb:,.0f}"}
        return contestants(result, columns | {"ratio": "{ratio:.2f}"})
    return Table(
        ["tuned", "metric", "before", "after", "difference", "95 % interval"],
        [
            [
                f"{run_name}, {search}",
                metric,
                f"{one['before']:.4f}",
                f"{one['after']:.4f}",
                f"{one['difference']:+.4f}",
                f"{one['interval'][0]:+.4f} to {one['interval'][1]:+.4f}",
            ]
            for run_name, found in result["reference"].items()
            for search in SEARCHES
            for metric, one in found[search].items()
        ],
    )


def run(arguments: Namespace) -> Result:
    """Compare steps, and run the reference on a collection where one is given."""
    pin()
    result: Result = {"workload": "the reference run alone"}
    if arguments.rounds:
        result = measure_steps(arguments.rounds)
    if arguments.beir:
        depths, splits = arguments.depths.split(","), arguments.splits.split(",")
        result["reference"] = reference_run(arguments.beir, depths, splits)
    return result


def add_options(parser: ArgumentParser) -> None:
    """Add the collection and what is tuned on it."""
    parser.add_argument("--beir", type=Path, help="a BEIR folder: the reference run too")
    parser.add_argument("--depths", default="adapter,1", help="adapter, and numbers of last layers")
    parser.add_argument("--splits", default="question,document", help="how the folds are dealt")


BENCHMARK = Benchmark(__doc__, run, table, rounds=5, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
