"""numba's compiler without the import of scipy.linalg.

numba imports scipy's BLAS when the first kernel is compiled or read from disk, a fifth of the time that a
decoder needs to load, and uses it only in kernels that call BLAS routines, which none of ours do.
"""

from importlib.util import find_spec

from numba import njit
from numba.np import linalg

__all__ = ["njit"]


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
