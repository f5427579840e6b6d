"""Models in several GGUF files, as llama.cpp's gguf-split writes them."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..wording import some_of
from .tensors import shortened

# The name of a part: its number, and that of all parts.
PART_NAME = re.compile(r"(.*)-\d{5}-of-(\d{5})(\.gguf)", re.IGNORECASE | re.DOTALL)


def is_part(metadata: Mapping[str, Any]) -> bool:
    """Whether a file holds a part of a model, by its metadata."""
    n_parts = metadata.get("split.count")
    return isinstance(n_parts, int) and n_parts > 1


def part_paths(path: Path, metadata: Mapping[str, Any]) -> list[Path]:
    """Return the files of all parts of a model, in order, from one of them; raise where some are missing."""
    n_parts, name = metadata["split.count"], PART_NAME.fullmatch(path.name)
    number = shortened(metadata["split.no"] + 1 if isinstance(metadata.get("split.no"), int) else "?")
    stands = f"{path} is part {number} of {shortened(n_parts)} of a model"
    if name is None or int(name[2]) != n_parts:
        raise ModelFileError(
            f"{stands}, and its name does not tell those of the others: put all parts into one folder, with "
            "the names that they were downloaded by, such as model-00001-of-00003.gguf"
        )
    paths = [path.with_name(f"{name[1]}-{part + 1:05d}-of-{name[2]}{name[3]}") for part in range(n_parts)]
    if missing := [part.name for part in paths if not part.is_file()]:
        raise ModelFileError(f"{stands}, and others are missing: put {some_of(missing, 3)} next to it")
    return paths


def check_parts(parts: Mapping[Path, tuple[Mapping[str, Any], Collection[str]]]) -> None:
    """Raise `ModelFileError` unless files are one model, in order: their metadata and names of tensors."""
    for number, (path, (metadata, _)) in enumerate(parts.items()):
        if (metadata.get("split.no"), metadata.get("split.count")) != (number, len(parts)):
            raise ModelFileError(
                f"{path} is not part {number + 1} of {len(parts)}, as its name says: download it again"
            )
    first, (metadata, _) = next(iter(parts.items()))
    names = [name for _, own in parts.values() for name in own]
    n_all = metadata.get("split.tensors.count", len(names))
    if not len({*names}) == len(names) == n_all:
        raise ModelFileError(
            f"{first} and the other parts have {len({*names})} tensors, and the model {shortened(n_all)}: "
            "download all parts again"
        )
