"""The steps of a forward pass that exist twice: as NumPy says them, and compiled."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.layers.activation import ACTIVATIONS, swiglu
from engine.layers.attention import attention, causal_attention
from engine.layers.linear import linear
from engine.layers.norm import layer_norm, rms_norm
from engine.layers.positions import apply_rope
from engine.layers.tracing import Array

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Primitives:
    """One implementation of each step; a compiled one may overwrite its first argument."""

    linear: Callable[..., Array]
    attention: Callable[..., Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    activations: Mapping[str, Callable[[Array], Array]]


NUMPY = Primitives(linear, attention, layer_norm, ACTIVATIONS)


@dataclass(frozen=True)
class DecoderPrimitives:
    """One implementation of each step of a decoder; a compiled `apply_rope` works in place."""

    linear: Callable[..., Array]
    rms_norm: Callable[[Array, Array, float], Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    apply_rope: Callable[[Array, Array, Array], Array]
    causal_attention: Callable[..., Array]
    add: Callable[[Array, Array], Array]
    swiglu: Callable[[Array, Array], Array]
    activations: Mapping[str, Callable[[Array], Array]]


NUMPY_DECODER = DecoderPrimitives(
    linear, rms_norm, layer_norm, apply_rope, causal_attention, np.add, swiglu, ACTIVATIONS
)

_best = NUMPY
_preparation = threading.Lock()
_thread: threading.Thread | None = None


def prepare_compiled() -> threading.Thread:
    """Begin to load the compiled primitives in the background, once for a process.

    The very first time on a machine they are compiled, which takes seconds, and kept on disk. Until
    they are ready, and where numba is not installed, `best_primitives` stays with NumPy. Join the
    thread returned to wait for them.
    """
    global _thread
    with _preparation:
        if _thread is None:
            _thread = threading.Thread(target=_load_compiled, name="kernels")
            _thread.start()
        return _thread


def best_primitives() -> Primitives:
    """Return the compiled primitives if they are ready, else NumPy's."""
    return _best


def _load_compiled() -> None:
    global _best
    try:
        from engine.layers import kernels, products

        heads = np.zeros((1, 1, products.NARROW), np.float32)
        products.attention(heads, heads, heads)  # numba may be importable and yet switched off
    except Exception as error:  # numba is absent, or does not work with what else is installed
        log.info("no compiled kernels (%s): NumPy does all the work", error)
        return
    activations = {**ACTIVATIONS, "gelu": kernels.gelu}
    _best = Primitives(products.linear, products.attention, kernels.layer_norm, activations)


def has_programs() -> bool:
    """Whether the compiled steps of decoders can be had; the first call loads them.

    The very first time on a machine they are compiled, which takes some ten seconds, and kept on disk.
    """
    try:
        from engine.layers.program import Program

        one = np.ones((1, 1), np.float32)
        Program(0).add(one, one)  # as in `_load_compiled`
    except Exception as error:  # as in `_load_compiled`
        log.info("no compiled steps (%s): NumPy does all the work", error)
        return False
    return True
