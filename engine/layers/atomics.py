"""What threads in compiled code need to share work: numbers read, written and added to as one step."""

import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from engine.layers.tracing import Array

LONG, POINTER = ir.IntType(64), ir.PointerType()
X86 = llvmlite.binding.get_process_triple().startswith(("x86_64", "i686"))


def address(array: Array) -> int:
    """Where the numbers of an array begin."""
    return array.__array_interface__["data"][0]  # several times as fast as array.ctypes.data


@intrinsic
def read(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the 64-bit number at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], POINTER)
        return builder.load_atomic(place, "seq_cst", 8, typ=LONG)

    return types.intp(types.intp), generate


@intrinsic
def write(typing_context: Any, address, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Set the 64-bit number at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.atomic_rmw("xchg", builder.inttoptr(arguments[0], POINTER), arguments[1], "seq_cst")
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@intrinsic
def add(typing_context: Any, address, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add to the 64-bit number at an address; return what it was before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], POINTER), arguments[1], "seq_cst")

    return types.intp(types.intp, types.intp), generate


@intrinsic
def pause(typing_context: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Let a core that waits in a loop take a breath."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typing_context: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Let another thread have the core, if one waits for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if hasattr(os, "sched_yield"):
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def make_pointer(kind: Any) -> Callable[[int], Any]:
    """Return a function that turns an address into a pointer to a type, for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], POINTER)

    @intrinsic
    def pointer(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.CPointer(kind)(types.intp), generate

    return pointer


numbers_at, integers_at, bytes_at = (make_pointer(kind) for kind in (types.float32, types.int64, types.int8))
