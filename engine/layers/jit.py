"""numba's compiler, brought in without scipy's linear algebra.

numba looks for it as soon as the first kernel is compiled or read from disk, which takes a fifth of the time
that a decoder needs to load, and then leaves it alone until a kernel calls a routine of BLAS. Ours call none.
"""

from importlib.util import find_spec

from numba import njit
from numba.np import linalg

__all__ = ["njit"]


def expect_blas() -> None:
    """Raise `ImportError` where scipy is not installed; where it is, believe that it can be imported."""
    if find_spec("scipy") is None:
        raise ImportError("scipy is not installed")


ensure_blas, linalg.ensure_blas = linalg.ensure_blas, expect_blas
try:
    from numba.np import arraymath  # asks as it is imported
finally:
    linalg.ensure_blas = ensure_blas
arraymath.ensure_blas = ensure_blas
