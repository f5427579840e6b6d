"""The trainers that ``benchmarks.train`` compares, each run in a process of its own.

``python -m benchmarks.trainers NAME FOLDER``: reads the first weights and the batches from the folder, makes
one step, and says so on standard output; then makes the number of steps of each order on standard input.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.processes import CORES, memory
from engine.layers.tracing import Array
from engine.models.small_decoder import SmallDecoderConfig

CONFIG = SmallDecoderConfig(vocab_size=96, d_model=128, n_layers=4, n_heads=4, d_ff=512, context=128)
BATCH_SIZE = 16
RATE, BETAS, DECAY, MAX_NORM = 1e-3, (0.9, 0.99), 0.01, 1.0

Step = Callable[[Array, Array], float]  # inputs and targets in, loss out


def ours(params: dict[str, Array], compiled: bool = True) -> Step:
    """Glassbox's step."""
    from engine.kernels.primitives import compiled_training
    from engine.layers.primitives import NUMPY_TRAINING
    from engine.training.backward.small_decoder import loss_and_gradients
    from engine.training.optimizers import adamw, clip_gradients, no_moments

    ops, moments = compiled_training() if compiled else NUMPY_TRAINING, no_moments(params)

    def step(inputs: Array, targets: Array) -> float:
        loss, grads = loss_and_gradients(params, inputs, targets, CONFIG, ops=ops)
        clip_gradients(grads, MAX_NORM)
        adamw(params, grads, moments, RATE, BETAS, weight_decay=DECAY)
        return loss

    return step


def torch_eager(params: dict[str, Array], fused: bool = True) -> Step:
    """PyTorch's step; with its own attention in one call, or with the scores written out."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(CORES)
    tensors = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in params.items()}
    optimizer = torch.optim.AdamW(tensors.values(), RATE, BETAS, weight_decay=DECAY)
    d_model, d_head, n = CONFIG.d_model, CONFIG.d_head, CONFIG.context
    future = torch.ones(n, n, dtype=torch.bool).triu(1)

    def affine(x: Any, name: str) -> Any:
        return functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(
            x, (d_model,), tensors[f"{name}.norm.weight"], tensors[f"{name}.norm.bias"]
        )

    def attend(query: Any, key: Any, value: Any) -> Any:
        if fused:
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = (query @ key.transpose(-2, -1)) * d_head**-0.5
        return scores.masked_fill(future, -torch.inf).softmax(-1) @ value

    def logits(ids: Any) -> Any:
        x = functional.embedding(ids, tensors["embedding.weight"]) + tensors["positions.weight"]
        for i in range(CONFIG.n_layers):
            name = f"layers.{i}.attention"
            qkv = affine(norm(x, name), f"{name}.qkv").split(d_model, dim=-1)
            heads = (part.unflatten(-1, (-1, d_head)).transpose(1, 2) for part in qkv)
            x = x + affine(attend(*heads).transpose(1, 2).flatten(2), f"{name}.output")
            name = f"layers.{i}.ffn"
            hidden = functional.gelu(affine(norm(x, name), f"{name}.hidden"))
            x = x + affine(hidden, f"{name}.output")
        return functional.linear(norm(x, "final"), tensors["embedding.weight"])

    def step(inputs: Array, targets: Array) -> float:
        optimizer.zero_grad()
        loss = functional.cross_entropy(
            logits(torch.from_numpy(inputs)).flatten(0, 1), torch.from_numpy(targets).flatten()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors.values(), MAX_NORM)
        optimizer.step()
        return float(loss.item())

    return step


TRAINERS: dict[str, Callable[[dict[str, Array]], Step]] = {
    "glassbox": ours,
    "glassbox, NumPy only": lambda params: ours(params, compiled=False),
    "PyTorch eager": torch_eager,
    "PyTorch eager, attention written out": lambda params: torch_eager(params, fused=False),
}


def main() -> None:
    """Serve one trainer."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    with np.load(folder / "params.npz") as file:
        step = TRAINERS[name](dict(file))
    batches = np.load(folder / "batches.npy")  # (n_batches, BATCH_SIZE, context + 1)
    losses = [step(batches[0, :, :-1], batches[0, :, 1:])]
    print(json.dumps({"loss": losses[0]}), flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(json.loads(line)["steps"]):
            batch = batches[len(losses) % len(batches)]
            began = perf_counter()
            losses.append(step(batch[:, :-1], batch[:, 1:]))
            seconds.append(perf_counter() - began)
        print(json.dumps({"seconds": seconds, "losses": losses, "peak_mb": memory("VmHWM")}), flush=True)


if __name__ == "__main__":
    main()
