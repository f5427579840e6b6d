"""Bring the index in a folder up to a corpus: only new and changed files are read and embedded."""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from engine.documents.document import Failure, Loaded
from engine.documents.formats.archive import is_hidden
from engine.documents.loaders import content_of, corpus_files, parse_file, unique
from engine.errors import DocumentError, InputError
from engine.layers.tracing import Array
from engine.retrieval.cutting import cut_documents
from engine.retrieval.embedding_model import Model, embedding_spec
from engine.retrieval.index import Index, embed_chunks, index_vectors
from engine.retrieval.index_choice import Choice, choose_index
from engine.retrieval.index_kinds import AUTO, FLAT, check_index_kind
from engine.retrieval.relevance import embed_unrelated
from engine.retrieval.stored.index_folder import (
    MANIFEST,
    SHARDS,
    IndexSettings,
    StoredIndex,
    as_indexed,
    folder_errors,
    locked,
    open_index,
    save_index,
    store_of,
)
from engine.retrieval.stored.index_rows import IndexedFile
from engine.retrieval.stored.milvus_store import IN_FOLDER, check_reachable, is_file, milvus_uri, release
from engine.retrieval.stored.ray_shards import Cluster, Place, embed_on_cluster, shard_vectors
from engine.retrieval.vector_cache import VectorCache
from engine.weights.fetch import Progress
from engine.wording import counted

# A file written this shortly before it was read may have been written again within one tick of the clock of
# its file system, with the same size and time.
TICK_NS = 2_000_000_000


@dataclass(frozen=True)
class Update:
    """The index of a folder after an update, how many files changed of those in it, and what was not read.

    Of a file that did not change since it was read in part, the ``failures`` are not repeated.
    """

    stored: StoredIndex
    new: int
    changed: int
    deleted: int
    unchanged: int
    embedded_chunks: int
    failures: tuple[Failure, ...] = ()

    @property
    def words(self) -> str:
        """``2 new, 1 changed, 0 deleted, 14 unchanged``."""
        counts = {name: getattr(self, name) for name in ("new", "changed", "deleted", "unchanged")}
        return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def update_index(
    corpus: Path,
    folder: Path,
    model: Model,
    settings: IndexSettings,
    kind: str = AUTO,
    rebuild: bool = False,
    cache: VectorCache | None = None,
    on_progress: Progress | None = None,
    say: Callable[[str], None] = lambda line: None,
    store: str | None = None,
    cluster: Cluster | None = None,
) -> Update:
    """Index a corpus in a folder: add new files, replace changed ones, and remove deleted ones.

    Files that hold no text that can be read are left out, and returned as failures. With a ``cluster``, only
    empty and too large ones are; others end the run.

    Files with the size and time of before are not read, those with the same content not embedded. With the
    pooling ``"idf"``, whose weights depend on all chunks, every chunk is embedded again once one differs.

    Parameters
    ----------
    corpus
        A file or a folder, as for `load_corpus`.
    folder
        The folder of the index, made if there is none; outside of the corpus.
    model, settings
        The model that ``settings.model`` names, with its prompts and precision, and how to cut and embed.
    kind
        The kind of index, as in `choose_index`.
    rebuild
        Whether to read and embed everything anew, whatever is in the folder.
    cache, on_progress
        As in `build_index`.
    say
        Called with a line before each step that takes long.
    store
        Where the vectors are kept: `IN_FOLDER`, or ``"milvus:URI"``; None for where they are, which is the
        folder at first.
    cluster
        What reads and embeds new and changed files in place of this process; ``cache`` is not used then, and
        ``on_progress`` called with files done and files in all.

    Raises
    ------
    DocumentError
        No file can be read, or an indexed one no longer by a fault of the disk; a file changes while it is
        read; the folder is written by another program, is damaged, or cannot be written, or Milvus cannot be
        reached. It holds the index from before.
    InputError
        The folder's index was made with other settings, or the corpus holds no text.
    """
    check_index_kind(kind)
    paths, _ = corpus_files(corpus)
    check_outside(corpus, folder)
    uri = "" if store in (None, IN_FOLDER) else milvus_uri(store)
    with ExitStack() as stack:
        stack.enter_context(locked(folder))
        uri = store_of(folder) if store is None else uri
        old = None
        if not rebuild and (folder / MANIFEST).exists():
            old = open_index(folder)
            stack.callback(release, old.store)
            check_settings(old, settings, folder)
            as_indexed(old, model, folder)
        if uri:
            check_milvus(uri, corpus, kind)
            stack.callback(release, uri)
        say(f"Reading {corpus}")
        read_ns = time.time_ns()
        if cluster is None:
            files, failures = read_files(paths, old, model, settings, say)
        else:
            files, failures, places, n_embedded = read_by_cluster(
                paths, old, model, settings, folder, cluster, on_progress, say
            )
        if not any(file.chunks for file in files):
            raise InputError("there are no chunks to index: give documents with text")
        new, changed, deleted = differences(old, files)
        same = None if new or changed or deleted else old
        if same is not None:
            index, unrelated, n_embedded = same.index, same.unrelated, 0
        elif cluster is None:
            index, n_embedded = index_files(files, old, model, settings, cache, on_progress, say)
            unrelated = embed_unrelated(index, model)
        else:
            index = join_shards(files, old, places, model, settings, folder)
            unrelated = embed_unrelated(index, model)
        if same is not None and (same.choice.asked, same.store) == (kind, uri):
            choice = same.choice
        elif uri:
            index, choice = replace(index, ann=None), Choice(kind, FLAT, "exact search, by Milvus", ())
        else:
            index = replace(index, source=index.vectors)
            choice, ann = choose_index(index.vectors, kind, say)
            index = replace(index, ann=ann)
        stored = StoredIndex(settings, str(corpus.resolve()), files, index, unrelated, choice, read_ns, uri)
        kept = (files, stored.corpus, choice, uri)
        if old is None or kept != (old.files, old.corpus, old.choice, old.store):
            say(f"Writing {folder}" + (f" and Milvus at {uri}" if uri else ""))
            save_index(folder, stored)
        shutil.rmtree(folder / SHARDS, ignore_errors=True)
        return Update(stored, new, changed, deleted, len(files) - new - changed, n_embedded, failures)


def check_milvus(uri: str, corpus: Path, kind: str) -> None:
    """Raise an error unless vectors can be kept in a Milvus: before anything is embedded."""
    if kind not in (FLAT, AUTO):
        raise InputError(
            f"vectors in Milvus are searched exactly, not by {kind}: leave out --index-kind {kind}, or "
            "--store"
        )
    if is_file(uri):
        check_outside(corpus, Path(uri))
    check_reachable(uri)


def check_outside(corpus: Path, folder: Path) -> None:
    """Raise `InputError` for a folder within the corpus, whose files would be read as documents."""
    if folder.resolve().is_relative_to(corpus.resolve()):
        below = folder.resolve().relative_to(corpus.resolve()).as_posix()
        if not is_hidden(below):
            raise InputError(f"{folder} is within the corpus {corpus}: give a folder outside of it")


def check_settings(old: StoredIndex, settings: IndexSettings, folder: Path) -> None:
    """Raise `InputError` for other settings than those of a folder's index."""
    for name, value in settings.options.items():
        if (was := old.settings.options[name]) != value:
            option = name.replace("_", "-")
            raise InputError(
                f"the index in {folder} was made with {option} {was}, not {value}: give --{option} {was}, "
                f"another folder, or --rebuild to embed everything anew"
            )


def read_files(
    paths: Mapping[str, Path],
    old: StoredIndex | None,
    model: Model,
    settings: IndexSettings,
    say: Callable[[str], None],
) -> tuple[tuple[IndexedFile, ...], tuple[Failure, ...]]:
    """Return files by name with their documents and chunks, those of before where they are the same."""
    files, failures = read_changed(paths, old)
    unique(chain.from_iterable(file.documents for file in files))  # raises for equal names
    if n_fresh := sum(len(file.documents) for file in files if not file.chunks):
        say(f"Splitting {counted(n_fresh, 'document')}")

    def cut(file: IndexedFile) -> IndexedFile:
        pieces = cut_documents(file.documents, model, settings.splitting, settings.parent_tokens)
        return replace(file, chunks=tuple(chain.from_iterable(pieces)))

    return tuple(file if file.chunks else cut(file) for file in files), failures


def read_by_cluster(
    paths: Mapping[str, Path],
    old: StoredIndex | None,
    model: Model,
    settings: IndexSettings,
    folder: Path,
    cluster: Cluster,
    on_progress: Progress | None,
    say: Callable[[str], None],
) -> tuple[tuple[IndexedFile, ...], tuple[Failure, ...], Mapping[str, Place], int]:
    """Return what `read_files` does, where vectors of new and changed files are, and how many are new."""
    if settings.pooling == "idf":
        raise InputError("pooling idf weighs words by all chunks, which no worker has: leave out --ray")
    files, failures = read_changed(paths, old, is_parsed=False)
    spec = embedding_spec(model, settings.pooling, settings.max_tokens)
    unread = [file for file in files if not file.documents]
    read, places, n_embedded = embed_on_cluster(
        unread, paths, spec, settings, folder, cluster, on_progress, say
    )
    files = [read.get(file.name, file) for file in files]
    unique(chain.from_iterable(file.documents for file in files))  # raises for equal names
    return tuple(files), failures, places, n_embedded


def read_changed(
    paths: Mapping[str, Path], old: StoredIndex | None, is_parsed: bool = True
) -> tuple[list[IndexedFile], tuple[Failure, ...]]:
    """Read files by name, as `read_indexed`; those of the index that are the same are returned from there.

    Raises
    ------
    DocumentError
        No file can be read, or `read_indexed` raises it.
    """
    known = {} if old is None else {file.name: file for file in old.files}
    settled_ns = 0 if old is None else old.read_ns - TICK_NS
    read = [read_indexed(path, name, known.get(name), settled_ns, is_parsed) for name, path in paths.items()]
    files = [file for file, _ in read if file is not None]
    failures = tuple(chain.from_iterable(failed for _, failed in read))
    if not files:
        raise DocumentError(failures[0].reason)
    return files, failures


def read_indexed(
    path: Path, name: str, known: IndexedFile | None, settled_ns: int, is_parsed: bool = True
) -> tuple[IndexedFile | None, tuple[Failure, ...]]:
    """Read a file of the corpus, without chunks; return the known one where it is the same.

    A file without text that can be read is None, and failures say why; parts of a file may fail, too.

    Parameters
    ----------
    path, name
        The file and its name in the corpus.
    known
        The file of this name that is indexed.
    settled_ns
        A file written before this time is the same if its size and time are.
    is_parsed
        Whether to make documents of new content.

    Raises
    ------
    DocumentError
        It changes meanwhile, or is known and the disk fails: it would be taken out of the index.
    """
    try:
        state = path.stat()
        is_known = known and (state.st_size, state.st_mtime_ns) == (known.size, known.mtime_ns)
        if known is not None and is_known and state.st_mtime_ns < settled_ns:
            return known, ()
        content = content_of(path)
        after = path.stat()
    except FileNotFoundError as error:
        raise DocumentError(f"{path} was removed while the corpus was read: start again") from error
    except DocumentError as error:
        if known is not None and isinstance(error.__cause__, OSError):
            raise
        return None, (Failure(name, str(error)),)
    if (after.st_size, after.st_mtime_ns) != (state.st_size, state.st_mtime_ns):
        raise DocumentError(f"{path} changed while it was read: start again once it is written")
    digest = sha256(content).hexdigest()
    if known is not None and digest == known.sha256:
        return replace(known, size=state.st_size, mtime_ns=state.st_mtime_ns), ()
    loaded = parse_file(name, content) if is_parsed else Loaded()
    if is_parsed and not loaded.documents:
        return None, loaded.failures
    file = IndexedFile(name, state.st_size, state.st_mtime_ns, digest, loaded.documents, ())
    return file, loaded.failures


def differences(old: StoredIndex | None, files: Sequence[IndexedFile]) -> tuple[int, int, int]:
    """Count the files that are new, changed and deleted since an index."""
    before = {} if old is None else {file.name: file.sha256 for file in old.files}
    now = {file.name: file.sha256 for file in files}
    n_changed = sum(before[name] != digest for name, digest in now.items() if name in before)
    return len(now.keys() - before.keys()), n_changed, len(before.keys() - now.keys())


def index_files(
    files: tuple[IndexedFile, ...],
    old: StoredIndex | None,
    model: Model,
    settings: IndexSettings,
    cache: VectorCache | None,
    on_progress: Progress | None,
    say: Callable[[str], None],
) -> tuple[Index, int]:
    """Index files, with the vectors of before where they are the same; count the chunks embedded."""
    chunks = list(chain.from_iterable(file.chunks for file in files))
    idf = None
    if settings.pooling == "idf" and (encoder := model.as_encoder) is not None:
        model = encoder.with_idf([chunk.text for chunk in chunks])
        idf = model.idf
    spec = embedding_spec(model, settings.pooling, settings.max_tokens)
    known = {} if old is None or old.index.spec != spec else vectors_of_files(old)
    parts = [known.get((file.name, file.sha256)) for file in files]
    sizes = [len(file.chunks) for file in files]
    is_missing = np.repeat([part is None for part in parts], sizes)  # (n_chunks,)
    missing = [chunk.text for chunk, missed in zip(chunks, is_missing, strict=True) if missed]
    vectors = np.empty((len(chunks), spec.d_model), np.float32)
    if missing:
        say(f"Embedding {counted(len(missing), 'chunk')}")
        vectors[is_missing] = embed_chunks(missing, model, spec, on_progress, cache)
    for part, stop in zip(parts, np.cumsum(sizes), strict=True):
        if part is not None:
            vectors[stop - len(part) : stop] = part
    documents = chain.from_iterable(file.documents for file in files)
    return index_vectors(chunks, vectors, spec, idf, documents), len(missing)


def join_shards(
    files: tuple[IndexedFile, ...],
    old: StoredIndex | None,
    places: Mapping[str, Place],
    model: Model,
    settings: IndexSettings,
    folder: Path,
) -> Index:
    """Index files by the vectors of before and of shards, put together on the disk."""
    chunks = list(chain.from_iterable(file.chunks for file in files))
    spec = embedding_spec(model, settings.pooling, settings.max_tokens)
    known = {} if old is None else vectors_of_files(old)
    with folder_errors(folder):
        vectors = array_on_disk(folder, (len(chunks), spec.d_model))
    stop = 0
    for file in files:
        start, stop = stop, stop + len(file.chunks)
        key = file.name, file.sha256
        if key in known:
            vectors[start:stop] = known[key]
        else:
            shard, rows = places[file.name]
            vectors[start:stop] = shard_vectors(shard)[rows]
    documents = chain.from_iterable(file.documents for file in files)
    return index_vectors(chunks, vectors, spec, documents=documents)


def array_on_disk(folder: Path, shape: tuple[int, int]) -> Array:
    """Return a float32 array in a temporary file of a folder; a full disk is an error now, no crash later."""
    n_bytes = 4 * shape[0] * shape[1]
    with TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.write(bytes(n_bytes))
            file.flush()
        return np.memmap(file, np.float32, "r+", shape=shape)


def vectors_of_files(stored: StoredIndex) -> dict[tuple[str, str], Array]:
    """Return the vectors of each file's chunks, by its name and the SHA-256 of its content."""
    ends = np.cumsum([len(file.chunks) for file in stored.files])
    return {
        (file.name, file.sha256): stored.index.vectors[end - len(file.chunks) : end]
        for file, end in zip(stored.files, ends, strict=True)
    }
