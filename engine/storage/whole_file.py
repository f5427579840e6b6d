"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader finds the old one or the new one, never a part."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file beside ``path`` that takes its place, on the disk, at the end of the block."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        written = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            written.unlink()
            raise
    try:
        written.replace(path)
    except BaseException:
        written.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, so that a renamed file has its new one after a power cut."""
    with suppress(PermissionError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
