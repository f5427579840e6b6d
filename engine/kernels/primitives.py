"""The best primitives of models and of training: compiled where numba is available, else NumPy's.

The first time on a machine the twins are compiled, which takes seconds, and cached on disk.
"""

import logging
import subprocess
import sys
import threading
from collections import ChainMap
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from ..layers.activation import ACTIVATIONS, Activation, gelu_backward
from ..layers.primitives import NUMPY, NUMPY_TRAINING, Primitives, TrainingPrimitives

log = logging.getLogger(__name__)

_best = NUMPY
_preparation = threading.Lock()
_thread: threading.Thread | None = None


def prepare_compiled(apart: bool = False) -> threading.Thread:
    """Start loading the compiled primitives in the background, once for a process.

    Until they are loaded, or without numba, `best_primitives` returns NumPy's. Join the thread returned to
    wait for them. ``apart`` has `compile_apart` run before.
    """
    global _thread
    with _preparation:
        if _thread is None:
            steps = [compile_apart, _load_compiled] if apart else [_load_compiled]
            _thread = threading.Thread(target=lambda: [step() for step in steps], name="kernels")
            _thread.start()
        return _thread


def best_primitives() -> Primitives:
    """Return the compiled primitives if they are loaded, else NumPy's."""
    return _best


def compile_apart() -> None:
    """Compile for the cache on disk in a child process: the compiler keeps 100 MB as long as it runs."""
    root = Path(__file__).parents[len(__name__.split(".")) - 1]
    code = f"from {__name__} import _load_compiled, has_op_tape; _load_compiled(); has_op_tape()"
    subprocess.run([sys.executable, "-c", code], cwd=root, stdin=subprocess.DEVNULL, check=False)


def _load_compiled() -> None:
    global _best
    try:
        from . import attention, elementwise, gemm
        from .gemm_int8 import linear as compiled_linear

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
        from . import training

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


@cache
def encoder_training() -> tuple[Primitives, TrainingPrimitives]:
    """Return the primitives that train an encoder, for float32; none overwrites its arguments."""
    ops = compiled_training()
    if ops is NUMPY_TRAINING:
        return NUMPY, NUMPY_TRAINING
    forward = replace(
        NUMPY,
        attention=partial(ops.attention, is_causal=False),
        layer_norm=ops.layer_norm,
        activations=ops.activations,
    )
    return forward, replace(ops, attention_backward=partial(ops.attention_backward, is_causal=False))


def has_op_tape() -> bool:
    """Whether the compiled operations of decoders are available; the first call loads them."""
    try:
        from .op_tape import OpTape

        one = np.ones((1, 1), np.float32)
        OpTape(0).add(one, one)  # as in `_load_compiled`
    except Exception as error:  # as in `_load_compiled`
        log.info("no compiled operations (%s): NumPy does all the work", error)
        return False
    return True
