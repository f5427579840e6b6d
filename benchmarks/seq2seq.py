"""How fast a small model learns to translate: ``python -m benchmarks.seq2seq [--json]``.

Trains the encoder-decoder from random weights on both tasks (numbers and dates) with the default recipe and
two seeds, and translates 2,000 pairs that training never drew.

Numbers are examined twice: drawn as in training, and drawn uniformly from 0 to 999,999.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, replace
from time import process_time
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine.models.seq2seq_params import n_parameters
from engine.training.language.number_words import LARGEST, english, spanish
from engine.training.language.seq2seq_loop import Recipe, Training, train, translate_pairs
from engine.training.language.tasks import Pair, date_task, draw_pairs, is_held_out, number_task

N_EXAM = 2000
EXAM_SEED = 7
SEEDS = (0, 1)
LIMIT = {"exact": 0.95, "seconds": 300}


def held_out_numbers(n: int) -> list[Pair]:
    """Draw pairs of held-out numbers, uniformly from 0 to `LARGEST`."""
    rng = np.random.default_rng(EXAM_SEED)
    numbers = (int(number) for number in rng.integers(0, LARGEST + 1, 20 * n))
    pairs = [Pair(english(number), spanish(number)) for number in numbers if is_held_out(number)]
    return pairs[:n]


def train_and_examine(name: str, seed: int) -> dict[str, Any]:
    """Train on a task and translate held-out pairs; seconds include the examinations of the reports."""
    task = number_task() if name == "numbers" else date_task()
    training = Training(task, replace(Recipe(), seed=seed))
    cpu = process_time()
    for report in train(training):
        if report.n_updates % 200 == 0:
            say(
                f"{name}, seed {seed}: step {report.n_updates}, "
                f"loss {report.loss:.3f}, exact {report.exact:.0%}"
            )
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


def run(arguments: Namespace) -> Result:
    """Train on both tasks with every seed."""
    return {
        "workload": f"training from random weights, then {N_EXAM} held-out pairs, whole translations right",
        "recipe": asdict(Recipe()),
        "ours": [train_and_examine(name, seed) for name in ("numbers", "dates") for seed in SEEDS],
        "limit": LIMIT,
    }


def tables(result: Result) -> Iterator[Table]:
    """Yield a row for each task and seed."""
    yield Table(
        ["task", "seed", "right", "seconds", "CPU seconds", "parameters"],
        [
            [
                row["task"],
                f"{row['seed']}",
                ", ".join(f"{share:.2%} {kind}" for kind, share in row["exact"].items()),
                f"{row['seconds']:.0f}",
                f"{row['cpu_seconds']:.0f}",
                f"{row['parameters']:,}",
            ]
            for row in result["ours"]
        ],
    )


BENCHMARK = Benchmark(__doc__, run, tables)


if __name__ == "__main__":
    BENCHMARK.main()
