"""Files of a corpus embedded by the workers of a Ray cluster, in shards that each worker writes itself.

A shard is a few files of the corpus with their chunks and vectors, in one file below the folder of the index.
Its name is a digest of what it is made of, and it is written whole, so that a shard that is there is done:
what a killed worker began is done again by another, and a run that was stopped goes on with the shards that
are missing. Only names pass through Ray.
"""

import json
import logging
import os
import socket
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ...atomic_write import atomic_file
from ...cores import limit_cores
from ...documents.loaders import all_documents, content_of, parse_file
from ...errors import DocumentError, GlassboxError, InputError
from ...installed import install_command
from ...kernels.primitives import prepare_compiled
from ...layers.tracing import Array
from ...wording import counted, reason_of
from ..embedding_model import Model
from ..embedding_spec import EmbeddingSpec
from ..index import embed_chunks
from .index_folder import SHARDS, Build, IndexSettings, folder_errors
from .index_rows import IndexedFile, line_of, to_file, write_lines

Place = tuple[Path, slice]  # of the vectors of a file's chunks: a shard, and rows in it

LOCAL = "local"
SHARD_BYTES = 128 * 1024  # of files: some seconds of one core
ATTEMPTS = 3  # at a shard whose worker dies
REACHED_S = 5.0
STORE_BYTES = 100_000_000  # of Ray's object store on this machine: only names are in it


@dataclass(frozen=True)
class Cluster:
    """The Ray cluster that embeds a corpus in place of this process.

    Its address is `LOCAL` for workers on this machine. Each of the workers, None for one a core, has one
    core, and calls ``load`` once for the model.
    """

    address: str
    load: Callable[[], Model]
    workers: int | None = None


@dataclass(frozen=True)
class Shard:
    """Files that one worker embeds together: their names, and the SHA-256 of the content of each."""

    name: str
    files: Mapping[str, str]

    def path(self, folder: Path) -> Path:
        """Return the file that the shard is written to."""
        return folder / SHARDS / f"{self.name}.npz"

    def attempts_path(self, folder: Path) -> Path:
        """Return the file with a line for each attempt at the shard: the process of the worker."""
        return self.path(folder).with_suffix(".attempts")


def embed_on_cluster(
    files: Sequence[IndexedFile], paths: Mapping[str, Path], build: Build, cluster: Cluster
) -> tuple[dict[str, IndexedFile], dict[str, Place], int]:
    """Embed files on a cluster, but for those whose shards are in the folder already.

    The paths are the same on all machines of the cluster, as that of the folder. Returns the files by name,
    with their documents and chunks; where their vectors are; and how many chunks were embedded now. Raises
    `DocumentError` where Ray cannot be reached or fails, a file cannot be read or changed meanwhile, or the
    disk is full (shards that are done stay), and `InputError` where Ray is not installed, or a worker has
    another model.
    """
    folder, shards = build.folder, shards_of(files, paths, build.spec, build.settings)
    with folder_errors(folder):
        (folder / SHARDS).mkdir(exist_ok=True)
    missing = [shard for shard in shards if not shard.path(folder).exists()]
    if n_done := len(shards) - len(missing):
        build.say(f"{n_done:,} of {counted(len(shards), 'shard')} were embedded before")
    if missing:
        build.say(f"Embedding {counted(len(missing), 'shard')} on Ray ({cluster.address})")
        for shard in missing:
            shard.attempts_path(folder).unlink(missing_ok=True)
        run_workers(missing, paths, build, cluster)
    read, places = {}, {}
    for path in [shard.path(folder) for shard in shards]:
        start = 0
        for file in shard_files(path):
            stop = start + len(file.chunks)
            read[file.name], places[file.name] = file, (path, slice(start, stop))
            start = stop
    return read, places, sum(len(read[name].chunks) for shard in missing for name in shard.files)


def shards_of(
    files: Sequence[IndexedFile], paths: Mapping[str, Path], spec: EmbeddingSpec, settings: IndexSettings
) -> list[Shard]:
    """Divide files into shards of about `SHARD_BYTES`, in order."""
    groups: list[dict[str, str]] = []
    n_bytes = SHARD_BYTES
    for file in files:
        size = paths[file.name].stat().st_size
        if n_bytes + size > SHARD_BYTES:
            groups.append({})
            n_bytes = 0
        groups[-1][file.name] = file.sha256
        n_bytes += size
    how = [settings.options, asdict(spec)]
    return [Shard(sha256(line_of([*how, list(group.items())])).hexdigest(), group) for group in groups]


def run_workers(shards: Sequence[Shard], paths: Mapping[str, Path], build: Build, cluster: Cluster) -> None:
    """Have all shards written; the errors are those of `embed_on_cluster`."""
    n_done, n_files = 0, sum(len(shard.files) for shard in shards)
    with ray_cluster(cluster) as (ray, n_cores):
        rows = [row_of(shard, paths) for shard in shards]
        written = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            ShardWriter,
            fn_constructor_args=(cluster.load, build.spec, build.settings, build.folder.resolve()),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(
                size=min(cluster.workers or n_cores, n_cores, len(rows)), max_tasks_in_flight_per_actor=1
            ),
            num_cpus=1,
        )
        for row in written.iter_rows():
            if error := row["error"]:
                raise (InputError if row["is_input"] else DocumentError)(error)
            n_done += row["n_files"]
            if build.on_progress is not None:
                build.on_progress(n_done, n_files)


def row_of(shard: Shard, paths: Mapping[str, Path]) -> dict[str, str]:
    """Return what Ray hands to a worker: the name, and path and SHA-256 of each file."""
    places = {name: [str(paths[name].resolve()), digest] for name, digest in shard.files.items()}
    return {"shard": shard.name, "files": json.dumps(places)}


class ShardWriter:
    """A worker of Ray Data: it loads the model once, and writes shards.

    Errors are returned, not raised: Ray would wrap them in traces of its own.
    """

    def __init__(
        self, load: Callable[[], Model], spec: EmbeddingSpec, settings: IndexSettings, folder: Path
    ) -> None:
        self._load, self._spec, self._settings, self._folder = load, spec, settings, folder

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Write the shard of a batch of one row."""
        [name], [files] = batch["shard"], batch["files"]
        places: dict[str, tuple[str, str]] = json.loads(str(files))
        error, is_input = "", False
        try:
            shard = Shard(str(name), {file: digest for file, (_, digest) in places.items()})
            begin_attempt(shard, self._folder)
            write_shard(shard, {file: Path(path) for file, (path, _) in places.items()}, self.build)
        except GlassboxError as problem:
            error, is_input = str(problem), isinstance(problem, InputError)
        return {"n_files": [len(places)], "error": [error], "is_input": [is_input]}

    @cached_property
    def build(self) -> Build:
        """The model, loaded at the first access and checked to be that of the index, and how it is used."""
        limit_cores(1)
        build = Build(self._folder, self._load(), self._settings)
        prepare_compiled().join()
        if build.spec != self._spec:
            raise InputError(
                f"{socket.gethostname()} makes vectors of {build.spec}, not of {self._spec}: install the "
                "same model on all machines"
            )
        return build


def begin_attempt(shard: Shard, folder: Path) -> None:
    """Count an attempt at a shard; raise `DocumentError` where too many ended their worker."""
    with folder_errors(folder), shard.attempts_path(folder).open("a+", encoding="ascii") as file:
        file.seek(0)
        if len(file.readlines()) >= ATTEMPTS:
            names = ", ".join(shard.files)
            raise DocumentError(
                f"{ATTEMPTS} workers ended while they embedded {names:.200}: give them more memory, or take "
                "the file that ends them out of the corpus"
            )
        file.write(f"{os.getpid()}\n")


def write_shard(shard: Shard, paths: Mapping[str, Path], build: Build) -> None:
    """Read, cut and embed the files of a shard, and write it whole."""
    files = []
    for name, digest in shard.files.items():
        content = content_of(paths[name])
        if sha256(content).hexdigest() != digest:
            raise DocumentError(f"{paths[name]} changed while the corpus was read: start again")
        documents = all_documents(parse_file(name, content))
        files.append(IndexedFile(name, digest, documents, build.cut(documents)))
    texts, spec = [chunk.indexed for file in files for chunk in file.chunks], build.spec
    vectors = embed_chunks(texts, build.model, spec) if texts else np.empty((0, spec.d_model), np.float32)
    lines = BytesIO()
    write_lines(lines, files)
    with folder_errors(build.folder), atomic_file(shard.path(build.folder)) as file:
        np.savez(
            file, files=np.frombuffer(lines.getbuffer(), np.uint8), vectors=vectors.astype("<f4", copy=False)
        )


def shard_files(path: Path) -> list[IndexedFile]:
    """Read the files of a shard."""
    return [to_file(json.loads(line)) for line in BytesIO(read_member(path, "files").tobytes())]


@lru_cache(1)
def shard_vectors(path: Path) -> Array:
    """Read the vectors of a shard ``(n_chunks, d_model)``; those of the last one are kept."""
    return read_member(path, "vectors")


def read_member(path: Path, name: str) -> Array:
    """Read an array of a shard; a damaged one is removed, so that the next run writes it again."""
    try:
        with np.load(path) as arrays:
            return arrays[name]
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        path.unlink(missing_ok=True)
        raise DocumentError(
            f"the shard {path} was damaged ({reason_of(error)}), and is removed: start again"
        ) from error


@contextmanager
def ray_cluster(cluster: Cluster) -> Iterator[tuple[Any, int]]:
    """Connect to Ray, or start it on this machine; yield its module and the number of its cores."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would be sent over the network
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise InputError(
            f"embedding on a cluster needs packages that are not installed: {install_command('cluster')}"
        ) from error
    address, is_ours = cluster.address, not ray.is_initialized()
    try:
        # `ConnectionError` at once where nothing listens at an address: Ray tries for long.
        parts = urlsplit(address if "://" in address else f"//{address}")
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), REACHED_S).close()
        if is_ours:
            own: dict[str, Any] = {}  # of a cluster on this machine
            if address == LOCAL:
                own = {"num_cpus": cluster.workers, "include_dashboard": False}
                own["object_store_memory"] = STORE_BYTES
            with without_stderr():
                ray.init(address=address, logging_level="critical", log_to_driver=False, **own)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        yield ray, max(1, int(ray.cluster_resources().get("CPU", 1)))
    except GlassboxError:
        raise
    except (ray.exceptions.RayError, ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        raise DocumentError(
            f"Ray ({address}) failed ({reason_of(error)}): see that it runs, set RAY_AUTH_MODE=token where "
            "it asks for a token, and start again, which goes on where this ended"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


@contextmanager
def without_stderr() -> Iterator[None]:
    """Leave out what Ray's core, which is not Python, prints on standard error while it starts."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
