"""An index in a folder: documents, chunks, vectors, and how they were made; the vectors may be in Milvus.

Each state of the index is a folder in it, which the file `MANIFEST` names with the SHA-256 of its files. A
new state is written next to the old one and counts once the manifest is replaced; then the old one is
removed. So a crash at any time leaves the last whole state, and a reader finds one or the other.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from pydantic import TypeAdapter

from ...atomic_write import sync_folder, write_atomically
from ...documents.document import Chunk, Document, Failure
from ...documents.language import ENGLISH, LANGUAGES
from ...documents.loaders import INDEX_MANIFEST, unique
from ...documents.splitters import Splitting
from ...errors import UNREADABLE, DocumentError, GlassboxError, InputError
from ...installed import PROGRAM
from ...layers.tracing import Array
from ...weights.download import file_sha256
from ...weights.fetch import Progress
from ...weights.memory import available_memory
from ...wording import reason_of
from ..bm25 import Postings
from ..embedding_model import Model, cut_documents, embedding_spec
from ..embedding_spec import EmbeddingSpec
from ..index import Index
from ..index_choice import Choice
from ..index_kinds import AUTO, INDEX_KINDS, AnnIndex
from ..sparse_index import SparseIndex
from .checked_files import IN_MEMORY, check_arrays, check_postings, ordinary, read_array, require
from .index_rows import IndexedFile, StoredDocuments, line_of, stored_rows, to_file, write_lines
from .milvus_store import IN_FOLDER, MilvusVectors, milvus_uri, new_collection

FORMAT, VERSION = "glassbox index", 3
MANIFEST, LOCK = INDEX_MANIFEST, ".lock"
# What is embedded for the next state, by a cluster or by this process; a run that goes on finds it there.
SHARDS, CACHE = ".shards", ".vectors"
STATE = r"state-[0-9a-f]{8}"
# Files of versions 1 and 2.
FORMER = r"(files|words|vectors|idf|unrelated|ann|starts|rows|impacts|store)-[0-9a-f]{8}\.(jsonl|npy|json)"
OURS = re.compile(rf"{STATE}|{FORMER}|\.?{MANIFEST}(\.\w+)?|\{LOCK}|\{SHARDS}|\{CACHE}(-wal|-shm)?")
FILES, WORDS, STORE = "files.jsonl", "words.jsonl", "store.json"
READ_WHOLE = 10_000_000  # bytes of lines that are read at once: some 50,000 chunks, in half a second
MOST_FAILURES = 1000  # of a corpus that are kept
LOCK_S = 0.1
READS = 3  # of a folder that another program writes meanwhile
AGAIN = "index the corpus again with --rebuild"


@dataclass(frozen=True)
class IndexSettings:
    """How documents are cut and embedded, and their vectors searched: the values of options."""

    model: str  # what `--model` takes
    splitting: Splitting
    parent_tokens: int = 0
    pooling: str = "own"
    prompts: str = "own"
    precision: str = "float32"  # one of `PRECISIONS`
    max_tokens: int | None = None  # None for the model's own limit
    index_kind: str = AUTO
    # where vectors are: `IN_FOLDER`, "milvus:URI", or None for where they are already, first the folder
    store: str | None = None
    sparse: str = ""  # the learned sparse model whose inverted index is kept too, if any

    @property
    def options(self) -> dict[str, Any]:
        """The values that a folder keeps, by the names of the options, without dashes."""
        own = {name: value for name, value in asdict(self).items() if name not in SEARCHED_BY}
        del own["splitting"]
        return own | dict(
            zip(("splitter", "chunk_tokens", "overlap", "context"), astuple(self.splitting), strict=True)
        )

    @property
    def uri(self) -> str:
        """Address or file of the Milvus that holds the vectors, empty where the folder does."""
        return "" if self.store in (None, IN_FOLDER) else milvus_uri(self.store)


SEARCHED_BY = ("index_kind", "store", "sparse")  # which may change while the vectors stay
SETTINGS, CHOICE, SPEC = TypeAdapter(IndexSettings), TypeAdapter(Choice), TypeAdapter(EmbeddingSpec)
VOCABULARY, IN_MILVUS = TypeAdapter(dict[str, int]), TypeAdapter(MilvusVectors)
FAILURES = TypeAdapter(tuple[Failure, ...])


@dataclass(frozen=True)
class Build:
    """What cuts and embeds files for an index."""

    folder: Path
    model: Model
    settings: IndexSettings
    on_progress: Progress | None = None  # called with what is done and all there is
    say: Callable[[str], None] = lambda line: None  # called with a line before what takes long

    @property
    def spec(self) -> EmbeddingSpec:
        """How the vectors are made."""
        return embedding_spec(self.model, self.settings.pooling, self.settings.max_tokens)

    def cut(self, documents: Sequence[Document]) -> tuple[Chunk, ...]:
        """Cut documents; return the chunks of all."""
        pieces = cut_documents(documents, self.model, self.settings.splitting, self.settings.parent_tokens)
        return tuple(chain.from_iterable(pieces))


@dataclass(frozen=True)
class StoredIndex:
    """The content of a folder.

    The chunks of its files one after the other are those of the index. Where they are large, vectors are
    mapped from the disk, and files, documents and chunks are read from it when they are asked for.
    ``unrelated`` are the vectors of unrelated questions for `null_scores_by`, so that a search embeds nothing
    but its question. ``noted`` are the documents with notes, ``failures`` what of the corpus was not read.
    """

    settings: IndexSettings
    corpus: str  # the path that it was made of
    files: Sequence[IndexedFile] = field(repr=False)
    index: Index
    unrelated: Array = field(repr=False)
    choice: Choice  # the kind of the index
    noted: tuple[Document, ...] = field(default=(), repr=False)
    failures: tuple[Failure, ...] = field(default=(), repr=False)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of all files."""
        return tuple(self.index.documents.values())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out of a folder, which is made if there is none, and removed if it stays empty."""
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]  # documented there

    with ExitStack() as stack:
        with folder_errors(folder):
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            others = sorted(path.name for path in folder.iterdir() if not OURS.fullmatch(path.name))
            if others and not (folder / MANIFEST).exists():
                raise DocumentError(
                    f"{folder} holds {others[0]} and no index: give a new folder, or an empty one"
                )
            try:
                stack.enter_context(WeakFileLock(folder / LOCK, timeout=LOCK_S))
            except TimeoutError as error:
                raise DocumentError(
                    f"{folder} is being written by another program: wait until it is done, or give another "
                    "folder"
                ) from error
        try:
            yield
        finally:  # while it is still locked
            with suppress(OSError):  # of a system that removes no file in use
                if is_new and [path.name for path in folder.iterdir()] == [LOCK]:
                    shutil.rmtree(folder)


def save_index(folder: Path, stored: StoredIndex) -> None:
    """Write an index to a folder that is `locked`, in place of the one in it."""
    index, postings, uri = stored.index, stored.index.words.postings, stored.settings.uri
    arrays = {"unrelated": stored.unrelated, "starts": postings.starts, "rows": postings.rows}
    arrays["impacts"] = postings.impacts
    if (expanded := index.expanded) is not None:
        weights = expanded.weights
        arrays |= {"sparse_starts": weights.indptr, "sparse_rows": weights.indices, "sparse": weights.data}
    if not uri:
        arrays["vectors"] = index.vectors
    if index.idf is not None:
        arrays["idf"] = index.idf
    if index.ann is not None:
        arrays["ann"] = index.ann.to_bytes()
    state = folder / f"state-{secrets.token_hex(4)}"
    with folder_errors(folder):
        try:
            state.mkdir()
            with synced_file(state / FILES) as file:
                arrays |= write_lines(file, stored.files)
            for name, array in arrays.items():
                with synced_file(state / f"{name}.npy") as file:
                    np.save(file, array.astype(array.dtype.newbyteorder("<"), copy=False))
            with synced_file(state / WORDS) as file:
                file.writelines(map(line_of, postings.vocabulary.items()))
            if uri:
                milvus = new_collection(uri, index.vectors)
                with synced_file(state / STORE) as file:  # first, so that a crash leaves the name to remove
                    file.write(line_of(asdict(milvus)))
                milvus.write(index.vectors)
            sync_folder(state)
            content = {
                "format": FORMAT,
                "version": VERSION,
                "settings": asdict(stored.settings),
                "spec": asdict(index.spec),
                "choice": asdict(stored.choice),
                "effort": 0 if index.ann is None else index.ann.effort,
                "corpus": stored.corpus,
                "failures": [asdict(each) for each in stored.failures[:MOST_FAILURES]],
                "languages": postings.languages,
                "sparse": None if expanded is None else [expanded.fingerprint, expanded.weights.shape[1]],
                "state": state.name,
                "files": {path.name: file_sha256(path) for path in sorted(state.iterdir())},
            }
            write_atomically(folder / MANIFEST, line_of({**content, "sha256": digest_of(content)}))
        finally:  # the old state, or a new one that was not completed
            remove_unused(folder)


@contextmanager
def synced_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that is on the disk at the end of the block."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def remove_unused(folder: Path) -> None:
    """Remove the states that the manifest does not name, and their collections of Milvus."""
    try:
        used = manifest_of(folder)["state"]
    except (OSError, *UNREADABLE):
        used = ""
    for path in folder.iterdir():
        with suppress(OSError, GlassboxError, *UNREADABLE):  # the next writer tries again
            is_state = re.fullmatch(STATE, path.name) is not None
            if path.name == used or not (is_state or re.fullmatch(FORMER, path.name)):
                continue
            store = path / STORE if is_state else path
            if store.name.startswith("store") and store.exists():
                MilvusVectors(**json.loads(ordinary(store).read_bytes())).drop()
            if is_state:
                shutil.rmtree(path)
            else:
                path.unlink()


def open_index(folder: Path) -> StoredIndex:
    """Read the index of a folder; what another program writes meanwhile is seen whole or not at all.

    Raises `DocumentError` where there is none, or it is damaged, or of another version.
    """
    if not (folder / MANIFEST).is_file():
        raise DocumentError(f"{folder} holds no index: write one with {PROGRAM} index CORPUS --out {folder}")
    with folder_errors(folder):
        for _ in range(READS):
            manifest = read_manifest(folder)
            try:
                return read_state(folder, manifest)
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


def kept_settings(folder: Path) -> IndexSettings | None:
    """Return the settings of a folder's index, None where there is none that can be read."""
    try:
        return SETTINGS.validate_python(read_manifest(folder)["settings"])
    except (OSError, GlassboxError, *UNREADABLE):
        return None


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the JSON of a folder's manifest, unchecked."""
    return json.loads(ordinary(folder / MANIFEST).read_bytes())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest; errors as in `open_index`, of other kinds where it is damaged."""
    manifest = manifest_of(folder)
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


def read_state(folder: Path, manifest: Mapping[str, Any]) -> StoredIndex:
    """Read the state that a manifest names."""
    if not re.fullmatch(STATE, manifest["state"]):
        raise ValueError(f"its manifest names a state {manifest['state']!r:.80}")
    state, arrays = folder / manifest["state"], {}
    for name, digest in manifest["files"].items():
        path = state / Path(name).name
        if path.suffix == ".npy":
            arrays[path.stem] = read_array(path)
        else:
            ordinary(path, available_memory())
        # Large ones are not read to be opened: what is taken of them is checked then.
        if path.stat().st_size <= IN_MEMORY and file_sha256(path) != digest:
            raise ValueError(f"its file {path.name:.80} was changed")
    settings = SETTINGS.validate_python(manifest["settings"])
    choice = CHOICE.validate_python(manifest["choice"])
    spec = SPEC.validate_python(manifest["spec"])
    require(choice.kind in INDEX_KINDS, f"it is searched by an unknown kind of index, {choice.kind:.80}")
    files, chunks, documents = corpus_of(state / FILES, arrays)
    with (state / WORDS).open("rb") as lines:
        vocabulary = VOCABULARY.validate_python(dict(map(json.loads, lines)))
    source: Array | MilvusVectors
    if settings.uri:
        source = IN_MILVUS.validate_python(json.loads((state / STORE).read_bytes()))
        source.check()
    else:
        source = arrays["vectors"]
    require(
        source.shape == (len(chunks), spec.d_model) and bool(chunks),
        f"it has {len(chunks)} chunks, and vectors of shape {source.shape}",
    )
    check_arrays(arrays, len(chunks), spec.d_model, vocabulary)
    index = Index(chunks, source, spec, arrays.get("idf"), documents=documents)
    languages = manifest.get("languages", [ENGLISH])
    require(set(languages) <= LANGUAGES.keys(), f"it is in a language that is not known: {languages!r:.80}")
    # Where none are stated, words of all languages were read as English: those of others are indexed anew.
    if "languages" in manifest or {*index.languages.values()} <= {ENGLISH}:
        starts, rows, impacts = (arrays[name] for name in ("starts", "rows", "impacts"))
        postings = Postings(vocabulary, starts, rows, impacts, len(chunks), tuple(languages))
        index = replace(index, postings=postings)
    if manifest.get("sparse"):
        fingerprint, n_words = manifest["sparse"]
        parts = (arrays["sparse"], arrays["sparse_rows"], arrays["sparse_starts"])
        check_postings(*parts[::-1], len(chunks), n_words)
        from scipy.sparse import csc_matrix  # slow to import

        index = replace(index, expanded=SparseIndex(csc_matrix(parts, (len(chunks), n_words)), fingerprint))
    if "ann" in arrays:
        # To build it anew at each start would take longer than to search exactly, so FAISS's own bytes are
        # kept. They are those that we wrote, by the SHA-256, in a folder of this machine: the app takes no
        # uploaded ones.
        ann = AnnIndex.from_bytes(choice.kind, manifest["effort"], arrays["ann"], source.shape)
        index = replace(index, ann=ann)
    if isinstance(documents, StoredDocuments):
        noted = tuple(documents.documents[row] for row in arrays["noted"].tolist())
    else:
        noted = tuple(document for document in documents.values() if document.notes)
    failures = FAILURES.validate_python(manifest.get("failures", ()))
    unrelated = arrays["unrelated"]
    return StoredIndex(settings, manifest["corpus"], files, index, unrelated, choice, noted, failures)


def corpus_of(
    path: Path, arrays: Mapping[str, Array]
) -> tuple[Sequence[IndexedFile], Sequence[Chunk], Mapping[str, Document]]:
    """Read the files, chunks and documents of an index; map them where they are large."""
    if path.stat().st_size > READ_WHOLE and "chunk_places" in arrays:  # earlier indexes do not have these
        return stored_rows(path, arrays)
    with path.open("rb") as lines:
        files = tuple(map(to_file, map(json.loads, lines)))
    chunks = tuple(chain.from_iterable(file.chunks for file in files))
    documents = unique(each for file in files for each in file.documents)
    return files, chunks, {each.name: each for each in documents}


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object, whatever the order of its keys."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
