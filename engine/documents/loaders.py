"""Read files of several formats into documents: one table of formats, one or several documents per file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath

from ..errors import DocumentError
from ..installed import bundled
from ..limited_process import Limits, Report
from ..limited_reader import LIMITS, read_limited
from ..wording import counted
from .document import Document, Failure, Loaded
from .formats.archive import is_hidden, read_members
from .formats.books import read_epub
from .formats.excel import read_xlsx
from .formats.json_lines import read_json, read_jsonl
from .formats.mail import read_mail
from .formats.markdown import read_markdown
from .formats.notebook import read_notebook
from .formats.opendocument import read_opendocument
from .formats.outline import MAX_HEADING
from .formats.pdf import read_pdf
from .formats.plain import check_characters, marked_encoding, read_plain
from .formats.rich_text import read_rtf
from .formats.slides import read_pptx
from .formats.subtitles import read_subtitles
from .formats.table import read_csv
from .formats.webpage import read_html
from .formats.word import read_docx

CODE = (
    ".py", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs",
    ".rs", ".go", ".rb", ".php", ".swift", ".r", ".jl", ".lua", ".sh", ".sql", ".css", ".toml",
    ".yaml", ".yml", ".ini", ".xml", ".tex",
)  # fmt: skip
OnPage = Callable[[str, int, int], None]  # a file, a page whose picture is recognised next, and the last page

MAX_BYTES = 20 * 1024 * 1024
LARGE_BYTES = 2_000_000  # bytes of a file that can take much memory though it is not packed: lines of JSON
MOST_LISTED = 8  # suffixes of a format, in messages
MAX_ATTACHED = 3  # e-mails that are attached to one another
MAX_DOCUMENTS = 100_000  # of one file: as many lists of a row fit in a few megabytes
INDEX_MANIFEST = "glassbox-index.json"  # a file of every index
BUNDLED_CORPUS = bundled("corpus")
BUNDLED_INDEX = BUNDLED_CORPUS.with_suffix(".glassbox")  # a workspace with its chunks and vectors by default

ParsedPart = Document | Failure | str  # a str is the name of a member that is not read


@dataclass(frozen=True)
class Format:
    """A file format: its name for people, the suffixes of its files, and its reader."""

    label: str
    suffixes: tuple[str, ...]
    # parts of a file by its name, its content and the column for CSV files
    read: Callable[[str, bytes, str | None], Iterable[ParsedPart]]
    is_packed: bool = False  # says little by its size about its text

    @property
    def short(self) -> str:
        """The first suffix, or the label where there are too many suffixes to list."""
        return self.suffixes[0] if len(self.suffixes) <= MOST_LISTED else self.label


def one(read: Callable[[str, bytes], Document]) -> Callable[[str, bytes, str | None], Iterable[ParsedPart]]:
    """Make the reader of a `Format` from a reader of single documents."""
    return lambda name, content, csv_column: (read(name, content),)


def read_zip(name: str, content: bytes, csv_column: str | None) -> Iterator[ParsedPart]:
    """Yield the parts of an archive's members; an archive within it is not opened."""
    for member in read_members(name, content):
        if isinstance(member, Failure):
            yield member
            continue
        path = f"{name}/{member[0]}"
        if format_of(path) is FORMATS["zip"]:
            yield Failure(path, f"{path} is an archive within an archive: unpack it, and add it by itself")
        else:
            yield from member_parts(path, member[1], csv_column)


def read_eml(name: str, content: bytes, csv_column: str | None) -> Iterator[ParsedPart]:
    """Yield the document of an e-mail, and the parts of the files attached to it."""
    for part in read_mail(name, content):
        if isinstance(part, Document):
            yield part
            continue
        path, attached = part
        if path.count(".eml/") > MAX_ATTACHED:
            yield Failure(path, f"{path} is attached more than {MAX_ATTACHED} deep: save it by itself")
        else:
            yield from member_parts(path, attached, csv_column)


def member_parts(path: str, content: bytes, csv_column: str | None) -> Iterator[ParsedPart]:
    """Yield all parts of a file within another, or one failure, or its name if it is not read."""
    if format_of(path) is None:
        yield path
        return
    try:
        yield from list(parts(path, content, csv_column))
    except DocumentError as error:
        yield Failure(path, str(error))


# To add a file format, add an entry: the app and the command line take names and suffixes from here.
FORMATS: dict[str, Format] = {
    "text": Format("Text", (".txt", ".text", ".rst", ".log", ".adoc", ".org", ".ics"), one(read_plain)),
    "markdown": Format("Markdown", (".md", ".markdown", ".mdx", ".qmd", ".rmd"), one(read_markdown)),
    "html": Format("HTML", (".html", ".htm", ".xhtml"), one(read_html)),
    "pdf": Format("PDF", (".pdf",), one(read_pdf), is_packed=True),
    "word": Format("Word", (".docx", ".docm", ".dotx"), one(read_docx), is_packed=True),
    "excel": Format("Excel", (".xlsx", ".xlsm", ".xltx"), one(read_xlsx), is_packed=True),
    "powerpoint": Format("PowerPoint", (".pptx", ".pptm", ".ppsx"), one(read_pptx), is_packed=True),
    "opendocument": Format("OpenDocument", (".odt", ".ods", ".odp"), one(read_opendocument), is_packed=True),
    "rtf": Format("RTF", (".rtf",), one(read_rtf)),
    "epub": Format("EPUB", (".epub",), one(read_epub), is_packed=True),
    "mail": Format("e-mails", (".eml",), read_eml, is_packed=True),
    "subtitles": Format("subtitles", (".srt", ".vtt"), one(read_subtitles)),
    "csv": Format("CSV", (".csv", ".tsv", ".tab"), read_csv),
    "jsonl": Format("JSONL", (".jsonl", ".ndjson"), lambda name, content, _: read_jsonl(name, content)),
    "json": Format("JSON", (".json", ".geojson"), one(read_json)),
    "notebook": Format("notebooks", (".ipynb",), one(read_notebook)),
    "zip": Format("ZIP archives", (".zip",), read_zip, is_packed=True),
    "code": Format("source code", CODE, one(read_plain)),
}

# What to save files of other formats as.
SAVED_AS = {
    **dict.fromkeys((".doc", ".dot", ".wpd", ".pages"), ".docx"),
    **dict.fromkeys((".xls", ".xlsb", ".numbers"), ".xlsx"),
    **dict.fromkeys((".ppt", ".pps", ".key"), ".pptx"),
    **dict.fromkeys((".mobi", ".djvu"), ".pdf"),
    **dict.fromkeys((".msg",), ".eml"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".heic"), "a PDF with its text"),
    **dict.fromkeys((".rar", ".7z", ".tar", ".gz", ".tgz"), ".zip"),
}


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all files that are read."""
    return tuple(suffix for each in FORMATS.values() for suffix in each.suffixes)


def format_of(name: str) -> Format | None:
    """Return the format of a file by its suffix, None for one that is not read."""
    suffix = PurePosixPath(name).suffix.lower()
    return next((each for each in FORMATS.values() if suffix in each.suffixes), None)


def kinds() -> str:
    """Name all formats in a message: ``".txt, .md, … or source code"``."""
    *first, last = (each.short for each in FORMATS.values())
    return f"{', '.join(first)} or {last}"


def parse_file(name: str, content: bytes, csv_column: str | None = None) -> Loaded:
    """Make documents of a file's content without ever raising: failures are returned, too.

    The suffix of the name decides how it is read. Documents of a file of several are named below it:
    ``a.csv#2``, ``a.jsonl#1``, ``a.zip/b.md``, ``a.zip/b.csv#2``. ``csv_column`` is the column of CSV files
    whose cells are the texts; without it a text is all of a row.
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
        failures.append(Failure(name, f"{name} holds no text: give a file with {kinds()} in it"))
    return Loaded(tuple(documents.values()), tuple(failures), tuple(skipped))


def parts(name: str, content: bytes, csv_column: str | None) -> Iterator[ParsedPart]:
    """Yield a file's documents and failures, and the names of members that are not read.

    `DocumentError` before all together have too many characters. Names and reasons count, too: those of an
    archive's members may be long, and stand before every row.
    """
    found = format_of(name)
    if found is None:
        raise DocumentError(not_read(name).reason)
    check_size(name, len(content))
    n_bytes = None if found.is_packed else len(content)
    n_characters = 0
    n_nulls = 0 if found.is_packed or marked_encoding(content) else content.count(b"\0")
    for part in found.read(name, content, csv_column):
        texts = (part,) if isinstance(part, str) else vars(part).values()
        n_characters += sum(len(text) for text in texts if isinstance(text, str))
        check_characters(name, n_characters, n_bytes)
        if isinstance(part, Document):
            yield with_short_headings(with_encoding_notes(part, n_nulls))
            n_nulls = 0  # said once
        else:
            yield part


def with_short_headings(document: Document) -> Document:
    """Return a document whose title and headings, which every chunk has with it, are of bounded length."""
    if max(map(len, (document.title, *chain(*(each.headings for each in document.sections))))) <= MAX_HEADING:
        return document
    sections = (
        each._replace(headings=tuple(heading[:MAX_HEADING] for heading in each.headings))
        for each in document.sections
    )
    return replace(document, title=document.title[:MAX_HEADING], sections=tuple(sections))


def with_encoding_notes(document: Document, n_nulls: int) -> Document:
    """Return a document with notes of the characters of its file that could not be decoded."""
    notes, text = list(document.notes), document.text
    if n := text.count("\ufffd"):
        line = text.count("\n", 0, text.index("\ufffd")) + 1
        where = f"in line {line}" if n == 1 else f"from line {line} on"
        notes.append(f"{counted(n, 'character')} could not be read ({where}), shown as \ufffd")
    if n_nulls:
        notes.append(f"{counted(n_nulls, 'NUL character')} left out")
    return replace(document, notes=tuple(dict.fromkeys(notes))) if notes else document


def not_read(name: str) -> Failure:
    """Return why a file of another format is not read, and what to do."""
    other = SAVED_AS.get(PurePosixPath(name).suffix.lower())
    return Failure(
        name, f"{name} is of a kind that is not read: {f'save it as {other}' if other else f'give {kinds()}'}"
    )


def left_out(loaded: Loaded) -> tuple[Failure, ...]:
    """Return all that was not read, files of other formats included, with the reasons."""
    return (*loaded.failures, *map(not_read, loaded.skipped))


def load_corpus(path: Path = BUNDLED_CORPUS) -> list[Document]:
    """Read one file, or every file below a folder, in the order of their names; raise the first failure."""
    return unique(all_documents(read_corpus(path)))


def all_documents(loaded: Loaded) -> tuple[Document, ...]:
    """Return the documents that were read; raise the first failure as a `DocumentError`."""
    if loaded.failures:
        raise DocumentError(loaded.failures[0].reason)
    return loaded.documents


def read_corpus(path: Path, on_page: OnPage = lambda *_: None) -> Loaded:
    """Read as `load_corpus` does, but for hidden files; return failures and ``skipped`` formats, too."""
    files, others = corpus_files(path)
    loaded = [read_file(file, name, on_page) for name, file in files.items()]
    return Loaded(
        tuple(document for one in loaded for document in one.documents),
        tuple(failure for one in loaded for failure in one.failures),
        (*others, *(name for one in loaded for name in one.skipped)),
    )


def corpus_files(path: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the files of a corpus by their names, in order, and the names of those of other formats.

    The errors are those of `read_corpus`; a single file is returned whatever its format.
    """
    check_address(path)
    if not path.exists():
        raise DocumentError(f"{path} does not exist: give a file ({kinds()}) or a folder of them")
    if path.is_file():
        return {path.name: path}, []
    if (path / INDEX_MANIFEST).is_file():
        raise DocumentError(f"{path} is an index: open it by --index, or by Index.load in Python")
    below = sorted(file for file in path.rglob("*") if file.is_file())
    names = {file.relative_to(path).as_posix(): file for file in below}
    names = {name: file for name, file in names.items() if not is_hidden(name)}
    files = {name: file for name, file in names.items() if format_of(name)}
    if not files:
        raise DocumentError(f"{path} holds no file that is read: give a folder with {kinds()}")
    return files, [name for name in names if name not in files]


def check_address(path: Path) -> None:
    """Raise `DocumentError` for an address in place of a path."""
    if address := re.fullmatch(r"(\w{2,}):/+(.+)", str(path)):  # a path has one slash of the two
        raise DocumentError(
            f"{address[1]}://{address[2]} is an address, and nothing is fetched: save the page, and "
            "give the file"
        )


def read_file(path: Path, name: str, on_page: OnPage = lambda *_: None) -> Loaded:
    """Return the documents of a file under a name; one that cannot be read is a failure."""
    try:
        return parse_apart(name, content_of(path), on_page)
    except DocumentError as error:
        return Loaded((), (Failure(name, str(error)),))


def parse_apart(name: str, content: bytes, on_page: OnPage = lambda *_: None) -> Loaded:
    """Make documents as `parse_file` does, of a packed or large file in a child process."""
    found = format_of(name)
    if (found is not None and found.is_packed) or len(content) > LARGE_BYTES:
        return parse_limited(name, content, on_page=partial(on_page, name))
    return parse_file(name, content)


def parse_limited(
    name: str,
    content: bytes,
    csv_column: str | None = None,
    limits: Limits = LIMITS,
    on_page: Report = lambda *_: None,
) -> Loaded:
    """Make documents as `parse_file` does, in a child process; a file that exceeds limits is a failure.

    ``on_page`` is called before a page's picture is recognised.
    """
    try:
        return read_limited(parse_file, name, content, csv_column, limits=limits, on_page=on_page)
    except DocumentError as error:
        return Loaded((), (Failure(name, str(error)),))


def parse_together(
    files: Sequence[tuple[str, bytes]], csv_column: str | None = None, limits: Limits = LIMITS
) -> list[Loaded]:
    """Make documents of small files in one child process: starting one takes longer than reading a file.

    Where all together exceed the limits, each is read by itself.
    """
    sizes, contents = [len(content) for _, content in files], b"".join(content for _, content in files)
    names = [name for name, _ in files]
    try:
        return read_limited(parse_joined, "files", contents, names, sizes, csv_column, limits=limits)
    except DocumentError:
        return [parse_limited(name, content, csv_column, limits) for name, content in files]


def parse_joined(
    _: str, contents: bytes, names: Sequence[str], sizes: Sequence[int], csv_column: str | None
) -> list[Loaded]:
    """Make documents of files whose contents stand one after another."""
    stream = BytesIO(contents)
    return [parse_file(name, stream.read(size), csv_column) for name, size in zip(names, sizes, strict=True)]


def content_of(path: Path) -> bytes:
    """Return a file's bytes; raise without reading for one over `MAX_BYTES`."""
    try:
        check_size(path.name, path.stat().st_size)
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character
        raise DocumentError(f"{path} cannot be read: {error}") from error


def unique(documents: Iterable[Document]) -> list[Document]:
    """Return the documents; raise where two have the same name, since a source must identify one text."""
    by_name: dict[str, Document] = {}
    for document in documents:
        if document.name in by_name:
            raise DocumentError(f"there are two documents named {document.name}: rename one of them")
        by_name[document.name] = document
    return list(by_name.values())


def check_size(name: str, n_bytes: int) -> None:
    """Raise `DocumentError` for a file without content, or over `MAX_BYTES`."""
    if not n_bytes:
        raise DocumentError(f"{name} is empty: there is no text to search")
    if n_bytes > MAX_BYTES:
        megabytes = n_bytes / 1024**2
        raise DocumentError(
            f"{name} has {megabytes:.0f} MB, more than the {MAX_BYTES // 1024**2} MB that are read: split it"
        )
