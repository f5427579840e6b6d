"""Read files of many kinds, one or several documents a file."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from engine.documents.document import Document
from engine.documents.formats.archive import is_hidden, read_members
from engine.documents.formats.json_lines import read_jsonl
from engine.documents.formats.loaded import Failure, Loaded
from engine.documents.formats.markdown import read_markdown
from engine.documents.formats.notebook import read_notebook
from engine.documents.formats.pdf import read_pdf
from engine.documents.formats.plain import read_plain
from engine.documents.formats.table import read_csv
from engine.documents.formats.webpage import read_html
from engine.documents.formats.word import read_docx
from engine.errors import DocumentError

__all__ = [
    "BUNDLED_CORPUS",
    "MAX_BYTES",
    "MAX_DOCUMENTS",
    "SUFFIXES",
    "Failure",
    "Loaded",
    "load_corpus",
    "load_document",
    "parse_document",
    "parse_file",
    "read_corpus",
    "unique",
]

CODE = (
    ".py", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs",
    ".rs", ".go", ".rb", ".php", ".swift", ".r", ".jl", ".lua", ".sh", ".sql", ".css", ".json", ".toml",
    ".yaml", ".yml", ".ini", ".xml", ".tex",
)  # fmt: skip
READERS: dict[str, Callable[[str, bytes], Document]] = {
    ".txt": read_plain,
    ".rst": read_plain,
    ".log": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".ipynb": read_notebook,
    **dict.fromkeys(CODE, read_plain),
}
SEVERAL = (".csv", ".jsonl", ".zip")  # a file of these holds any number of documents
SUFFIXES = (*READERS, *SEVERAL)
KINDS = ".txt, .md, .html, .pdf, .docx, .csv, .jsonl, .ipynb, .zip or source code"
MAX_BYTES = 20 * 1024 * 1024
MAX_DOCUMENTS = 100_000  # of one file: as many lists of a row fit in a few megabytes
BUNDLED_CORPUS = Path(__file__).parent.parent.parent / "data" / "corpus"


def load_document(path: Path) -> Document:
    """Read a file of one document.

    Raises
    ------
    DocumentError
        The file is missing, of a kind that is not read or that holds several documents, over `MAX_BYTES`,
        or says nothing to its reader.
    """
    check_suffix(path.name)
    return parse_document(path.name, content_of(path))


def parse_document(name: str, content: bytes) -> Document:
    """Make a document of a file's content, as `load_document` does."""
    check_suffix(name)
    check_size(name, len(content))
    suffix = suffix_of(name)
    if suffix in SEVERAL:
        raise DocumentError(f"{name} can hold several documents: read it with parse_file or load_corpus")
    return READERS[suffix](name, content)


def parse_file(name: str, content: bytes, csv_column: str | None = None) -> Loaded:
    """Make documents of a file's content, without ever raising: what cannot be read is told beside them.

    Parameters
    ----------
    name
        The file's name, whose suffix decides how it is read. Documents of a file of several are named
        below it: ``a.csv#2``, ``a.jsonl#1``, ``a.zip/b.md``, ``a.zip/b.csv#2``.
    content
        Its bytes.
    csv_column
        The column of CSV files whose cells are the texts; without it a text is all of a row.
    """
    documents: dict[str, Document] = {}
    failures: list[Failure] = []
    skipped: list[str] = []
    try:
        for part in parts(name, content, csv_column):
            if isinstance(part, str):
                skipped.append(part)
            elif isinstance(part, Failure):
                failures.append(part)
            elif part.name in documents:
                failures.append(Failure(part.name, f"there are two documents named {part.name}: rename one"))
            else:
                documents[part.name] = part
            if len(documents) + len(failures) > MAX_DOCUMENTS:
                raise DocumentError(f"{name} holds more than {MAX_DOCUMENTS} documents: split it")
    except DocumentError as error:
        return Loaded((), (Failure(name, str(error)),))
    if not documents and not failures:
        failures.append(Failure(name, f"{name} holds no text: give a file with {KINDS} in it"))
    return Loaded(tuple(documents.values()), tuple(failures), tuple(skipped))


def parts(name: str, content: bytes, csv_column: str | None) -> Iterator[Document | Failure | str]:
    """Yield a file's documents and failures, and the names of members that are of no kind read."""
    check_suffix(name)
    check_size(name, len(content))
    suffix = suffix_of(name)
    if suffix == ".csv":
        yield from read_csv(name, content, csv_column)
    elif suffix == ".jsonl":
        yield from read_jsonl(name, content)
    elif suffix == ".zip":
        yield from member_parts(name, content, csv_column)
    else:
        yield parse_document(name, content)


def member_parts(name: str, content: bytes, csv_column: str | None) -> Iterator[Document | Failure | str]:
    """Yield the parts of an archive's members; an archive within it is not opened."""
    for member in read_members(name, content):
        if isinstance(member, Failure):
            yield member
            continue
        path, member_content = member
        path = f"{name}/{path}"
        if suffix_of(path) == ".zip":
            yield Failure(path, f"{path} is an archive within an archive: unpack it, and add it by itself")
        elif suffix_of(path) not in SUFFIXES:
            yield path
        else:
            try:
                yield from list(parts(path, member_content, csv_column))  # all of it, or the failure
            except DocumentError as error:
                yield Failure(path, str(error))


def load_corpus(path: Path) -> list[Document]:
    """Read one file, or every file below a folder, in the order of their names; raise the first failure.

    A document of a folder is named by its path within the folder.

    Raises
    ------
    DocumentError
        There is no such path, nothing in it that is read, or something that cannot be.
    """
    loaded = read_corpus(path)
    if loaded.failures:
        raise DocumentError(loaded.failures[0].reason)
    return unique(loaded.documents)


def read_corpus(path: Path, csv_column: str | None = None) -> Loaded:
    """Read as `load_corpus` does, but go on after a failure and tell it beside the documents.

    Hidden files and folders (``.git``) are passed over, and files of kinds that are not read are `skipped`.

    Raises
    ------
    DocumentError
        There is no such path, or nothing in it that is read.
    """
    if not path.exists():
        raise DocumentError(f"{path} does not exist: give a file ({KINDS}) or a folder of them")
    if path.is_file():
        return read_file(path, path.name, csv_column)
    below = sorted(file for file in path.rglob("*") if file.is_file())
    names = {file.relative_to(path).as_posix(): file for file in below}
    names = {name: file for name, file in names.items() if not is_hidden(name)}
    loaded = [read_file(names[name], name, csv_column) for name in names if suffix_of(name) in SUFFIXES]
    if not loaded:
        raise DocumentError(f"{path} holds no file that is read: give a folder with {KINDS}")
    return Loaded(
        tuple(document for one in loaded for document in one.documents),
        tuple(failure for one in loaded for failure in one.failures),
        tuple(name for name in names if suffix_of(name) not in SUFFIXES)
        + tuple(name for one in loaded for name in one.skipped),
    )


def read_file(path: Path, name: str, csv_column: str | None) -> Loaded:
    """Return the documents of a file under a name; one that cannot be read is a failure."""
    try:
        check_suffix(name)
        content = content_of(path)
    except DocumentError as error:
        return Loaded((), (Failure(name, str(error)),))
    return parse_file(name, content, csv_column)


def content_of(path: Path) -> bytes:
    """Return a file's bytes; one over `MAX_BYTES` is left unread."""
    try:
        check_size(path.name, path.stat().st_size)
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character
        raise DocumentError(f"{path} cannot be read: {error}") from error


def unique(documents: Iterable[Document]) -> list[Document]:
    """Return the documents, or raise where two have one name: a source must point to one text."""
    by_name: dict[str, Document] = {}
    for document in documents:
        if document.name in by_name:
            raise DocumentError(f"there are two documents named {document.name}: rename one of them")
        by_name[document.name] = document
    return list(by_name.values())


def suffix_of(name: str) -> str:
    """Return a name's suffix in small letters."""
    return PurePosixPath(name).suffix.lower()


def check_suffix(name: str) -> None:
    """Raise `DocumentError` for a file of a kind that is not read."""
    if suffix_of(name) not in SUFFIXES:
        raise DocumentError(f"{name} is of a kind that is not read: give {KINDS}")


def check_size(name: str, n_bytes: int) -> None:
    """Raise `DocumentError` for a file without content, or over `MAX_BYTES`."""
    if not n_bytes:
        raise DocumentError(f"{name} is empty: there is no text to search")
    if n_bytes > MAX_BYTES:
        megabytes = n_bytes / 1024**2
        raise DocumentError(
            f"{name} has {megabytes:.0f} MB, more than the {MAX_BYTES // 1024**2} MB that are read: split it"
        )
