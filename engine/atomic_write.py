"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    CAN_LOCK = False
else:
    CAN_LOCK = True


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader finds the old one or the new one, never a part."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file next to ``path`` that takes its place, on the disk, at the end of the block."""
    remove_abandoned(path.parent, escape(path.name))
    with locked_file(path) as file:
        written = Path(file.name)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            written.replace(path)
        except BaseException:
            written.unlink()
            raise
    sync_folder(path.parent)


@contextmanager
def locked_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file next to ``path``, which stays locked to the end of the block when it is closed."""
    while True:
        file = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
        with locked(file):
            if Path(file.name).exists():
                yield file
                return
        file.close()  # another writer took it for an abandoned one before it was locked


def remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove temporary files of killed writers, by a pattern of targets; running writers lock theirs."""
    if not CAN_LOCK:
        return
    for left in folder.glob(f".{pattern}.{'[a-z0-9_]' * 8}"):
        with suppress(OSError), left.open("rb") as file:
            flock(file, LOCK_EX | LOCK_NB)
            left.unlink()


@contextmanager
def locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the lock of a file during a block, also when it is closed, where the system has such locks."""
    if not CAN_LOCK:
        yield
        return
    opened = os.dup(file.fileno())  # a lock is of the opened file, which this keeps open
    try:
        with suppress(OSError):  # of a file system without locks, on which nothing is removed either
            flock(opened, LOCK_EX)
        yield
    finally:
        os.close(opened)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, so that a renamed file has its new one after a power cut."""
    with suppress(PermissionError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
