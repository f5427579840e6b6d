"""How fast a reader learns: ``python -m benchmarks.train_reader [--json] [--rounds 8]``.

Updates of all layers of all-MiniLM-L6-v2 below a head for start and end (forward, backward, clipping, AdamW,
dropout), 16 questions with passages each: by Glassbox, and by transformers on PyTorch, whose batches are
padded to their longest sequence.

Both take turns on the same two cores, each in a process of its own, on batches whose sequences are of like
length, as both train. Figures are medians: of the updates, and of the ratios of neighbouring turns.
"""

import json
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.processes import CORES, Lineup, Served, environment, memory, pin, say
from engine import Encoder
from engine.kernels.primitives import prepare_compiled
from engine.training.optimizers import adamw, clip_gradients
from engine.training.reading.examples import ReadingBatch
from engine.training.reading.loop import ReadingSettings, ReadingState, batch_gradients
from engine.weights.fetch import model_path

PEER = "transformers on PyTorch"
BATCH_SIZE, N_BATCHES, UPDATES = 16, 6, 3
SETTINGS = ReadingSettings()

Step = Callable[[ReadingBatch], float]  # returns the loss


def random_batches(encoder: Encoder) -> list[ReadingBatch]:
    """Return batches of random tokens, of lengths as questions with cropped passages have."""
    rng = np.random.default_rng(0)
    low, high = 1000, encoder.config.vocab_size
    found = []
    for _ in range(N_BATCHES):
        n_asked, n_read = int(rng.integers(9, 20)), rng.integers(90, 113, BATCH_SIZE)
        head = rng.integers(low, high, (BATCH_SIZE, n_asked)).tolist()
        sequences = [
            [101, *asked, 102, *rng.integers(low, high, n).tolist(), 102]
            for asked, n in zip(head, n_read, strict=True)
        ]
        types = [[0] * (n_asked + 2) + [1] * (int(n) + 1) for n in n_read]
        starts = n_asked + 2 + rng.integers(0, 80, BATCH_SIZE)
        found.append(ReadingBatch(sequences, types, np.stack([starts, starts + 2], axis=1)))
    return found


def ours(encoder: Encoder) -> Step:
    """Train by the hand-written backward passes."""
    state = ReadingState.fresh(encoder, SETTINGS)

    def step(batch: ReadingBatch) -> float:
        loss, grads = batch_gradients(batch, state.params, encoder, SETTINGS, state.moments.n_updates)
        clip_gradients(grads, SETTINGS.max_norm)
        adamw(state.params, grads, state.moments, 1e-5, weight_decay=SETTINGS.weight_decay)
        return loss

    return step


def torch_eager(encoder: Encoder) -> Step:
    """Train transformers' own model by autograd; its embeddings stay, too."""
    import torch
    from transformers import BertForQuestionAnswering

    torch.set_num_threads(CORES)
    rate = SETTINGS.dropout
    model = BertForQuestionAnswering.from_pretrained(
        str(model_path(encoder.name)),
        attn_implementation="sdpa",
        hidden_dropout_prob=rate,
        attention_probs_dropout_prob=0.0,
    ).train()
    model.bert.embeddings.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-5, weight_decay=SETTINGS.weight_decay)

    def step(batch: ReadingBatch) -> float:
        longest = max(map(len, batch.sequences))
        ids, types, mask = (torch.zeros(len(batch.sequences), longest, dtype=torch.long) for _ in range(3))
        for row, (own, segments) in enumerate(zip(batch.sequences, batch.types, strict=True)):
            ids[row, : len(own)] = torch.tensor(own)
            types[row, : len(own)] = torch.tensor(segments)
            mask[row, : len(own)] = 1
        starts, ends = torch.tensor(batch.targets).unbind(1)
        optimizer.zero_grad()
        output = model(ids, mask, types, start_positions=starts, end_positions=ends)
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, SETTINGS.max_norm)
        optimizer.step()
        return float(output.loss.item())

    return step


TRAINERS = {OURS: ours, PEER: torch_eager}


def serve(name: str) -> None:
    """Make updates for every line on standard input, and print their seconds."""
    prepare_compiled().join()
    encoder = Encoder.load()
    step, batches = TRAINERS[name](encoder), random_batches(encoder)
    loss = step(batches[0])
    print(json.dumps({"loss": loss}), flush=True)
    for _ in sys.stdin:
        rates = []
        for batch in batches[:UPDATES]:
            began = perf_counter()
            loss = step(batch)
            rates.append(sum(map(len, batch.sequences)) / (perf_counter() - began))
        print(json.dumps({"rates": rates, "loss": loss, "peak_mb": memory("VmHWM")}), flush=True)


def run(arguments: Namespace) -> Result:
    """Let both take turns."""
    pin()
    lineup, rates, peak = Lineup(list(TRAINERS), needed=(OURS,)), dict[str, list[float]](), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "errors.txt"
        running = {
            name: Served("benchmarks.train_reader", ["serve", name], environment(), errors) for name in lineup
        }
        for turn in range(arguments.rounds + 1):  # the first one warms up
            say(f"turn {turn} of {arguments.rounds}")
            for name in lineup:
                with lineup.turn(name):
                    answer = running[name].ask({})
                    peak[name] = answer["peak_mb"]
                    if turn:
                        rates.setdefault(name, []).append(statistics.median(answer["rates"]))
        for each in running.values():
            each.stop()
    figures = {
        name: {"tokens_per_s": statistics.median(own), "peak_mb": peak[name]} for name, own in rates.items()
    }
    ratio = {"ratio": median_ratio(rates[OURS], rates[PEER])} if PEER in rates else {}
    return {
        "workload": f"updates of {BATCH_SIZE} questions with passages of 90 to 112 tokens, on {CORES} cores",
        "ours": figures[OURS],
        "peers": {PEER: figures[PEER] | ratio} if ratio else lineup.ended_rows,
    }


def table(result: Result) -> Table:
    """Tabulate the tokens per second of both."""
    columns = {"tokens/s": "{tokens_per_s:,.0f}", "peak MB": "{peak_mb:,.0f}", "ratio": "{ratio:.2f}"}
    return contestants(result, columns)


BENCHMARK = Benchmark(__doc__, run, table, rounds=8)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        BENCHMARK.main()
