"""How fast a small decoder learns: ``python -m benchmarks.train [--json] [--rounds 15]``.

One step of training, forward, backward, clipping and AdamW, of the same model from the same weights on
the same batches: Glassbox's by hand, and PyTorch eager's with its own attention in one call or written
out. Each has a process of its own on the same two cores, and they take turns of a few steps. Figures
are medians: of the steps, and of the ratios of turns that stand next to each other; and the lowest, which
is what a step takes while no other program disturbs it. The losses must be the same.
"""

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import CORES, Served, environment, pin, read_arguments, say
from benchmarks.trainers import BATCH_SIZE, CONFIG, TRAINERS
from engine.models.small_decoder_params import init_params, parameter_shapes

OURS, REFERENCE = "glassbox", "PyTorch eager"
STEPS = 4  # a turn
N_BATCHES = 8
TARGET = 1.2


def measure(rounds: int, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Let the trainers take turns; return each one's answers, the first of which warms up."""
    np.savez(folder / "params.npz", **init_params(CONFIG, 0))  # type: ignore[arg-type]
    shape = (N_BATCHES, BATCH_SIZE, CONFIG.context + 1)
    np.save(folder / "batches.npy", np.random.default_rng(0).integers(0, CONFIG.vocab_size, shape))
    running = {
        name: Served("benchmarks.trainers", [name, str(folder)], environment(), folder / "errors.txt")
        for name in TRAINERS
    }
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in running}
    for turn in range(rounds + 1):
        say(f"turn {turn} of {rounds}")
        for name, served in running.items():
            answers[name].append(served.ask({"steps": STEPS}))
    for served in running.values():
        served.stop()
    return answers


def report(answers: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Make figures of what was measured."""
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
        pairs = zip(turns[name], turns[OURS], strict=True)
        lowest = min(map(min, turns[name])) / min(map(min, turns[OURS]))
        of_turns = [statistics.median(theirs) / statistics.median(mine) for theirs, mine in pairs]
        return {"ratio": statistics.median(of_turns), "ratio_of_lowest": lowest}

    n_parameters = sum(int(np.prod(shape)) for shape in parameter_shapes(CONFIG).values())
    return {
        "workload": f"a training step of {n_parameters:,} parameters (d_model {CONFIG.d_model}, "
        f"{CONFIG.n_layers} layers, {CONFIG.n_heads} heads) on {BATCH_SIZE} x {CONFIG.context} tokens of "
        f"{CONFIG.vocab_size}, on {CORES} cores",
        "ours": figures(OURS),
        "peers": {name: figures(name) | ratios(name) for name in TRAINERS if name != OURS},
        "limit": {"ratio": TARGET},
    }


def print_table(result: dict[str, Any]) -> None:
    """Print the figures for people."""
    print(result["workload"])
    print(
        f"\n{'':38}{'step ms':>9}{'lowest':>9}{'peak MB':>9}{'loss diff.':>12}{'ratio':>8}{'of lowest':>11}"
    )
    for name, row in {OURS: result["ours"], **result["peers"]}.items():
        ratios = f"{row['ratio']:8.2f}{row['ratio_of_lowest']:11.2f}" if "ratio" in row else ""
        print(
            f"{name:38}{row['step_ms']:9.1f}{row['lowest_step_ms']:9.1f}{row['peak_mb']:9.0f}"
            f"{row['max_loss_difference']:12.1e}{ratios}"
        )
    print(f"\nratio: theirs / ours, greater is better; at least {result['limit']['ratio']} is asked for")


def main() -> None:
    """Measure and print."""
    arguments = read_arguments(__doc__, rounds=15)
    pin()
    with tempfile.TemporaryDirectory() as folder:
        result = report(measure(arguments.rounds, Path(folder)))
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
