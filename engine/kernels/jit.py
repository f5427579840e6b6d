"""numba's compiler, with a cache that notices changes in all kernels, and without the import of scipy.linalg.

numba's own cache notices changes of a function's own file only, not of the files whose functions it inlines.

numba imports scipy's BLAS when the first kernel is compiled or read from disk, a fifth of the time that a
decoder needs to load, and uses it only in kernels that call BLAS routines, which none of ours do.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching
from numba.extending import intrinsic
from numba.np import linalg

__all__ = ["instructions", "njit"]

KERNELS = Path(__file__).parent
# All files whose functions and constants are compiled into kernels.
SOURCES = [
    *KERNELS.glob("*.py"),
    *(KERNELS.parent / name for name in ("weights/quantized.py", "layers/quantization.py")),
]


def digest(files: Iterable[Path]) -> bytes:
    """Hash the contents of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).digest()


KERNELS_DIGEST = digest(SOURCES)
stamp_of_file = caching._SourceFileBackedLocatorMixin.get_source_stamp


def source_stamp(locator: Any) -> bytes:
    """What numba compares to find out whether a cached function is up to date."""
    stamp: bytes = KERNELS_DIGEST if Path(locator._py_file).parent == KERNELS else stamp_of_file(locator)
    return stamp


caching._SourceFileBackedLocatorMixin.get_source_stamp = source_stamp


def check_scipy() -> None:
    """Raise `ImportError` where scipy is not installed, without importing it."""
    if find_spec("scipy") is None:
        raise ImportError("scipy is not installed")


ensure_blas, linalg.ensure_blas = linalg.ensure_blas, check_scipy
try:
    from numba.np import arraymath  # calls ensure_blas on import
finally:
    linalg.ensure_blas = ensure_blas
arraymath.ensure_blas = ensure_blas


def instructions(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have compiled code call, with a signature, a function that writes LLVM's instructions.

    It gets LLVM's builder and the values of its arguments, and returns the value of its result, if any.
    """
    parameters = [Parameter(f"x{i}", Parameter.POSITIONAL_OR_KEYWORD) for i in range(1 + len(signature.args))]

    def of_function(write: Callable[..., Any]) -> Callable[..., Any]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = write(builder, *arguments)
            return context.get_dummy_value() if result is None else result

        @wraps(write)
        def function(typing_context: Any, *arguments: Any) -> Any:
            return signature, generate

        function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(function)

    return of_function
