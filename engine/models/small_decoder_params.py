"""The parameters of a small decoder: names, shapes, and random initial values."""

import numpy as np

from ..layers.tracing import Array, Shapes
from .small_decoder import SmallDecoderConfig

INIT_STD = 0.02  # of GPT-2's matrices


def parameter_shapes(config: SmallDecoderConfig) -> Shapes:
    """Shape of every parameter by name, in the order a forward pass reads; matrices are ``(d_out, d_in)``."""
    d_model, d_ff = config.d_model, config.d_ff
    shapes: Shapes = {"embedding.weight": (config.vocab_size, d_model)}
    if config.positions == "learned":
        shapes["positions.weight"] = (config.context, d_model)
    for i in range(config.n_layers):
        attention, ffn = f"layers.{i}.attention", f"layers.{i}.ffn"
        shapes |= _norm_shapes(attention, d_model)
        shapes |= _affine_shapes(f"{attention}.qkv", d_model, 3 * d_model)
        shapes |= _affine_shapes(f"{attention}.output", d_model, d_model)
        shapes |= _norm_shapes(ffn, d_model)
        shapes |= _affine_shapes(f"{ffn}.hidden", d_model, d_ff)
        shapes |= _affine_shapes(f"{ffn}.output", d_ff, d_model)
    return shapes | (_norm_shapes("final", d_model) if config.norm_first else {})


def init_params(config: SmallDecoderConfig, seed: int) -> dict[str, Array]:
    """Random parameters with GPT-2's initialisation; the same for a seed on any machine.

    Matrices are normal with standard deviation 0.02, times ``1 / sqrt(2 n_layers)`` for those that add to
    the residual stream (Radford et al. 2019, section 2.3); biases are 0, scales of norms 1.
    """
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in parameter_shapes(config).items():
        if len(shape) == 1:
            params[name] = np.full(shape, name.endswith("norm.weight"), np.float32)
            continue
        adds = name.endswith("output.weight")
        std = INIT_STD / np.sqrt(2 * config.n_layers) if adds else INIT_STD
        params[name] = rng.standard_normal(shape, np.float32) * np.float32(std)
    return params


def _norm_shapes(name: str, d_model: int) -> Shapes:
    return {f"{name}.norm.weight": (d_model,), f"{name}.norm.bias": (d_model,)}


def _affine_shapes(name: str, d_in: int, d_out: int) -> Shapes:
    return {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}
