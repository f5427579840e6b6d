"""Files that are written whole or not at all."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader finds the old one or the new one, never a part."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        written = Path(file.name)
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            written.unlink()
            raise
    written.replace(path)
