"""How fast a small decoder learns: ``python -m benchmarks.train [--json] [--rounds 15]``.

One training step (forward, backward, clipping, AdamW) of one model on the same batches, by hand and by
PyTorch eager.

The trainers take turns of a few steps on the same two cores, each in a process of its own. Figures are
medians: of the steps, and of the ratios of neighbouring turns; and the lowest, the time of a step that no
other program disturbs. The losses must be the same.
"""

import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.processes import CORES, Lineup, Served, environment, pin, say
from benchmarks.trainers import BATCH_SIZE, CONFIG, TRAINERS
from engine.models.small_decoder_params import init_params, parameter_shapes

REFERENCE = "PyTorch eager"
STEPS = 4  # a turn
N_BATCHES = 8
TARGET = 1.2


def take_turns(lineup: Lineup, rounds: int, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Run the trainers in turn; return the answers of each, the first of which warms up."""
    np.savez(folder / "params.npz", **init_params(CONFIG, 0))  # type: ignore[arg-type]
    shape = (N_BATCHES, BATCH_SIZE, CONFIG.context + 1)
    np.save(folder / "batches.npy", np.random.default_rng(0).integers(0, CONFIG.vocab_size, shape))
    running: dict[str, Served] = {}
    for name in lineup:
        with lineup.turn(name):
            errors = folder / "errors.txt"
            running[name] = Served("benchmarks.trainers", [name, str(folder)], environment(), errors)
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in lineup}
    for turn in range(rounds + 1):
        say(f"turn {turn} of {rounds}")
        for name in lineup:
            with lineup.turn(name):
                answers[name].append(running[name].ask({"steps": STEPS}))
    for name in lineup:
        running[name].stop()
    return {name: answers[name] for name in lineup}


def figures_of(answers: dict[str, list[dict[str, Any]]], ended: dict[str, Any]) -> Result:
    """Return the figures of what was measured, and how trainers ended."""
    turns = {name: [answer["seconds"] for answer in some[1:]] for name, some in answers.items()}
    losses = {name: np.array(some[-1]["losses"]) for name, some in answers.items()}

    def figures(name: str) -> dict[str, Any]:
        seconds = [second for turn in turns[name] for second in turn]
        return {
            "step_ms": 1000 * statistics.median(seconds),
            "lowest_step_ms": 1000 * min(seconds),
            "tokens_per_s": BATCH_SIZE * CONFIG.context / statistics.median(seconds),
            "peak_mb": answers[name][-1]["peak_mb"],
            "max_loss_difference": float(np.abs(losses[name] - losses[REFERENCE]).max()),
        }

    def ratios(name: str) -> dict[str, float]:
        lowest = min(map(min, turns[name])) / min(map(min, turns[OURS]))
        theirs, mine = (map(statistics.median, turns[one]) for one in (name, OURS))
        return {"ratio": median_ratio(theirs, mine), "ratio_of_lowest": lowest}

    n_parameters = sum(int(np.prod(shape)) for shape in parameter_shapes(CONFIG).values())
    return {
        "workload": f"a training step of {n_parameters:,} parameters (d_model {CONFIG.d_model}, "
        f"{CONFIG.n_layers} layers, {CONFIG.n_heads} heads) on {BATCH_SIZE} x {CONFIG.context} tokens of "
        f"{CONFIG.vocab_size}, on {CORES} cores",
        "ours": figures(OURS),
        "peers": {name: figures(name) | ratios(name) for name in answers if name != OURS} | ended,
        "limit": {"ratio": TARGET},
    }


def table(result: Result) -> Table:
    """Tabulate the figures of each trainer."""
    return contestants(
        result,
        {
            "step, ms": "{step_ms:.1f}",
            "lowest, ms": "{lowest_step_ms:.1f}",
            "peak MB": "{peak_mb:,.0f}",
            "loss difference": "{max_loss_difference:.1e}",
            "ratio": "{ratio:.2f}",
            "ratio of lowest": "{ratio_of_lowest:.2f}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Measure all trainers."""
    pin()
    lineup = Lineup(list(TRAINERS), needed=(OURS, REFERENCE))
    with tempfile.TemporaryDirectory() as folder:
        answers = take_turns(lineup, arguments.rounds, Path(folder))
    return figures_of(answers, lineup.ended_rows)


BENCHMARK = Benchmark(__doc__, run, table, rounds=15)


if __name__ == "__main__":
    BENCHMARK.main()
