"""Bring the index in a folder up to a corpus: only new and changed files are cut and embedded."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from ...documents.document import Chunk, Failure
from ...documents.formats.archive import is_hidden
from ...documents.loaders import OnPage, content_of, corpus_files, left_out, not_read, parse_apart, unique
from ...documents.splitters import GIVEN, Splitting
from ...errors import DocumentError, InputError
from ...layers.tracing import Array
from ...weights.fetch import Progress
from ...wording import counted
from ..embedding_model import Model
from ..index import Index, embed_chunks, index_vectors
from ..index_choice import Choice, choose_index
from ..index_kinds import AUTO, FLAT, check_index_kind
from ..relevance import embed_unrelated
from ..sparse_index import SparseIndex
from ..vector_cache import WHOLE_FILE, VectorCache
from .index_folder import (
    CACHE,
    MANIFEST,
    MOST_FAILURES,
    SHARDS,
    Build,
    IndexSettings,
    StoredIndex,
    as_indexed,
    folder_errors,
    kept_settings,
    locked,
    open_index,
    save_index,
)
from .index_rows import IndexedFile
from .milvus_store import CALL_S, IN_FOLDER, client_of, is_file, release
from .ray_shards import Cluster, embed_on_cluster, shard_vectors

Key = tuple[str, str]  # of a file: its name, whose ending says how it is read, and the SHA-256 of its content


@dataclass(frozen=True)
class Update:
    """The index of a folder after an update, how many files changed of those in it, and what was not read."""

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
    embedder: VectorCache | Cluster | None = None,
    rebuild: bool = False,
    on_progress: Progress | None = None,
    say: Callable[[str], None] = lambda line: None,
    on_page: OnPage = lambda *_: None,
) -> Update:
    """Index a corpus in a folder: add new files, replace changed ones, and remove deleted ones.

    Files of other formats, or without text that can be read, are left out, and returned as failures. With a
    cluster, of the others only empty and too large ones are; the rest end the run. What a run embedded that
    was stopped is not embedded again by the next one.

    The folder of the index is outside of the corpus, a file or a folder. ``embedder`` is a cache of vectors,
    in place of one in the folder, or a cluster that embeds in place of this process; ``rebuild`` embeds
    everything anew; ``on_progress`` is called with chunks, or with files by a cluster; ``on_page`` with pages
    whose pictures are recognised.

    Raises `DocumentError` where no file can be read, or an indexed one no longer by a fault of the disk, and
    where the folder is written by another program, damaged, or cannot be written, or Milvus not be reached:
    it holds the index from before. Raises `InputError` where the folder's index was made with other settings,
    or the corpus holds no text.
    """
    check_index_kind(settings.index_kind)
    paths, others = corpus_files(corpus)
    check_outside(corpus, folder)
    with ExitStack() as stack:
        kept = kept_settings(folder)
        settings = replace(settings, store=settings.store or (kept and kept.store) or IN_FOLDER)
        stack.callback(release, settings.uri)
        stack.enter_context(locked(folder))
        check_milvus(settings, corpus)
        old = None
        if not rebuild and (folder / MANIFEST).exists():
            old = open_index(folder)
            stack.callback(release, old.settings.uri)
            for name, value in settings.options.items():
                if (was := old.settings.options[name]) != value:
                    option = name.replace("_", "-")
                    raise InputError(
                        f"the index in {folder} was made with {option} {was}, not {value}: give --{option} "
                        f"{was}, another folder, or --rebuild to embed everything anew"
                    )
            as_indexed(old, model, folder)
        say(f"Reading {corpus}")
        files, failures = read_files(paths, old, not isinstance(embedder, Cluster), on_page)
        failures = tuple(sorted((*failures, *map(not_read, others)), key=lambda each: each.name))
        new, changed, deleted = differences(old, files)
        is_same = old is not None and not (new or changed or deleted)
        build = Build(folder, model, settings, on_progress, say)
        if old is not None and is_same:
            index, unrelated, choice, n_embedded = old.index, old.unrelated, old.choice, 0
        else:
            if isinstance(embedder, Cluster):
                files, index, n_embedded = index_by_cluster(files, paths, old, build, embedder)
            else:
                files, index, n_embedded = index_here(files, old, build, embedder)
            unrelated = embed_unrelated(index, model)
        if old is None or not is_same or settings != old.settings:
            index, choice = with_search(index, settings, say)
            index = with_words(index, files, old, model, say)
        stored = StoredIndex(
            settings,
            str(corpus.resolve()),
            files,
            index,
            unrelated,
            choice,
            failures=failures[:MOST_FAILURES],
        )
        about = settings, stored.corpus, stored.failures
        if old is None or not is_same or about != (old.settings, old.corpus, old.failures):
            say(f"Writing {folder}" + (f" and Milvus at {settings.uri}" if settings.uri else ""))
            save_index(folder, stored)
        shutil.rmtree(folder / SHARDS, ignore_errors=True)
        for suffix in WHOLE_FILE:
            (folder / f"{CACHE}{suffix}").unlink(missing_ok=True)
        return Update(stored, new, changed, deleted, len(files) - new - changed, n_embedded, failures)


def save_given(
    folder: Path,
    index: Index,
    corpus: str,
    model: Model,
    settings: IndexSettings,
    say: Callable[[str], None] = lambda line: None,
) -> StoredIndex:
    """Write chunks with vectors that were made elsewhere, read from ``corpus``, to a folder.

    It may hold such an index already. Raises `InputError` where it holds one of documents, or the texts of
    chunks that overlap differ.
    """
    check_index_kind(settings.index_kind)
    if (kept := kept_settings(folder)) and kept.splitting.method != GIVEN:
        raise InputError(f"{folder} holds an index of documents: give another folder for these vectors")
    rows: dict[str, list[int]] = {name: [] for name in index.documents}
    for row, chunk in enumerate(index.chunks):
        if index.document_text(chunk.document)[chunk.start : chunk.end] != chunk.text:
            raise InputError(
                f"chunk {row} does not stand at {chunk.start} to {chunk.end} of {chunk.document}: chunks "
                "that overlap have to repeat the same text, cut them again"
            )
        rows[chunk.document].append(row)
    index = index.subset([*chain.from_iterable(rows.values())])
    longest = max(chunk.n_tokens for chunk in index.chunks)
    settings = replace(settings, splitting=Splitting(GIVEN, longest), store=IN_FOLDER)
    with locked(folder):
        unrelated = embed_unrelated(index, model)
        index, choice = with_search(index, settings, say)
        say(f"Writing {folder}")
        stored = StoredIndex(settings, corpus, files_of(index), index, unrelated, choice)
        save_index(folder, stored)
    return stored


def files_of(index: Index) -> list[IndexedFile]:
    """Return the documents of an index as files, each with its chunks."""
    own: dict[str, list[Chunk]] = {name: [] for name in index.documents}
    for chunk in index.chunks:
        own[chunk.document].append(chunk)
    found = []
    for name, document in index.documents.items():
        digest = sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest()
        found.append(IndexedFile(name, digest, (document,), tuple(own[name])))
    return found


def with_search(index: Index, settings: IndexSettings, say: Callable[[str], None]) -> tuple[Index, Choice]:
    """Return an index with what finds the nearest of its vectors, and how that was chosen."""
    if settings.uri:
        return replace(index, ann=None), Choice(settings.index_kind, FLAT, "exact search, by Milvus", ())
    choice, ann = choose_index(index.vectors, settings.index_kind, say)
    return replace(index, source=index.vectors, ann=ann), choice


def with_words(
    index: Index,
    files: Sequence[IndexedFile],
    old: StoredIndex | None,
    model: Model,
    say: Callable[[str], None],
) -> Index:
    """Return an index with the sparse model's, if there is one; unchanged files are not read again."""
    from scipy.sparse import csc_matrix, csr_matrix, vstack  # slow to import

    encoder = model.as_encoder
    if encoder is None or (sparse := encoder.sparse) is None:
        return replace(index, expanded=None)
    known: dict[Key, Any] = {}
    if old is not None and old.index.expanded and old.index.expanded.fingerprint == sparse.fingerprint:
        known = vectors_of_files(old.files, csr_matrix(old.index.expanded.weights))
    missing = [file for file in files if key_of(file) not in known]
    if texts := [chunk.indexed for file in missing for chunk in file.chunks]:
        say(f"Expanding {counted(len(texts), 'chunk')}")
        known |= vectors_of_files(missing, sparse.encode(texts))
    weights = csc_matrix(vstack([known[key_of(file)] for file in files]))
    return replace(index, expanded=SparseIndex(weights, sparse.fingerprint))


def check_milvus(settings: IndexSettings, corpus: Path) -> None:
    """Raise an error where the vectors are to be in a Milvus that cannot keep them or search by the kind."""
    if not settings.uri:
        return
    if settings.index_kind not in (FLAT, AUTO):
        raise InputError(
            f"vectors in Milvus are searched exactly, not by {settings.index_kind}: leave out --index-kind "
            f"{settings.index_kind}, or --store"
        )
    if is_file(settings.uri):
        check_outside(corpus, Path(settings.uri))
    with client_of(settings.uri) as client:  # a file that is not there is made
        client.list_collections(timeout=CALL_S)


def check_outside(corpus: Path, folder: Path) -> None:
    """Raise `InputError` for a folder within the corpus, whose files would be read as documents."""
    if folder.resolve().is_relative_to(corpus.resolve()):
        below = folder.resolve().relative_to(corpus.resolve()).as_posix()
        if not is_hidden(below):
            raise InputError(f"{folder} is within the corpus {corpus}: give a folder outside of it")


def read_files(
    paths: Mapping[str, Path],
    old: StoredIndex | None,
    is_parsed: bool = True,
    on_page: OnPage = lambda *_: None,
) -> tuple[tuple[IndexedFile, ...], tuple[Failure, ...]]:
    """Read files by name: those that an index has alike are taken from it, others have no chunks yet.

    Files without text that can be read are left out, and failures say why; parts of a file may fail, too.
    With ``is_parsed`` documents are made of new content.
    """
    known = {} if old is None else {key_of(file): file for file in old.files}
    names = {name for name, _ in known}
    files: list[IndexedFile] = []
    failures: list[Failure] = []
    unchanged = set[str]()
    for name, path in paths.items():
        try:
            content = content_of(path)
        except DocumentError as error:
            if name in names and isinstance(error.__cause__, OSError):
                raise
            failures.append(Failure(name, str(error)))
            continue
        file = IndexedFile(name, sha256(content).hexdigest())
        if key_of(file) in known:
            file = known[key_of(file)]
            unchanged.add(name)
        elif is_parsed:
            loaded = parse_apart(name, content, on_page)
            failures += left_out(loaded)
            if not loaded.documents:
                continue
            file = replace(file, documents=loaded.documents)
        files.append(file)
    if not files:
        raise DocumentError(failures[0].reason)
    for each in () if old is None else old.failures:  # of parts of files that are not read again
        if unchanged & {each.name[: mark.start()] for mark in re.finditer("[#/]", each.name)}:
            failures.append(each)
    return tuple(files), tuple(failures)


def key_of(file: IndexedFile) -> Key:
    """Return what the chunks of a file depend on, with the settings."""
    return file.name, file.sha256


def differences(old: StoredIndex | None, files: Sequence[IndexedFile]) -> tuple[int, int, int]:
    """Count the files that are new, changed and deleted since an index."""
    before = {} if old is None else {file.name: file.sha256 for file in old.files}
    now = {file.name: file.sha256 for file in files}
    n_changed = sum(before[name] != digest for name, digest in now.items() if name in before)
    return len(now.keys() - before.keys()), n_changed, len(before.keys() - now.keys())


def index_here(
    files: Sequence[IndexedFile], old: StoredIndex | None, build: Build, cache: VectorCache | None
) -> tuple[tuple[IndexedFile, ...], Index, int]:
    """Cut and embed new files in this process; return all, their index, and the number of embedded chunks."""
    unique(chain.from_iterable(file.documents for file in files))  # raises for equal names
    if n_fresh := sum(len(file.documents) for file in files if not file.chunks):
        build.say(f"Splitting {counted(n_fresh, 'document')}")
    files = tuple(file if file.chunks else replace(file, chunks=build.cut(file.documents)) for file in files)
    chunks, idf = chunks_of(files), None
    if build.settings.pooling == "idf" and (encoder := build.model.as_encoder) is not None:
        encoder = encoder.with_idf([chunk.indexed for chunk in chunks])
        build, idf = replace(build, model=encoder), encoder.idf
    spec = build.spec
    known = {} if old is None or old.index.spec != spec else vectors_of_files(old.files, old.index.vectors)
    missing = [file for file in files if key_of(file) not in known]
    texts = [chunk.indexed for file in missing for chunk in file.chunks]
    counts = [0]  # of texts that have a vector: at first those in the cache

    def show(n_done: int, n_texts: int) -> None:
        counts.append(n_done)
        if build.on_progress is not None:
            build.on_progress(n_done, n_texts)

    if texts:
        build.say(f"Embedding {counted(len(texts), 'chunk')}")
        with ExitStack() as stack:
            if cache is None:
                cache = stack.enter_context(closing(VectorCache(build.folder / CACHE, sys.maxsize)))
            known |= vectors_of_files(missing, embed_chunks(texts, build.model, spec, show, cache))
    vectors = np.concatenate([known[key_of(file)] for file in files])
    documents = chain.from_iterable(file.documents for file in files)
    n_embedded = len(texts) - (counts[1] if texts else 0)
    return files, index_vectors(chunks, vectors, spec, idf, documents), n_embedded


def index_by_cluster(
    files: Sequence[IndexedFile],
    paths: Mapping[str, Path],
    old: StoredIndex | None,
    build: Build,
    cluster: Cluster,
) -> tuple[tuple[IndexedFile, ...], Index, int]:
    """Have a cluster read, cut and embed the files without chunks; return as `index_here`."""
    if build.settings.pooling == "idf":
        raise InputError("pooling idf weighs words by all chunks, which no worker has: leave out --ray")
    read, places, n_embedded = embed_on_cluster(
        [file for file in files if not file.chunks], paths, build, cluster
    )
    files = tuple(read.get(file.name, file) for file in files)
    unique(chain.from_iterable(file.documents for file in files))  # raises for equal names
    chunks = chunks_of(files)
    known = {} if old is None else vectors_of_files(old.files, old.index.vectors)
    with folder_errors(build.folder):
        vectors = array_on_disk(build.folder, (len(chunks), build.spec.d_model))
    stop = 0
    for file in files:
        start, stop = stop, stop + len(file.chunks)
        if file.name in places:
            shard, rows = places[file.name]
            vectors[start:stop] = shard_vectors(shard)[rows]
        else:
            vectors[start:stop] = known[key_of(file)]
    documents = chain.from_iterable(file.documents for file in files)
    return files, index_vectors(chunks, vectors, build.spec, documents=documents), n_embedded


def chunks_of(files: Sequence[IndexedFile]) -> list[Chunk]:
    """Return the chunks of files; raise `InputError` where there is none."""
    chunks = [chunk for file in files for chunk in file.chunks]
    if not chunks:
        raise InputError("there are no chunks to index: give documents with text")
    return chunks


def vectors_of_files(files: Sequence[IndexedFile], vectors: Any) -> dict[Key, Any]:
    """Divide the rows of a matrix, dense or sparse, with one for each chunk, among their files."""
    ends = np.cumsum([len(file.chunks) for file in files])
    return {key_of(one): vectors[end - len(one.chunks) : end] for one, end in zip(files, ends, strict=True)}


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
