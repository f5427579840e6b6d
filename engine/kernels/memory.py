"""Memory by its address, for compiled code: float32 arrays, and atomic operations on shared integers."""

import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import carray, types
from numba.core.cgutils import get_or_insert_function

from ..layers.tracing import Array
from .jit import instructions, njit

LONG, POINTER = ir.IntType(64), ir.PointerType()
X86 = llvmlite.binding.get_process_triple().startswith(("x86_64", "i686"))


def address(array: Array) -> int:
    """Address of an array's first element."""
    return array.__array_interface__["data"][0]  # several times as fast as array.ctypes.data


@instructions(types.intp(types.intp))
def load(builder: Any, address: Any) -> Any:
    """Return the int64 at an address."""
    return builder.load_atomic(builder.inttoptr(address, POINTER), "seq_cst", 8, typ=LONG)


@instructions(types.void(types.intp, types.intp))
def store(builder: Any, address: Any, value: Any) -> None:
    """Set the int64 at an address."""
    builder.atomic_rmw("xchg", builder.inttoptr(address, POINTER), value, "seq_cst")


@instructions(types.intp(types.intp, types.intp))
def fetch_add(builder: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at an address; return the value before."""
    return builder.atomic_rmw("add", builder.inttoptr(address, POINTER), value, "seq_cst")


@instructions(types.void())
def cpu_pause(builder: Any) -> None:
    """CPU pause hint for spin loops."""
    if X86:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@instructions(types.void())
def yield_thread(builder: Any) -> None:
    """Yield the core to another thread that is ready to run."""
    if hasattr(os, "sched_yield"):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(get_or_insert_function(builder.module, kind, "sched_yield"), [])


def make_pointer(kind: Any) -> Callable[[int], Any]:
    """Return a function from an address to a pointer to values of a type, for `numba.carray`."""

    @instructions(types.CPointer(kind)(types.intp))
    def pointer(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, POINTER)

    return pointer


float32_pointer, int64_pointer = make_pointer(types.float32), make_pointer(types.int64)


@njit(inline="always")
def floats_at(address: int, n: int) -> Array:
    """Return the ``n`` float32 numbers at an address as an array."""
    return carray(float32_pointer(address), (n,))


@njit(inline="always")
def split_range(n: int, task: int, n_tasks: int) -> tuple[int, int]:
    """First and last + 1 of the ``n`` items that belong to a task."""
    return task * n // n_tasks, (task + 1) * n // n_tasks
