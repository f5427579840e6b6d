"""An index in a folder: documents, chunks, vectors, and how they were made; the vectors may be in Milvus.

The file `MANIFEST` names the files of one state with their SHA-256. A new state is written beside the old one
under other names, and counts once the manifest is replaced; then the old files are removed. So a crash at any
time leaves the last whole state, and a reader finds one or the other.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from engine.atomic_write import atomic_file, write_atomically
from engine.documents.document import Document
from engine.documents.splitters import Splitting
from engine.errors import UNREADABLE, DocumentError, GlassboxError, InputError
from engine.layers.tracing import Array
from engine.retrieval.bm25 import Postings
from engine.retrieval.embedding_model import Model, embedding_spec
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.index import Index
from engine.retrieval.index_choice import Choice
from engine.retrieval.index_kinds import AnnIndex
from engine.retrieval.stored.index_rows import IndexedFile, file_row, to_file
from engine.retrieval.stored.milvus_store import MilvusVectors, new_collection
from engine.weights.download import file_sha256
from engine.wording import reason_of

FORMAT, VERSION = "glassbox index", 2
MANIFEST, LOCK = "glassbox-index.json", ".lock"
SHARDS = ".shards"  # a folder in it, of what a cluster embeds for the next state
PART = r"(files|words|vectors|idf|unrelated|ann|starts|rows|impacts|store)-[0-9a-f]{8}\.(jsonl|npy|json)"
LINES = ("files", "words")  # the parts of a line for each file, and for each word
# Also what a crash left of `atomic_file`; files of no state are removed.
OWN_FILES = re.compile(rf"{PART}|{MANIFEST}|\.({PART}|{MANIFEST})\.\w+|\{LOCK}|\{SHARDS}")
LOCK_S = 0.1
READS = 3  # of a folder that another program writes meanwhile
AGAIN = "index the corpus again with --rebuild"


@dataclass(frozen=True)
class IndexSettings:
    """How documents are cut and embedded: the values of the options of these names.

    ``model`` is what `--model` takes, ``precision`` one of `PRECISIONS`, and ``max_tokens`` None for the
    model's own limit.
    """

    model: str
    splitting: Splitting
    parent_tokens: int = 0
    pooling: str = "own"
    prompts: str = "own"
    precision: str = "float32"
    max_tokens: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The values by the names of the options, without dashes."""
        values = {name: value for name, value in asdict(self).items() if name != "splitting"}
        return values | dict(
            zip(("splitter", "chunk_tokens", "overlap"), astuple(self.splitting), strict=True)
        )


SETTINGS, CHOICE = TypeAdapter(IndexSettings), TypeAdapter(Choice)


@dataclass(frozen=True)
class StoredIndex:
    """The content of a folder.

    Attributes
    ----------
    settings, corpus
        How and of which path it was made.
    files
        The files of the corpus, in order; their chunks one after the other are those of the index.
    index
        The vectors, which are mapped from the disk when read.
    unrelated
        Vectors of unrelated questions for `null_scores_by`, so that a search embeds its question alone.
    choice
        The kind of the index and how it was chosen.
    read_ns
        When reading the files began, in nanoseconds since 1970.
    store
        Address or file of the Milvus that holds the vectors, empty where the folder does.
    """

    settings: IndexSettings
    corpus: str
    files: tuple[IndexedFile, ...] = field(repr=False)
    index: Index
    unrelated: Array = field(repr=False)
    choice: Choice
    read_ns: int
    store: str = ""

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of all files."""
        return tuple(document for file in self.files for document in file.documents)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out of a folder, which is made if there is none, and removed if it stays empty.

    Raises
    ------
    DocumentError
        Another program is writing to it, it cannot be written to, or it holds other files and no index.
    """
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]  # documented there

    with ExitStack() as stack:
        with folder_errors(folder):
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            check_ours(folder)
            try:
                stack.enter_context(WeakFileLock(folder / LOCK, timeout=LOCK_S))
            except TimeoutError as error:
                raise DocumentError(
                    f"{folder} is being written by another program: wait until it is done, or give another "
                    "folder"
                ) from error
        if is_new:
            stack.callback(remove_empty, folder)  # while it is still locked
        yield


def remove_empty(folder: Path) -> None:
    """Remove a folder that holds nothing but the file of the lock."""
    with suppress(OSError):  # of a system that removes no file in use
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()


def check_ours(folder: Path) -> None:
    """Raise `DocumentError` for a folder that holds other files and no index."""
    others = sorted(path.name for path in folder.iterdir() if not OWN_FILES.fullmatch(path.name))
    if others and not (folder / MANIFEST).exists():
        raise DocumentError(f"{folder} holds {others[0]} and no index: give a new folder, or an empty one")


def save_index(folder: Path, stored: StoredIndex) -> None:
    """Write an index to a folder that is `locked`, in place of the one in it.

    Raises
    ------
    DocumentError
        It cannot be written, as on a full disk; the folder holds the state from before.
    """
    index, token, postings = stored.index, secrets.token_hex(4), stored.index.words.postings
    arrays = {"unrelated": stored.unrelated}
    if not stored.store:
        arrays["vectors"] = index.vectors
    arrays |= {"starts": postings.starts, "rows": postings.rows, "impacts": postings.impacts}
    if index.idf is not None:
        arrays["idf"] = index.idf
    if index.ann is not None:
        arrays["ann"] = index.ann.to_bytes()
    names = {name: f"{name}-{token}.npy" for name in arrays}
    names |= {name: f"{name}-{token}.jsonl" for name in LINES}
    if stored.store:
        names["store"] = f"store-{token}.json"
    with folder_errors(folder):
        try:
            for name, array in arrays.items():
                with atomic_file(folder / names[name]) as file:
                    np.save(file, array.astype(array.dtype.newbyteorder("<"), copy=False))
            with atomic_file(folder / names["files"]) as file:
                file.writelines(line_of(file_row(each)) for each in stored.files)
            with atomic_file(folder / names["words"]) as file:
                file.writelines(map(line_of, postings.vocabulary.items()))
            if stored.store:
                milvus = new_collection(stored.store, index.vectors)
                # Its name is kept before it is there, so that the next writer removes what a crash left.
                write_atomically(folder / names["store"], line_of(asdict(milvus)))
                milvus.write(index.vectors)
            content = {
                "format": FORMAT,
                "version": VERSION,
                "settings": asdict(stored.settings),
                "spec": asdict(index.spec),
                "choice": asdict(stored.choice),
                "effort": 0 if index.ann is None else index.ann.effort,
                "corpus": stored.corpus,
                "read_ns": stored.read_ns,
                "parts": {name: [file, file_sha256(folder / file)] for name, file in names.items()},
            }
            write_atomically(folder / MANIFEST, line_of({**content, "sha256": digest_of(content)}))
        finally:  # of the old state, or of a new one that was not completed
            remove_unused(folder)


def remove_unused(folder: Path) -> None:
    """Remove our files that the manifest does not name, and the collections that these name."""
    try:
        used = {name for name, _ in json.loads((folder / MANIFEST).read_bytes())["parts"].values()}
    except (OSError, LookupError, TypeError, ValueError, AttributeError):
        used = set()
    for path in folder.iterdir():
        if OWN_FILES.fullmatch(path.name) and path.name not in (*used, MANIFEST, LOCK, SHARDS):
            with suppress(OSError, GlassboxError):  # the next writer tries again
                if path.name.startswith("store-"):
                    drop_collection(path)
                path.unlink()


def drop_collection(path: Path) -> None:
    """Remove the collection of Milvus that a file of a folder names."""
    with suppress(ValueError, TypeError, LookupError):  # of a file that is no such one
        MilvusVectors(**json.loads(path.read_bytes())).drop()


def open_index(folder: Path) -> StoredIndex:
    """Read the index of a folder; what another program writes meanwhile is seen whole or not at all.

    Raises
    ------
    DocumentError
        There is none, or it is damaged, or of another version.
    """
    if not (folder / MANIFEST).is_file():
        raise DocumentError(
            f"{folder} holds no index: write one with python -m engine index CORPUS --out {folder}"
        )
    with folder_errors(folder):
        for _ in range(READS):
            manifest = read_manifest(folder)
            try:
                return read_parts(folder, manifest)
            except FileNotFoundError as error:
                missing = Path(error.filename).name
        raise ValueError(f"its file {missing} is missing")


def as_indexed(stored: StoredIndex, model: Model, folder: Path) -> Model:
    """Return a model as an index was made; raise `InputError` if its vectors are not of that model."""
    model = stored.index.encoder(model)
    spec = embedding_spec(model, stored.settings.pooling, stored.settings.max_tokens)
    if spec != stored.index.spec:
        raise InputError(
            f"the index in {folder} holds vectors of {stored.index.spec}, and this model's are of {spec}: "
            f"give the model that made them, or {AGAIN}"
        )
    return model


def store_of(folder: Path) -> str:
    """Return where the vectors of a folder's index are, empty for the folder and where that is not known."""
    try:
        name, _ = read_manifest(folder)["parts"]["store"]
        return str(json.loads((folder / name).read_bytes())["uri"])
    except (GlassboxError, OSError, LookupError, TypeError, ValueError, AttributeError):
        return ""


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest; errors as in `open_index`, of other kinds where it is damaged."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if manifest["format"] != FORMAT:
        raise ValueError("its manifest is of another program")
    if (version := manifest["version"]) != VERSION:
        by, remedy = ("an older", AGAIN) if version < VERSION else ("a newer", "update Glassbox")
        raise DocumentError(
            f"the index in {folder} was written by {by} version (format {version}, this one reads "
            f"{VERSION}): {remedy}"
        )
    if manifest.pop("sha256") != digest_of(manifest):
        raise ValueError("its manifest was changed")
    return manifest


def read_parts(folder: Path, manifest: Mapping[str, Any]) -> StoredIndex:
    """Read the files that a manifest names."""
    parts = {}
    for part, (name, digest) in manifest["parts"].items():
        if not re.fullmatch(PART, name):
            raise ValueError(f"its manifest names a file {name!r:.80}")
        if file_sha256(folder / name) != digest:
            raise ValueError(f"its file {name} was changed")
        parts[part] = folder / name
    arrays = {part: np.load(path, mmap_mode="r") for part, path in parts.items() if path.suffix == ".npy"}
    with parts["files"].open("rb") as lines:
        files = tuple(to_file(json.loads(line)) for line in lines)
    with parts["words"].open("rb") as lines:
        vocabulary = dict(map(json.loads, lines))
    settings, spec = SETTINGS.validate_python(manifest["settings"]), EmbeddingSpec(**manifest["spec"])
    chunks = list(chain.from_iterable(file.chunks for file in files))
    source: Array | MilvusVectors
    if "store" in parts:
        source = MilvusVectors(**json.loads(parts["store"].read_bytes()))
        source.check()
    else:
        source = arrays["vectors"]
    if source.shape != (len(chunks), spec.d_model):
        raise ValueError(f"it has {len(chunks)} chunks, and vectors of shape {source.shape}")
    postings = Postings(vocabulary, arrays["starts"], arrays["rows"], arrays["impacts"], len(chunks))
    documents = {document.name: document for file in files for document in file.documents}
    index = Index(tuple(chunks), source, spec, arrays.get("idf"), postings=postings, documents=documents)
    choice = CHOICE.validate_python(manifest["choice"])
    if "ann" in arrays:
        # To build it anew at each start would take longer than to search exactly, so FAISS's own bytes are
        # kept. They are those that we wrote, by the SHA-256, in a folder of this machine: the app takes no
        # uploaded ones.
        ann = AnnIndex.from_bytes(choice.kind, manifest["effort"], arrays["ann"], source.shape)
        index = replace(index, ann=ann)
    return StoredIndex(
        settings,
        manifest["corpus"],
        files,
        index,
        arrays["unrelated"],
        choice,
        manifest["read_ns"],
        source.uri if isinstance(source, MilvusVectors) else "",
    )


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object, whatever the order of its keys."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def line_of(content: object) -> bytes:
    """Return a JSON value as a line; raises for half of a surrogate pair."""
    return f"{json.dumps(content, ensure_ascii=False, allow_nan=False)}\n".encode()


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Turn errors with the files of a folder into a `DocumentError` that says what to do."""
    try:
        yield
    except (DocumentError, InputError):
        raise
    except OSError as error:
        raise DocumentError(
            f"{folder} cannot be read or written ({error.strerror or error}); an index that was whole before "
            "still is: make room on the disk, or give another folder"
        ) from error
    except UnicodeEncodeError as error:
        raise InputError("a document holds half of a surrogate pair: remove it") from error
    except UNREADABLE as error:
        raise DocumentError(f"the index in {folder} is damaged ({reason_of(error)}): {AGAIN}") from error
