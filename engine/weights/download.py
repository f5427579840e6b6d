"""Downloads from the Hugging Face Hub that continue where an earlier try ended.

``hf_hub_download`` continues within one call only, deletes its part when that ends early, and cannot be
stopped. Here a file grows next to its place, as ``name.etag.part``, until it has all bytes and the right sum.
The ETag in the name is the SHA-256 of a large file, so another version of it never continues the old part;
``If-Range`` would not do, since the servers that the Hub redirects to have ETags of their own.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from ..errors import ModelUnavailableError

Progress = Callable[[int, int], None]
IsStopped = Callable[[], bool]

HEAD_TIMEOUT_S = 4.0
SILENCE_S = 10.0
PAUSE_S, VAIN_TRIES = 1.0, 5  # between two tries, and the most in a row that bring no byte
PIECE_BYTES = 256 * 1024
SHA256_DIGITS = 64
ETAG_DIGITS = 16  # of the ETag in the name of a partial file


class SourceError(Exception):
    """One source cannot give the files; the next one is tried."""


class MissingFileError(SourceError):
    """The repository, or a file of it, does not exist: trying again is no use."""


class DownloadStoppedError(ModelUnavailableError):
    """A download was stopped by its user; its part is kept for the next try."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a Hub repository, as the Hub states it."""

    url: str
    name: str
    size: int | None  # None if not stated
    etag: str  # the SHA-256 of a large file, and Git's hash of a small one
    revision: str

    @property
    def sha256(self) -> str | None:
        """The SHA-256, None where the Hub does not state it."""
        return self.etag if len(self.etag) == SHA256_DIGITS else None


def hub_endpoint() -> str:
    """Return the address of the Hub, or of the mirror in ``$HF_ENDPOINT``."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def remote_file(hub_id: str, name: str, revision: str) -> RemoteFile:
    """Ask the Hub for the size and sum of a file."""
    from httpx2 import HTTPError
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, RepositoryNotFoundError

    endpoint = hub_endpoint()
    unavailable = f"the Hugging Face Hub did not give {hub_id}/{name}"
    try:
        url = hf_hub_url(hub_id, name, revision=revision, endpoint=endpoint)
        found = get_hf_file_metadata(url, timeout=HEAD_TIMEOUT_S, endpoint=endpoint)
    except GatedRepoError as error:
        raise SourceError(
            f"{unavailable}: accept its terms at {endpoint}/{hub_id}, and set HF_TOKEN to a token of yours"
        ) from error
    except (EntryNotFoundError, RepositoryNotFoundError) as error:
        raise MissingFileError(f"{unavailable}: there is no such file") from error
    except (HTTPError, OSError, ValueError) as error:
        raise SourceError(unavailable) from error
    return RemoteFile(url, f"{hub_id}/{name}", found.size, found.etag or "", found.commit_hash or "")


def part_path(place: Path, etag: str) -> Path:
    """Return the path of a file's part, with only letters and digits of the ETag, which a server chooses."""
    return place.with_name(f"{place.name}.{re.sub('[^0-9A-Za-z]', '', etag)[:ETAG_DIGITS]}.part")


def download(
    remote: RemoteFile,
    place: Path,
    sha256: str | None = None,
    on_progress: Progress | None = None,
    is_stopped: IsStopped = lambda: False,
) -> None:
    """Download a file, or the rest of it, and move it to ``place`` once its size and sum are right.

    The part stays there when the download ends early. The sum is ``sha256``, or the one that the
    Hub states. ``on_progress`` is called with bytes done, those of earlier tries too, and in all, 0 if
    unknown; ``is_stopped`` for each piece: once it returns true the download ends.
    """
    if sha256 and remote.sha256 and sha256 != remote.sha256:
        raise SourceError(
            f"{remote.name} has SHA-256 {remote.sha256[:12]}… on the Hub, expected {sha256[:12]}…: it was "
            "changed there, and is not downloaded"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    part = part_path(place, remote.etag)
    for other in place.parent.glob(f"{place.name}.*.part"):
        if other != part:  # of another version
            other.unlink()
    is_known = bool(remote.etag) and remote.size is not None
    if part.exists() and not (is_known and part.stat().st_size <= (remote.size or 0)):
        part.unlink()
    done = part.stat().st_size if part.exists() else 0
    n_bytes = (remote.size or 0) - done
    free = free_disk_space(place.parent)
    if n_bytes > free:
        raise ModelUnavailableError(
            f"{remote.name} takes {n_bytes / 1e9:.2f} GB more and {free / 1e9:.2f} GB are free in "
            f"{place.parent}: free some space, or set GLASSBOX_CACHE to a folder on another disk"
        )
    fetch_rest(remote, part, done, on_progress, is_stopped)
    wanted = sha256 or remote.sha256
    if wanted and (found := file_sha256(part)) != wanted:
        part.unlink()
        raise SourceError(
            f"{remote.name} has SHA-256 {found[:12]}…, expected {wanted[:12]}…: the download is deleted"
        )
    part.replace(place)


def fetch_rest(
    remote: RemoteFile, part: Path, done: int, on_progress: Progress | None, is_stopped: IsStopped
) -> None:
    """Append the bytes behind the first ``done`` to a part, until `VAIN_TRIES` tries in a row bring none."""
    from httpx2 import HTTPError

    n_vain = 0  # tries in a row that brought nothing
    while n_vain < VAIN_TRIES:
        before = done
        try:
            for n_bytes in pieces_added(remote, part, before):
                done = n_bytes
                if on_progress is not None:
                    on_progress(done, remote.size or 0)
                if is_stopped() and done != remote.size:
                    raise DownloadStoppedError(
                        f"the download of {remote.name} was stopped at {amount(done, remote.size)}: the next "
                        "try goes on there"
                    )
            if remote.size in (None, done):
                return
            reason = "the server sent another number of bytes than it stated"
        except HTTPError as error:
            reason = str(error) or type(error).__name__
        except OSError as error:
            reason = error.strerror or type(error).__name__
            break
        n_vain = 0 if done > before else n_vain + 1
        if is_stopped():
            break
        time.sleep(PAUSE_S)
    raise SourceError(
        f"the download of {remote.name} ended at {amount(done, remote.size)} ({reason}): "
        "the next try goes on there"
    )


def pieces_added(remote: RemoteFile, part: Path, done: int) -> Iterator[int]:
    """Append a file's bytes behind the first ``done`` to its part; yield the part's size with each piece."""
    from huggingface_hub import get_session, hf_raise_for_status
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented there

    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    session = get_session()
    with (
        part.open("ab") as file,
        session.stream("GET", remote.url, headers=headers, timeout=SILENCE_S) as answer,
    ):
        try:
            hf_raise_for_status(answer)
        except HfHubHTTPError as error:
            raise SourceError(
                f"the Hugging Face Hub did not give {remote.name} (status {answer.status_code})"
            ) from error
        if answer.status_code != HTTPStatus.PARTIAL_CONTENT:  # the whole file, not the range
            file.truncate(0)
        for piece in answer.iter_raw(PIECE_BYTES):
            file.write(piece)
            yield file.tell()


def amount(done: int, size: int | None) -> str:
    """``"12.3 of 45.6 MB"``."""
    return f"{done / 1e6:.1f}{f' of {size / 1e6:.1f}' if size else ''} MB"


def free_disk_space(folder: Path) -> int:
    """Bytes free on the disk of a folder, which need not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
