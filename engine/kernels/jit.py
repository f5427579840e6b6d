"""numba's compiler without the import of scipy.linalg, and a version of sources for its cache.

numba imports scipy's BLAS when the first kernel is compiled or read from disk, a fifth of the time that a
decoder needs to load, and uses it only in kernels that call BLAS routines, which none of ours do.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from numba import njit
from numba.np import linalg

__all__ = ["njit", "sources"]


def sources(*names: str) -> str:
    """Hash of files by their paths from this folder.

    numba's cache notices changes of a function's own file and of its closure, but not of imported files. So
    functions that import compiled code close over the hash of all files they are compiled from.
    """
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in names)).hexdigest()


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
