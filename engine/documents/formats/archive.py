"""ZIP archives, read in memory and never unpacked to disk; .docx files are ZIP archives, too."""

import unicodedata
from collections.abc import Iterator
from io import BytesIO
from pathlib import PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from engine.documents.document import Failure
from engine.documents.formats.plain import kind_of
from engine.errors import DocumentError
from engine.wording import printable, reason_of

MAX_MEMBERS = 5000
MAX_PATH = 1000  # characters
MAX_UNPACKED = 100 * 1024 * 1024
# Text seldom shrinks below a fiftieth. Small archives may exceed the ratio up to a limit in bytes.
MAX_RATIO, ANY_RATIO = 100, 20 * 1024 * 1024
ENCRYPTED = 0x1  # the bit of a member's flags


def read_members(name: str, content: bytes) -> Iterator[tuple[str, bytes] | Failure]:
    """Yield path and content of every file in an archive, or the failure to read it.

    Folders and hidden files (``.git``, ``__MACOSX``) are skipped. Members are read one at a time.
    """
    with open_archive(name, content) as archive:
        for info in archive.infolist():
            if info.filename.endswith("/") or is_hidden(info.filename):
                continue
            try:
                yield info.filename, read_member(archive, info)
            except DocumentError as error:
                yield Failure(printable(f"{name}/{info.filename}")[:MAX_PATH], f"{name}/{error}")


def open_archive(name: str, content: bytes) -> ZipFile:
    """Open an archive; raise if its directory exceeds the limits."""
    if not content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        kind = kind_of(content) or "something else"
        raise DocumentError(f"{name} is no {PurePosixPath(name).suffix} file but {kind}: save it again")
    try:
        archive = ZipFile(BytesIO(content))
    except Exception as error:  # of any kind: zipfile does not check a damaged directory
        raise DocumentError(f"{name} is damaged ({reason_of(error)}): save it again") from error
    members = archive.infolist()
    unpacked = sum(info.file_size for info in members)
    if len(members) > MAX_MEMBERS:
        raise DocumentError(f"{name} holds {len(members)} files, more than the {MAX_MEMBERS} read: split it")
    if unpacked > MAX_UNPACKED or unpacked > max(ANY_RATIO, MAX_RATIO * len(content)):
        raise DocumentError(
            f"{name} would unpack to {unpacked / 1024**2:.0f} MB, more than {MAX_UNPACKED // 1024**2} MB or "
            f"{MAX_RATIO} times its size: split it"
        )
    return archive


def read_member(archive: ZipFile, info: ZipInfo) -> bytes:
    """Return a member's content, at most as long as its directory entry states."""
    check_path(info.filename)
    if info.flag_bits & ENCRYPTED:
        raise DocumentError(f"{info.filename} is encrypted: zip it without a password")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # zipfile unpacks others without a limit
        raise DocumentError(f"{info.filename} is packed by a method that is not read: zip it with Deflate")
    try:
        with archive.open(info) as file:
            return file.read(info.file_size + 1)  # read() without a size would unpack without a limit
    except Exception as error:  # of any kind, as for the directory
        raise DocumentError(f"{info.filename} is damaged ({reason_of(error)}): zip it again") from error


def check_path(path: str) -> None:
    """Raise for a path that leaves its folder, is very long, or has characters that cannot be shown."""
    if len(path) > MAX_PATH:
        raise DocumentError(f"{path[:100]!a}… is a path of over {MAX_PATH} characters: rename it")
    if not path or any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in path):
        raise DocumentError(f"{path!a} has no name that can be shown: rename it")
    if path.startswith(("/", "\\")) or "\\" in path or path[1:2] == ":" or ".." in path.split("/"):
        raise DocumentError(f"{path} points out of the archive: zip it by a path below the archive's root")


def is_hidden(path: str) -> bool:
    """Whether a file or a folder above it is hidden or added to archives by macOS."""
    return any(
        part == "__MACOSX" or (part.startswith(".") and part not in (".", "..")) for part in path.split("/")
    )
