"""Does a model of an app's size learn to translate in minutes? ``python -m benchmarks.seq2seq [--json]``.

Trains the encoder-decoder on both tasks with the default recipe and several seeds, from random weights, and
translates pairs that training never drew: for numbers once drawn as in training, and once from all of 0 to
999,999 alike.
"""

import argparse
import json
from dataclasses import asdict, replace
from time import process_time
from typing import Any

import numpy as np

from benchmarks.processes import say
from engine.models.seq2seq_params import n_parameters
from engine.training.number_words import LARGEST, english, spanish
from engine.training.seq2seq_loop import Recipe, Training, train, translate_pairs
from engine.training.tasks import Pair, date_task, draw_pairs, is_held_out, number_task

N_EXAM = 2000
EXAM_SEED = 7
SEEDS = (0, 1)
LIMIT = {"exact": 0.95, "seconds": 300}


def held_out_numbers(n: int) -> list[Pair]:
    """Draw pairs of held-out numbers, all of 0 to `LARGEST` alike."""
    rng = np.random.default_rng(EXAM_SEED)
    numbers = (int(number) for number in rng.integers(0, LARGEST + 1, 20 * n))
    pairs = [Pair(english(number), spanish(number)) for number in numbers if is_held_out(number)]
    return pairs[:n]


def measure(name: str, seed: int) -> dict[str, Any]:
    """Train on a task and examine; seconds include the examinations of the reports."""
    task = number_task() if name == "numbers" else date_task()
    training = Training(task, replace(Recipe(), seed=seed))
    cpu = process_time()
    for report in train(training):
        if report.step % 200 == 0:
            say(f"{name}, seed {seed}: step {report.step}, loss {report.loss:.3f}, exact {report.exact:.0%}")
    cpu = process_time() - cpu
    exams = {"as in training": draw_pairs(task, np.random.default_rng(EXAM_SEED), N_EXAM, held_out=True)}
    if name == "numbers":
        exams["all alike"] = held_out_numbers(N_EXAM)
    exact = {
        kind: float(np.mean([t.right for t in translate_pairs(task, pairs, training.good, training.config)]))
        for kind, pairs in exams.items()
    }
    at_limit = next((r.seconds for r in training.reports if r.exact >= LIMIT["exact"]), None)
    return {
        "task": name,
        "seed": seed,
        "parameters": n_parameters(training.config),
        "seconds": training.reports[-1].seconds,
        "cpu_seconds": cpu,
        "seconds_to_limit": at_limit,
        "exact": exact,
    }


def main() -> None:
    """Measure both tasks and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = [measure(name, seed) for name in ("numbers", "dates") for seed in SEEDS]
    result = {
        "workload": f"training from random weights, then {N_EXAM} held-out pairs, whole translations right",
        "recipe": asdict(Recipe()),
        "ours": rows,
        "limit": LIMIT,
    }
    if arguments.json:
        print(json.dumps(result))
        return
    print(result["workload"])
    for row in rows:
        exact = ", ".join(f"{share:.2%} {kind}" for kind, share in row["exact"].items())
        print(
            f"{row['task']:8} seed {row['seed']}: {exact} exact; {row['seconds']:.0f} s "
            f"({row['cpu_seconds']:.0f} s of processor), {row['parameters']:,} parameters"
        )


if __name__ == "__main__":
    main()
