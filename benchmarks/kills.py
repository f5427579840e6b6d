"""The running app, killed while it writes, and what it leaves: for `benchmarks.operations`.

Each kill starts the app on a free port, has a visitor without a browser make it write, and ends it by SIGKILL
at a random moment. The files must then hold the state before a write or after it: never another, never a part
of one, and nothing that was there before may be missing.
"""

import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Timer
from time import sleep
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
from websockets.exceptions import ConnectionClosed

from benchmarks.processes import say
from engine import Encoder
from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import GlassboxError
from engine.evaluation.sweep_row import SweepRow
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.stored.index_folder import IndexSettings, open_index
from engine.retrieval.stored.index_update import update_index
from engine.retrieval.vector_cache import VectorCache
from engine.storage.workspace import Workspace, open_workspace, save_workspace
from pages.improve.settings import files
from pages.improve.settings.runs import Experiment
from tests.browser.conftest import served
from tests.browser.visitor import Visitor, visiting
from ui.data_folder import EXPERIMENTS, VECTORS
from ui.server_settings import WORKSPACES
from ui.session_work import SESSION_FILE

# Seconds after which the app is killed, counted from the moment at which it is made to write: half of the
# kills come within the first second, in which most files are opened and renamed.
SOON_S, LATE_S = 1.0, 6.0
CHUNK_SIZES = range(16, 240, 8)
SENTENCES = ("The harbour opens at {}.", "Ship {} carries grain.", "Pilot {} waits by the pier.")
N_FILES = 4
OLD, NEW, LOST, MIXED = "old state", "new state", "lost", "mixed"
LEFT = "temporary files left by a kill"
LEFT_AFTER = "temporary files after the next write"
STATES = (OLD, NEW, LOST, MIXED, LEFT, LEFT_AFTER)


def text_of(number: int) -> str:
    """Return a document of some ten chunks that has its number in every sentence."""
    return " ".join(sentence.format(f"{number}.{line}") for line in range(15) for sentence in SENTENCES)


class Work(Protocol):
    """What the app is made to write.

    Attributes
    ----------
    data
        The folder of the app's data.
    """

    data: Path

    def write(self, visitor: Visitor, begun: Callable[[], object]) -> None:
        """Make the app write until it is killed; call ``begun`` when the first write is asked for."""

    def state(self) -> str:
        """Return `OLD`, `NEW`, `LOST` or `MIXED` after a kill."""

    def write_once(self) -> None:
        """Write once more, as the app would, without a kill."""


@dataclass
class WorkspaceWork:
    """The chunk size is changed again and again: the session's workspace and its vectors are written."""

    data: Path
    encoder: Encoder
    written: int = CHUNK_SIZES[0]  # the app has said so
    asked: int = CHUNK_SIZES[0]
    n_vectors: int = 0
    document: Document = field(default_factory=lambda: Document("harbour.md", text_of(0)))

    def __post_init__(self) -> None:
        self.data.mkdir(parents=True)
        settings = {
            "files": {"harbour.md": ["harbour.md"]},
            "searched": ["harbour.md"],  # the bundled documents take many seconds to embed
            "widgets": {"chunk_tokens": self.written},
        }
        save_workspace(self.data / SESSION_FILE, Workspace((self.document,), settings))

    def write(self, visitor: Visitor, begun: Callable[[], object]) -> None:
        """Embed the document for the front page, and move the slider on."""
        visitor.open()
        visitor.open("documents")
        begun()
        while True:
            self.asked = CHUNK_SIZES[(CHUNK_SIZES.index(self.asked) + 1) % len(CHUNK_SIZES)]
            visitor.run(**{"Chunk size (tokens)": self.asked})
            self.written = self.asked

    def state(self) -> str:
        """Compare the workspace with the last two sizes, and all vectors with those of the encoder."""
        try:
            found = open_workspace(self.data / SESSION_FILE)
        except GlassboxError as error:
            say(str(error))
            return LOST
        size = found.settings["widgets"]["chunk_tokens"]
        if found.documents != (self.document,) or not self.vectors_are_whole(size):
            return MIXED
        was, self.written, asked, self.asked = self.written, size, self.asked, size
        return NEW if size == asked != was else OLD if size == was else LOST

    def write_once(self) -> None:
        """Save the workspace."""
        save_workspace(self.data / SESSION_FILE, open_workspace(self.data / SESSION_FILE))

    def vectors_are_whole(self, size: int) -> bool:
        """Whether the cache has all vectors from before, and each is that of its text."""
        path = self.data / VECTORS
        if not path.exists():
            return self.n_vectors == 0
        with closing(sqlite3.connect(path)) as connection:
            [problem] = connection.execute("PRAGMA integrity_check").fetchone()
        cache, spec = VectorCache(path), embedding_spec(self.encoder, None, None)
        chunks = split(self.document, self.encoder.tokenizer, Splitting(chunk_tokens=size, overlap=0))
        texts = [chunk.text for chunk in chunks]
        found, known = cache.get_many(texts, spec)
        n_before, self.n_vectors = self.n_vectors, cache.n_vectors
        cache.close()
        right = self.encoder.encode(texts)[known]
        return (
            problem == "ok"
            and not cache.notice
            and self.n_vectors >= n_before
            and np.allclose(found[known], right, atol=1e-4)
        )


@dataclass
class ExperimentWork:
    """A grid is run: a file with its description is begun, and a row is added for every cell."""

    data: Path
    rows: dict[str, tuple[SweepRow, ...]] = field(default_factory=dict)

    def write(self, visitor: Visitor, begun: Callable[[], object]) -> None:
        """Run the grid."""
        visitor.open("settings")
        begun()
        visitor.run(**{"Run the grid": None})
        while True:
            sleep(0.5)
            visitor.run()

    def state(self) -> str:
        """Read all experiments: those from before are as they were, and the new one has whole rows."""
        folder = self.data / EXPERIMENTS
        before, self.rows = self.rows, {}
        for one in self.kept():
            self.rows[one.key] = one.rows
            if [row.cell for row in one.rows] != list(one.cells[: len(one.rows)]):
                return MIXED
        if len(self.rows) != len(list(folder.glob(f"*{files.SUFFIX}"))):
            return MIXED
        if any(self.rows.get(key) != rows for key, rows in before.items()):
            return LOST
        return NEW if self.rows.keys() - before.keys() else OLD

    def write_once(self) -> None:
        """Begin an experiment that is there again, as to resume it."""
        [one, *_] = self.kept()
        with patch.dict(os.environ, {WORKSPACES: str(self.data)}):
            files.begin(one)

    def kept(self) -> list[Experiment]:
        """Return the experiments in the folder, as the app reads them."""
        with patch.dict(os.environ, {WORKSPACES: str(self.data)}):
            return files.kept_experiments(None)


@dataclass
class IndexWork:
    """The index folder of a corpus, of which a file has changed, is brought up to it."""

    data: Path
    encoder: Encoder
    versions: list[list[str]] = field(default_factory=list)  # the texts of the corpus, old and new
    numbers: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.corpus.mkdir(parents=True)
        for number in range(N_FILES):
            self.change(number)
        update_index(self.corpus, self.folder, self.encoder, self.settings)

    @property
    def settings(self) -> IndexSettings:
        """How the corpus is cut and embedded."""
        return IndexSettings(self.encoder.name, Splitting())

    @property
    def corpus(self) -> Path:
        """The folder of the documents."""
        return self.data / "corpus"

    @property
    def folder(self) -> Path:
        """The folder of the index."""
        return self.data / "index"

    def change(self, number: int) -> None:
        """Give a file of the corpus another text, which is kept as the newest version."""
        (self.corpus / f"{number}.md").write_text(text_of(next(self.numbers)), encoding="utf-8")
        self.versions.append([path.read_text("utf-8") for path in sorted(self.corpus.iterdir())])

    def write(self, visitor: Visitor, begun: Callable[[], object]) -> None:
        """Write the folder, and change a file, one after the other."""
        visitor.open("documents")
        visitor.run(**{"Folder of the index": str(self.folder), "Files to index": str(self.corpus)})
        begun()
        for number in count():
            self.change(number % N_FILES)
            visitor.run(**{"Write or update": None})

    def state(self) -> str:
        """Compare the index with the last versions of the corpus."""
        try:
            stored = open_index(self.folder)
        except GlassboxError as error:
            say(str(error))
            return LOST
        found = [document.text for document in stored.documents]
        texts = [chunk.text for chunk in stored.index.chunks]
        if not np.allclose(stored.index.vectors, self.encoder.encode(texts), atol=1e-4):
            return MIXED
        newest = self.versions[-2:]
        self.versions = [found]
        return NEW if found == newest[-1] else OLD if found == newest[0] else MIXED

    def write_once(self) -> None:
        """Bring the index up to another version of the corpus."""
        self.change(0)
        update_index(self.corpus, self.folder, self.encoder, self.settings)


def killed(work: Work, log: Path, rng: random.Random) -> str:
    """Start the app, have it write, and kill it at a random moment; return the state of its files."""
    with served(log, **{WORKSPACES: str(work.data)}) as (url, process):
        timer = Timer(rng.uniform(0, rng.choice((SOON_S, LATE_S))), os.kill, (process, signal.SIGKILL))
        try:
            with visiting(url) as visitor:
                work.write(visitor, timer.start)
        except (ConnectionClosed, OSError):
            pass
        timer.join()
    return work.state()


def temporary_files(folder: Path) -> int:
    """Return the number of files that only a writer at work should have."""
    return len([path for path in folder.rglob(".*") if path.is_file() and path.name != ".lock"])


def run_kills(n_kills: int, folder: Path, seed: int = 0) -> dict[str, dict[str, int]]:
    """Kill the app in turn while it writes each kind of file; return the states found, by the kind."""
    rng, encoder = random.Random(seed), Encoder.load()
    works: dict[str, Work] = {
        "workspace and vectors": WorkspaceWork(folder / "workspace", encoder),
        "experiment": ExperimentWork(folder / "experiment"),
        "index folder": IndexWork(folder / "index", encoder),
    }
    found = {name: Counter(dict.fromkeys(STATES, 0)) for name in works}
    before = dict.fromkeys(works, 0)
    for number in range(n_kills):
        name = list(works)[number % len(works)]
        state, left = killed(works[name], folder / "log.txt", rng), temporary_files(works[name].data)
        found[name].update({state: 1, LEFT: max(left - before[name], 0)})
        before[name] = left
        say(f"{number + 1} of {n_kills}: {name}, {state}, {left} temporary")
    for name, work in list(works.items())[:n_kills]:
        work.write_once()
        found[name][LEFT_AFTER] += temporary_files(work.data)
    return {name: dict(counts) for name, counts in found.items()}
