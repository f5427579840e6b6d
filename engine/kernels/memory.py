"""Memory by its address, for compiled code: float32 arrays, and atomic operations on shared integers."""

import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import carray, types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from ..layers.tracing import Array
from .jit import njit

LONG, POINTER = ir.IntType(64), ir.PointerType()
X86 = llvmlite.binding.get_process_triple().startswith(("x86_64", "i686"))


def address(array: Array) -> int:
    """Address of an array's first element."""
    return array.__array_interface__["data"][0]  # several times as fast as array.ctypes.data


@intrinsic
def load(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], POINTER)
        return builder.load_atomic(pointer, "seq_cst", 8, typ=LONG)

    return types.intp(types.intp), generate


@intrinsic
def store(typing_context: Any, address, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Set the int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.atomic_rmw("xchg", builder.inttoptr(arguments[0], POINTER), arguments[1], "seq_cst")
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@intrinsic
def fetch_add(typing_context: Any, address, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add to the int64 at an address; return the value before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], POINTER), arguments[1], "seq_cst")

    return types.intp(types.intp, types.intp), generate


@intrinsic
def cpu_pause(typing_context: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """CPU pause hint for spin loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def yield_thread(typing_context: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Yield the core to another thread that is ready to run."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if hasattr(os, "sched_yield"):
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def make_pointer(kind: Any) -> Callable[[int], Any]:
    """Return a function from an address to a pointer to values of a type, for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], POINTER)

    @intrinsic
    def pointer(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.CPointer(kind)(types.intp), generate

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
