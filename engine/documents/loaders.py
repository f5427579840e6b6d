"""Read text and Markdown files."""

from collections.abc import Iterable
from pathlib import Path

from engine.documents.document import Document
from engine.errors import DocumentError

SUFFIXES = (".txt", ".md")
MAX_BYTES = 20 * 1024 * 1024
BUNDLED_CORPUS = Path(__file__).parent.parent.parent / "data" / "corpus"


def load_document(path: Path) -> Document:
    """Read a .txt or .md file.

    Raises
    ------
    DocumentError
        The file is missing, of another kind, too large, empty, or not UTF-8 text.
    """
    check_suffix(path.name)
    try:
        check_size(path.name, path.stat().st_size)
        return parse_document(path.name, path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character
        raise DocumentError(f"{path} cannot be read: {error}") from error


def parse_document(name: str, content: bytes) -> Document:
    r"""Make a document of a file's content; line ends become ``\n``, a byte order mark is dropped."""
    check_suffix(name)
    check_size(name, len(content))
    if b"\0" in content:
        raise DocumentError(f"{name} is a binary file, not text: save it as UTF-8 text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{name} is not UTF-8 text (byte {error.start}): save it with the encoding UTF-8"
        ) from error
    if not text.strip():
        raise DocumentError(f"{name} is empty: there is no text to search")
    return Document(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def load_corpus(path: Path) -> list[Document]:
    """Read one file, or every .txt and .md file below a folder, in the order of their names.

    A document of a folder is named by its path within the folder.
    """
    if not path.exists():
        raise DocumentError(f"{path} does not exist: give a .txt or .md file, or a folder of them")
    if path.is_file():
        return [load_document(path)]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    if not files:
        raise DocumentError(f"{path} holds no {' or '.join(SUFFIXES)} file: give a folder that does")
    return unique(Document(file.relative_to(path).as_posix(), load_document(file).text) for file in files)


def unique(documents: Iterable[Document]) -> list[Document]:
    """Return the documents, or raise where two have one name: a source must point to one text."""
    by_name: dict[str, Document] = {}
    for document in documents:
        if document.name in by_name:
            raise DocumentError(f"there are two documents named {document.name}: rename one of them")
        by_name[document.name] = document
    return list(by_name.values())


def check_suffix(name: str) -> None:
    """Raise `DocumentError` for a file that is neither .txt nor .md."""
    if Path(name).suffix.lower() not in SUFFIXES:
        raise DocumentError(f"{name} is not a {' or '.join(SUFFIXES)} file")


def check_size(name: str, n_bytes: int) -> None:
    """Raise `DocumentError` for a file over `MAX_BYTES`."""
    if n_bytes > MAX_BYTES:
        megabytes = n_bytes / 1024**2
        raise DocumentError(
            f"{name} has {megabytes:.0f} MB, more than the {MAX_BYTES // 1024**2} MB that are read: split it"
        )
