"""ZIP archives, read in memory and never unpacked to disk; .docx files are ZIP archives, too."""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from ...errors import DocumentError
from ...wording import printable
from ..document import Failure
from .encodings import guess
from .plain import as_document_error, kind_of

MAX_MEMBERS = 20_000
MAX_PATH = 1000  # characters
MAX_UNPACKED = 100 * 1024 * 1024
# Text seldom shrinks below a fiftieth. Small archives may exceed the ratio up to a limit in bytes.
MAX_RATIO, ANY_RATIO = 100, 20 * 1024 * 1024
ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
SAMPLE = 1_000_000  # bytes that are looked at for it
# The folder of the main part of a file, the endings of its kind, and the kind.
MAIN_FOLDERS = {
    "word": ((".docx", ".docm", ".dotx"), "a Word file"),
    "xl": ((".xlsx", ".xlsm", ".xltx"), "an Excel workbook"),
    "ppt": ((".pptx", ".pptm", ".ppsx"), "a PowerPoint file"),
    "META-INF": ((".epub", ".odt", ".ods", ".odp"), "a book or a file of LibreOffice"),
}
ENCRYPTED, UTF8 = 0x1, 0x800  # bits of a member's flags
# Encodings of names that Windows writes without saying so.
NAMES = (
    "cp437", "cp850", "cp852", "cp1252", "cp866", "cp1251", "cp932", "gb18030", "big5", "cp949", "cp737",
    "cp862",
)  # fmt: skip
MAX_NAMES = 10_000  # characters


def read_members(name: str, content: bytes) -> Iterator[tuple[str, bytes] | Failure]:
    """Yield path and content, or the failure, of every file in an archive that is not hidden."""
    with open_archive(name, content) as archive:
        encoding = names_encoding(archive.infolist())
        for info in archive.infolist():
            path = info.filename
            if not info.flag_bits & UTF8:
                path = info.orig_filename.encode("cp437", "replace").decode(encoding, "replace")
            path = path.replace("\\", "/")
            if path.endswith("/") or is_hidden(path):
                continue
            try:
                yield path, read_member(archive, info, path)
            except DocumentError as error:
                yield Failure(printable(f"{name}/{path}")[:MAX_PATH], f"{name}/{error}")


def names_encoding(members: Sequence[ZipInfo]) -> str:
    """Return the encoding of the names of an archive that states none: UTF-8, or the likeliest of `NAMES`."""
    names = [info.orig_filename for info in members if not info.flag_bits & UTF8]
    raw = "\n".join(names)[:MAX_NAMES].encode("cp437", "replace")
    with suppress(UnicodeDecodeError):
        return "cp437" if raw.isascii() else raw.decode("utf-8") and "utf-8"
    return guess(raw, NAMES)


def open_archive(name: str, content: bytes, most: int = MAX_UNPACKED) -> ZipFile:
    """Open an archive; raise if its directory exceeds the limits, of which ``most`` is of bytes unpacked."""
    if ENCRYPTED_OFFICE in content[:SAMPLE]:
        raise DocumentError(f"{name} is encrypted: save a copy without a password")
    if not content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        kind = kind_of(content) or "something else"
        raise DocumentError(f"{name} is no {PurePosixPath(name).suffix} file but {kind}: save it again")
    with as_document_error(f"{name} is damaged", "save it again"):
        archive = ZipFile(BytesIO(content))
    members = archive.infolist()
    check_kind(name, {info.filename.split("/")[0] for info in members})
    unpacked = sum(info.file_size for info in members)
    if len(members) > MAX_MEMBERS:
        raise DocumentError(
            f"{name} holds {len(members):,} files, more than the {MAX_MEMBERS:,} read: split it"
        )
    if unpacked > most or unpacked > max(ANY_RATIO, MAX_RATIO * len(content)):
        raise DocumentError(
            f"{name} would unpack to {unpacked / 1024**2:.0f} MB, more than {most // 1024**2} MB or "
            f"{MAX_RATIO} times its size: split it"
        )
    return archive


def check_kind(name: str, folders: set[str]) -> None:
    """Raise where an Office file or a book is of another kind than its ending says."""
    stated = next((folder for folder, (ends, _) in MAIN_FOLDERS.items() if name.lower().endswith(ends)), None)
    found = next((kind for folder, (_, kind) in MAIN_FOLDERS.items() if folder in folders), None)
    if stated and stated not in folders and found:
        raise DocumentError(f"{name} is {found}, as its parts show: give it the ending of its kind")


def read_member(archive: ZipFile, info: ZipInfo, path: str = "") -> bytes:
    """Return the content of a member with this path, at most as long as its directory entry states."""
    damaged = as_document_error(f"{info.filename} is damaged", "zip it again")
    with damaged, open_member(archive, info, path) as file:
        return file.read(info.file_size + 1)  # read() without a size would unpack without a limit


def open_member(archive: ZipFile, info: ZipInfo, path: str = "") -> IO[bytes]:
    """Open a member with this path, which ends where its directory entry states."""
    check_path(path or info.filename)
    if info.flag_bits & ENCRYPTED:
        raise DocumentError(f"{info.filename} is encrypted: zip it without a password")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # zipfile unpacks others without a limit
        raise DocumentError(f"{info.filename} is packed by a method that is not read: zip it with Deflate")
    return archive.open(info)


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
    parts = path.split("/")
    return any(part == "__MACOSX" or (part[:1] == "." and part not in (".", "..")) for part in parts)
