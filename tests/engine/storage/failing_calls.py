"""Let every n-th write, synchronisation, rename and truncation fail while files are written.

``python -m tests.engine.storage.failing_calls FOLDER`` with the library of failing_calls.c loaded before all
others; each case runs in a fork. It prints how many calls failed in each kind of file.
"""

import ctypes
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.sweep_store import append, resume
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.vector_cache import VectorCache
from engine.storage.workspace import Workspace, open_workspace, save_workspace
from pages.improve.settings.experiments import begin, kept_experiments
from tests.experiments import experiment
from ui.data_folder import EXPERIMENTS
from ui.server_settings import WORKSPACES

KINDS = ("writes", "synchronisations", "renames", "truncations")
SPEC = EmbeddingSpec("model", "mean", 256, 384)
ONE = experiment()
OLD, NEW = 0, 1
WORKSPACE = [Workspace((Document("d", f"{n} " * 5_000),), {"n": n}) for n in (OLD, NEW)]


class WorkspaceFile:
    """A workspace, whose text and settings change together."""

    def write(self, path, state):
        saved = open_workspace(path).saved_as if path.exists() else ""
        save_workspace(path, replace(WORKSPACE[state], saved_as=saved))

    def read(self, path):
        return WORKSPACE.index(open_workspace(path))


class CacheFile:
    """Vectors of texts: all of a second lot are there, or none, and those of the first are."""

    def vectors(self, state):
        return np.full((20, SPEC.d_model), state + 1, np.float32)

    def write(self, path, state):
        cache = VectorCache(path)
        cache.put_many([f"{state} {n}" for n in range(20)], self.vectors(state), SPEC)
        cache.close()
        if cache.notice:
            raise GlassboxError(cache.notice)

    def read(self, path):
        cache = VectorCache(path)
        found = []
        for state in (OLD, NEW):
            vectors, known = cache.get_many([f"{state} {n}" for n in range(20)], SPEC)
            assert known.all() or not known.any()
            assert (vectors[known] == self.vectors(state)[known]).all()
            found.append(known.all())
        assert not cache.notice
        assert found[OLD]
        return int(found[NEW])


class SweepFile:
    """The rows of a sweep: one, then two."""

    def write(self, path, state):
        n_rows = len(resume(path, "stamp")[0])
        for row in ONE.rows[n_rows : state + 1]:
            append(path, row)

    def read(self, path):
        rows, _ = resume(path, "stamp")
        assert rows == list(ONE.rows[: len(rows)])
        return len(rows) - 1


class ExperimentFile:
    """An experiment that goes on, whose file is written anew."""

    def write(self, path, state):
        os.environ[WORKSPACES] = str(path)
        begin(replace(ONE, rows=ONE.rows[: state + 1]))

    def read(self, path):
        os.environ[WORKSPACES] = str(path)
        [one] = kept_experiments()
        assert one.rows == ONE.rows[: len(one.rows)]
        [_] = (path / EXPERIMENTS).iterdir()  # nothing is left beside it
        return len(one.rows) - 1


def failures(library, file, folder, kind, stays):
    """Let one call after another fail, until none is left to; return how many failed."""
    path, old = folder / "file", folder.with_name("old")
    shutil.rmtree(old, ignore_errors=True)
    old.mkdir()
    file.write(old / "file", OLD)
    for n in range(1, 10_000):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        child = os.fork()
        if not child:
            library.fail(kind, n, stays)
            is_told = False
            try:
                file.write(path, NEW)
            except GlassboxError:
                is_told = True
            except BaseException:
                os._exit(100)  # an error that is not the engine's
            os._exit(2 * library.is_reached() + is_told)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in range(4), (file, KINDS[kind], n, code)
        state = file.read(path)
        assert state == NEW or (state == OLD and code % 2), (file, KINDS[kind], n, state, code)
        if code < 2:
            return n - 1
    raise AssertionError("there is no end of calls")


if __name__ == "__main__":
    library = ctypes.CDLL(None)
    for file in (WorkspaceFile(), CacheFile(), SweepFile(), ExperimentFile()):
        for kind, name in enumerate(KINDS):
            for stays in (0, 1):
                n = failures(library, file, Path(sys.argv[1]), kind, stays)
                print(type(file).__name__, name, n, "and all after" if stays else "alone", flush=True)
