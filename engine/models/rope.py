"""Rotary positions of decoders (RoPE, Su et al. 2021) and how they are scaled, from config.json or GGUF."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.positions import FLOAT32, llama3_factors, rope_frequencies, rope_tables
from ..layers.tracing import Array
from ..weights.gguf_file import GGUF
from ..weights.tensors import config_float, config_size, with_shape
from .kv_cache import KVCache

GGUF_OPTIONS = (
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
)


@dataclass(frozen=True)
class Rope:
    """Rotations of queries and keys."""

    theta: float  # base of the frequencies
    # divisor of the frequency of each pair of dimensions; a head's dimensions beyond are not rotated
    factors: tuple[float, ...]
    scale: float = 1.0  # of cosines and sines
    max_positions: int = 2**31  # that these rotations serve: LongRoPE (Ding et al. 2024) has others beyond


def new_rotations(rope: Rope, n_new: int, cache: KVCache, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine for the tokens that follow those in ``cache``: ``(n_new, d_rotary / 2)`` each."""
    return rotations(rope, np.arange(cache.length, cache.length + n_new), dtype)


def rotations(rope: Rope, positions: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine of positions ``(n_tokens,)``: ``(n_tokens, d_rotary / 2)`` each."""
    tables = rope_tables(positions, 2 * len(rope.factors), rope.theta, FLOAT32, rope.factors)
    cos, sin = ((table * np.float32(rope.scale)).astype(dtype, copy=False) for table in tables)
    return cos, sin


def read_folder_rope(raw: Mapping[str, Any], d_head: int, folder: Path) -> Rope:
    """Read the rotations from a config.json."""
    stated = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    rope = {**raw, **stated} if isinstance(stated, dict) else {**raw, "rope_type": stated}
    theta = config_float(rope, "rope_theta", default=2e6 if raw["model_type"] == "smollm3" else 1e4)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if d_head % 2:
        raise ModelFileError(
            f"{folder}: heads of {d_head} dimensions cannot be rotated in pairs: download it again"
        )
    is_phi3 = raw["model_type"] == "phi3"
    d_rotary = int(d_head * config_float(rope, "partial_rotary_factor", default=1.0)) if is_phi3 else d_head
    n_pairs = d_rotary // 2
    if kind in ("default", "dynamic"):  # the second rotates texts within the model's context alike
        return Rope(theta, (1.0,) * n_pairs)
    if kind == "linear":
        return Rope(theta, (config_float(rope, "factor"),) * n_pairs)
    if kind == "llama3":
        factor, low, high = (config_float(rope, f"{key}factor") for key in ("", "low_freq_", "high_freq_"))
        n_positions = config_size(rope, "original_max_position_embeddings", rope["max_position_embeddings"])
        return Rope(theta, tuple(llama3_factors(d_head, theta, factor, low, high, n_positions).tolist()))
    if kind == "ntk":  # only of GTE (Su 2023): a larger base and all slower, or mixed: the last slowest
        factor = config_float(rope, "factor")
        if rope.get("mixed_b") is None:
            return Rope(theta * factor, (factor ** (2 / d_head),) * n_pairs)
        power = config_float(rope, "mixed_b")
        return Rope(theta, tuple(factor ** ((pair + 1) / n_pairs) ** power for pair in range(n_pairs)))
    if kind == "yarn" and not is_phi3:
        factors, scale = yarn(rope, d_head, theta)
        return Rope(theta, factors, scale)
    if is_phi3 and kind in ("longrope", "su", "yarn"):  # as early files call it
        n_positions = config_size(raw, "original_max_position_embeddings", default=4096)
        factors = pair_factors(rope, "short_factor", n_pairs)
        longer = config_float(
            rope, "factor", default=config_size(raw, "max_position_embeddings") / n_positions
        )
        usual = math.sqrt(1 + math.log(longer) / math.log(n_positions)) if longer > 1 else 1.0
        scale = config_float(rope, "attention_factor", default=usual)
        return Rope(theta, factors, scale, n_positions)
    raise ModelFileError(
        f"{folder} scales its rotary positions ({kind}), which is not read: linear, llama3 and yarn are"
    )


def read_kind_rope(raw: Mapping[str, Any], kind: str, old_theta: str, d_head: int, folder: Path) -> Rope:
    """Read the rotations of one kind of layers of a config.json, a value of its layer_types.

    ``old_theta`` is the key of its base in files of transformers before version 5.
    """
    stated = raw.get("rope_parameters") or {}
    own = {"rope_parameters": stated.get(kind), "rope_theta": raw[old_theta]}
    return read_folder_rope({**raw, **own}, d_head, folder)


def yarn(rope: Mapping[str, Any], d_head: int, theta: float) -> tuple[tuple[float, ...], float]:
    """Factors of each pair and the scale of YaRN (Peng et al. 2023), as in transformers."""
    n_positions = config_size(rope, "original_max_position_embeddings", rope["max_position_embeddings"])
    usual = rope["max_position_embeddings"] / n_positions
    factor = config_float(rope, "factor", default=usual)

    def scaled(strength: float) -> float:
        return 0.1 * strength * math.log(factor) + 1 if factor > 1 else 1.0

    own, of_all = (rope.get(key) or 0.0 for key in ("mscale", "mscale_all_dim"))
    scale = scaled(own) / scaled(of_all) if own and of_all else scaled(1)
    turns = config_float(rope, "beta_fast", default=32.0), config_float(rope, "beta_slow", default=1.0)
    low, high = (d_head * math.log(n_positions / (2 * math.pi * n)) / (2 * math.log(theta)) for n in turns)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d_head - 1)
    # In float32 step by step, as in transformers.
    ramp = np.clip((np.arange(d_head // 2, dtype=np.float32) - low) / (high - low or 0.001), 0, 1)
    usual_turns = rope_frequencies(d_head, theta)
    kept = 1 - ramp
    slowed = 1 / (np.float32(factor) / usual_turns) * (1 - kept) + usual_turns * kept
    factors = usual_turns.astype(float) / slowed.astype(float)
    return tuple(factors.tolist()), config_float(rope, "attention_factor", default=scale)


def pair_factors(rope: Mapping[str, Any], key: str, n_pairs: int) -> tuple[float, ...]:
    """Return a list of factors of a config.json, one for each pair of dimensions that is rotated."""
    listed = rope.get(key)
    if not isinstance(listed, list) or len(listed) != n_pairs:
        raise ModelFileError(
            f"the model's config has {key} {listed!r}, not {n_pairs} numbers: download it again"
        )
    return tuple(config_float({key: factor}, key) for factor in listed)


def read_gguf_rope(file: GGUF, architecture: str, d_head: int) -> Rope:
    """Read the rotations from a GGUF file, scaled by a number or a tensor."""
    raw = {key: file.get(f"{architecture}.{key}") for key in GGUF_OPTIONS}
    theta = config_float(raw, "rope.freq_base", 1e4)
    d_rotary = config_size(raw, "rope.dimension_count", default=d_head)
    if d_rotary != d_head and (architecture != "phi3" or d_rotary > d_head or d_rotary % 2):
        raise ModelFileError(
            f"{file.path} rotates {d_rotary} of the {d_head} dimensions of a head, "
            f"which is not read: use a model that rotates all of them"
        )

    def tensor(name: str) -> Array:
        factors = with_shape(file.tensor(name), name, (d_rotary // 2,)).float32()
        if not (factors > 0).all():
            raise ModelFileError(f"{file.path} has factors in {name} that are not above 0: download it again")
        return factors

    kind = file.get(f"{architecture}.rope.scaling.type", "none")
    if architecture == "phi3" and "rope_factors_long.weight" in file:
        n_positions = config_size(raw, "rope.scaling.original_context_length")
        scale = config_float(raw, "rope.scaling.attn_factor", default=1.0)
        return Rope(theta, tuple(tensor("rope_factors_short.weight").tolist()), scale, n_positions)
    if kind not in ("none", "linear"):
        raise ModelFileError(
            f"{file.path} scales its rotary positions ({kind}), which is not read: linear and llama3 are"
        )
    factors = np.ones(d_rotary // 2, np.float32)
    if "rope_freqs.weight" in file:
        factors = tensor("rope_freqs.weight")
    if kind == "linear":
        key = f"{architecture}.rope.scaling.factor"
        factors = factors * config_float({key: file[key]}, key)
    return Rope(theta, tuple(factors.tolist()))
