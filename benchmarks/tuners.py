"""The two trainers that ``benchmarks.tune`` compares, each run in a process of its own.

``python -m benchmarks.tuners NAME``: prepares a batch, says so on standard output, and then makes one step
for every line on standard input.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.processes import CORES, memory
from benchmarks.texts import corpus_words, passage
from engine import Encoder
from engine.evaluation.questions import load_questions
from engine.kernels.primitives import prepare_compiled
from engine.training.backward.encoder import layer_parameters
from engine.training.losses import SCALE
from engine.training.optimizers import adamw, clip_gradients, no_moments
from engine.training.search.contrastive import ContrastiveBatch, TrainingTexts, loss_and_gradients
from engine.training.search.fine_tune import MAX_NORM
from engine.training.search.frozen_layers import FrozenStates, run_frozen_layers
from engine.weights.fetch import model_path

N_QUESTIONS, WORDS = 16, (60, 180)
RATE = 1e-5
# One step of training; returns the loss.
Step = Callable[[], float]


def workload(encoder: Encoder) -> tuple[FrozenStates, FrozenStates, ContrastiveBatch]:
    """Freeze 16 questions and 32 passages, the first half of which count as their answers."""
    rng = random.Random(0)
    words = corpus_words()
    lengths = [rng.randint(*WORDS) for _ in range(2 * N_QUESTIONS)]
    texts = [passage(words, length, rng) for length in lengths]
    questions = [question.text for question in load_questions()[:N_QUESTIONS]]
    rows, chunks = np.arange(N_QUESTIONS), np.arange(len(texts))
    batch = ContrastiveBatch(rows, chunks, rows[:, None] == chunks)
    return run_frozen_layers(encoder, questions, 1), run_frozen_layers(encoder, texts, 1), batch


def ours(encoder: Encoder, questions: FrozenStates, chunks: FrozenStates, batch: ContrastiveBatch) -> Step:
    """Train by the hand-written backward passes."""
    params = layer_parameters(encoder.weights, 1)
    moments = no_moments(params)
    texts = TrainingTexts(questions, chunks, batch.relevant, ())

    def step() -> float:
        loss, grads = loss_and_gradients(texts, batch, params, encoder.config)
        clip_gradients(grads, MAX_NORM)
        adamw(params, grads, moments, RATE)
        return loss

    return step


def torch_eager(
    encoder: Encoder, questions: FrozenStates, chunks: FrozenStates, batch: ContrastiveBatch
) -> Step:
    """Train transformers' own layer by autograd, its batches padded to their longest text."""
    import torch
    from torch.nn.functional import log_softmax, normalize
    from transformers import AutoModel

    torch.set_num_threads(CORES)
    model = AutoModel.from_pretrained(str(model_path(encoder.name)), attn_implementation="sdpa").eval()
    layer = model.encoder.layer[-1]
    optimizer = torch.optim.AdamW(layer.parameters(), lr=RATE)
    targets = torch.tensor(batch.relevant / batch.relevant.sum(axis=1, keepdims=True), dtype=torch.float32)

    def padded(frozen: FrozenStates) -> tuple[Any, Any]:
        longest = max(span.stop - span.start for span in frozen.spans)
        hidden = torch.zeros(len(frozen.spans), longest, encoder.config.d_model)
        mask = torch.zeros(len(frozen.spans), longest)
        for row, span in enumerate(frozen.spans):
            hidden[row, : span.stop - span.start] = torch.tensor(frozen.hidden[span].astype(np.float32))
            mask[row, : span.stop - span.start] = 1
        return hidden, mask

    def embedded(frozen: FrozenStates) -> Any:
        hidden, mask = padded(frozen)
        out = layer(hidden, (1 - mask)[:, None, None, :] * torch.finfo(torch.float32).min)
        out = out[0] if isinstance(out, tuple) else out  # (n_texts, longest, d_model)
        return normalize((out * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True), dim=-1)

    def step() -> float:
        scores = SCALE * embedded(questions) @ embedded(chunks).T
        loss = -(targets * log_softmax(scores, dim=-1)).sum(dim=-1).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), MAX_NORM)
        optimizer.step()
        return float(loss.detach())

    return step


def main() -> None:
    """Serve one trainer."""
    prepare_compiled().join()
    encoder = Encoder.load()
    questions, chunks, batch = workload(encoder)
    make = ours if sys.argv[1] == "glassbox" else torch_eager
    step = make(encoder, questions, chunks, batch)
    n_tokens = questions.spans[-1].stop + chunks.spans[-1].stop
    print(json.dumps({"loss": step(), "n_tokens": n_tokens}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "peak_mb": memory("VmHWM")}), flush=True)


if __name__ == "__main__":
    main()
