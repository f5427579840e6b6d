"""The primitives of models and of training: NumPy's, or their compiled twins where numba is available.

The first time on a machine the twins are compiled, which takes seconds, and cached on disk.
"""

import logging
import threading
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.layers.activation import ACTIVATIONS, Activation, gated, gelu_backward
from engine.layers.attention import attention, attention_backward, causal_attention, windowed_attention
from engine.layers.linear import linear
from engine.layers.norm import layer_norm, layer_norm_backward, rms_norm
from engine.layers.positions import apply_rope
from engine.layers.tracing import Array

log = logging.getLogger(__name__)

Activations = Mapping[str, Activation]


@dataclass(frozen=True)
class Primitives:
    """Primitives of an encoder; compiled ones may overwrite their first argument."""

    linear: Callable[..., Array]
    attention: Callable[..., Array]
    windowed_attention: Callable[..., Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    rms_norm: Callable[[Array, Array, float], Array]
    apply_rope: Callable[[Array, Array, Array], Array]
    gated: Callable[[Array, Array, str], Array]
    activations: Activations


@dataclass(frozen=True)
class DecoderPrimitives:
    """Primitives of a decoder; a compiled `apply_rope` overwrites its first argument."""

    linear: Callable[..., Array]
    rms_norm: Callable[[Array, Array, float], Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    apply_rope: Callable[[Array, Array, Array], Array]
    causal_attention: Callable[..., Array]
    add: Callable[[Array, Array], Array]
    gated: Callable[[Array, Array, str], Array]
    activations: Activations


@dataclass(frozen=True)
class TrainingPrimitives:
    """Primitives of training with their gradients; none overwrites its arguments."""

    attention: Callable[..., Array]
    attention_backward: Callable[..., tuple[Array, Array, Array]]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    layer_norm_backward: Callable[[Array, Array, Array, float], tuple[Array, Array, Array]]
    activations: Activations


NUMPY = Primitives(
    linear, attention, windowed_attention, layer_norm, rms_norm, apply_rope, gated, ACTIVATIONS
)
NUMPY_DECODER = DecoderPrimitives(
    linear, rms_norm, layer_norm, apply_rope, causal_attention, np.add, gated, ACTIVATIONS
)
NUMPY_TRAINING = TrainingPrimitives(
    attention, attention_backward, layer_norm, layer_norm_backward, ACTIVATIONS
)

_best = NUMPY
_preparation = threading.Lock()
_thread: threading.Thread | None = None


def prepare_compiled() -> threading.Thread:
    """Start loading the compiled primitives in the background, once for a process.

    Until they are loaded, or without numba, `best_primitives` returns NumPy's. Join the thread returned to
    wait for them.
    """
    global _thread
    with _preparation:
        if _thread is None:
            _thread = threading.Thread(target=_load_compiled, name="kernels")
            _thread.start()
        return _thread


def best_primitives() -> Primitives:
    """Return the compiled primitives if they are loaded, else NumPy's."""
    return _best


def _load_compiled() -> None:
    global _best
    try:
        from engine.kernels import attention, elementwise, gemm
        from engine.kernels.linear import linear as compiled_linear

        heads = np.zeros((1, 1, gemm.NARROW), np.float32)
        attention.attention(heads, heads, heads)  # numba may be importable and yet switched off
    except Exception as error:  # numba is absent, or does not work with other packages
        log.info("no compiled kernels (%s): NumPy does all the work", error)
        return
    gelu = {"gelu": Activation(elementwise.gelu, gelu_backward)}
    _best = Primitives(
        compiled_linear,
        attention.attention,
        attention.windowed_attention,
        elementwise.layer_norm,
        elementwise.rms_norm,
        elementwise.apply_rope,
        elementwise.gated,
        ChainMap(gelu, ACTIVATIONS),
    )


@cache
def compiled_training() -> TrainingPrimitives:
    """Return the compiled primitives of training, for float32, or NumPy's without numba."""
    try:
        from engine.kernels import training

        training.gelu(np.zeros((1, 1), np.float32))  # as in `_load_compiled`
    except Exception as error:  # as in `_load_compiled`
        log.info("no compiled training (%s): NumPy does all the work", error)
        return NUMPY_TRAINING
    return TrainingPrimitives(
        training.attention,
        training.attention_backward,
        training.layer_norm,
        training.layer_norm_backward,
        ChainMap({"gelu": Activation(training.gelu, training.gelu_backward)}, ACTIVATIONS),
    )


def has_op_tape() -> bool:
    """Whether the compiled operations of decoders are available; the first call loads them."""
    try:
        from engine.kernels.op_tape import OpTape

        one = np.ones((1, 1), np.float32)
        OpTape(0).add(one, one)  # as in `_load_compiled`
    except Exception as error:  # as in `_load_compiled`
        log.info("no compiled operations (%s): NumPy does all the work", error)
        return False
    return True
