"""What the app withstands, and its limits: ``python -m benchmarks.operations [--kills 6] [--seed 0]``.

The cases of the tests with hostile files and servers, failing system calls, foreign origins, markup, and
sixteen sessions with secrets, counted by how they end. *Ended well* is a sound result or one clear line;
*silently wrong* a result that the case's own check refuses; a *leak* a secret of one session in what another
one receives, in a log or on the disk, or a prompt sent to another address. Then the app is killed by SIGKILL
while it writes, and its files must hold the state before a write or after it.

The limits are read from the code, for servers of one's own and for `GLASSBOX_PUBLIC=1`.
"""

import re
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from benchmarks.command import Benchmark, Result, Table
from benchmarks.kills import STATES, run_kills
from benchmarks.processes import say
from engine import limited_program, verify
from engine.documents import limited_reader, loaders
from engine.documents.formats import archive, outline, pdf, webpage, word
from engine.evaluation import library_model, sweep_store
from engine.generation import bounded_response, chat, chat_program, decoder, server
from engine.limited_process import Limits as ProcessLimits
from engine.retrieval import vector_cache, vector_files
from engine.storage import workspace_file
from engine.tokenizers import patterns
from engine.weights import gguf_file, tensors
from engine.wording import readable_bytes
from pages.documents import files
from pages.improve.poolings import sts
from pages.improve.settings import answers
from ui import jobs, turns
from ui.questions import upload
from ui.server_settings import OWN_LIMITS, PUBLIC_LIMITS

ROOT = Path(__file__).parents[1]
SUITES = {
    "files, models and servers of strangers": ["tests/hostile"],
    "failing and killed writes": [
        "tests/engine/storage",
        "tests/engine/retrieval/stored",
        "tests/engine/test_atomic_write.py",
    ],
    "other hosts and origins, without a browser": ["tests/browser/test_origins.py"],
    "markup, formulas, marks of direction, on every page": ["tests/browser/test_markup.py"],
    "sixteen sessions with secrets at once": ["tests/browser/test_sessions.py"],
}
LEAKS_IN = re.compile(r"test_sessions|test_origins|redirection_is_not_followed")
WELL, TRACEBACKS, HANGS, WRONG, LEAKS = "ended well", "tracebacks", "hangs", "silently wrong", "leaks"
ENDS = (WELL, TRACEBACKS, HANGS, WRONG, LEAKS)
MEGABYTE = 1024**2


class EndCounter:
    """A plugin of pytest that counts how cases end."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter(dict.fromkeys(ENDS, 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case at its end, or where it cannot begin."""
        if report.failed:
            self.ends[end_of(report.nodeid, report.longreprtext)] += 1
        elif report.passed and report.when == "call":
            self.ends[WELL] += 1


def end_of(case: str, text: str) -> str:
    """Return how a case that failed has ended, by its name and the text of its failure."""
    errors = "\n".join(line[1:].strip() for line in text.splitlines() if line.startswith("E "))
    if re.search("too long|[Tt]imeout", errors):
        return HANGS
    if LEAKS_IN.search(case):
        return LEAKS
    kinds = set(re.findall(r"\b(\w+(?:Error|Exception)|Killed)\b", errors))
    return TRACEBACKS if kinds - {"AssertionError"} else WRONG


def count_ends(paths: list[str]) -> dict[str, float]:
    """Run tests, and return how many cases ended how, and the seconds."""
    counter, start = EndCounter(), perf_counter()
    with redirect_stdout(sys.stderr):
        pytest.main([*(str(ROOT / path) for path in paths), "-q", "-p", "no:cacheprovider"], [counter])
    return {**counter.ends, "seconds": perf_counter() - start}


def limits_in_force() -> Iterator[tuple[str, str, str]]:
    """Yield what is limited, and the limits of servers of one's own and of public ones."""

    def both(what: str, limit: object) -> tuple[str, str, str]:
        return what, str(limit), str(limit)

    own, public = OWN_LIMITS, PUBLIC_LIMITS
    yield "a file that the server itself takes", f"{own.workspace_mb} MB", f"{public.workspace_mb} MB"
    yield "a file of documents", f"{own.document_mb} MB", f"{public.document_mb} MB"
    yield (
        "a visitor's documents together",
        f"{own.characters:,} characters",
        f"{public.characters:,} characters",
    )
    yield "cells of a grid", f"{own.cells:,}", f"{public.cells:,}"
    yield "keys and values kept of all visitors' prompts", f"{own.kept_mb:,} MB", f"{public.kept_mb:,} MB"
    yield "reading a file or a pasted text", words_of(own.reading), words_of(public.reading)
    yield both("seconds on the clock for one of computing", limited_program.WALL_S)
    yield both("files read at once", limited_reader.AT_ONCE._initial_value)  # type: ignore[attr-defined]
    yield both("a pasted text", f"{files.MAX_PASTED:,} characters")
    yield both("documents of a file", f"{loaders.MAX_DOCUMENTS:,}")
    yield both("text of a file", f"{loaders.MAX_TEXT:,} characters")
    yield both("members of an archive", f"{archive.MAX_MEMBERS:,}")
    yield both("an archive, unpacked", f"{archive.MAX_UNPACKED // MEGABYTE} MB")
    yield both("a PDF", f"{pdf.MAX_SECONDS:.0f} s, {pdf.MAX_CHARACTERS:,} characters")
    yield both("elements of a web page", f"{webpage.MAX_ELEMENTS:,}")
    yield both("paragraphs of a Word file", f"{word.MAX_PARAGRAPHS:,}")
    yield both("headings of a file", f"{outline.MAX_HEADINGS:,}")
    yield both("questions of a file", f"{upload.MAX_QUESTIONS:,}")
    yield both("questions with answers", f"{answers.MOST_QUESTIONS:,} in {answers.MAX_MEGABYTES} MB")
    yield both("scored pairs", f"{sts.MAX_PAIRS:,} in {sts.MAX_MEGABYTES} MB")
    yield both("vectors brought along, unpacked", readable_bytes(vector_files.MAX_UNPACKED))
    yield both("a table of a workspace", f"{workspace_file.MAX_BYTES // MEGABYTE:,} MB")
    yield both("the vectors kept on disk", f"{vector_cache.MAX_BYTES // MEGABYTE:,} MB")
    yield both("an experiment's file", f"{sweep_store.MAX_BYTES // MEGABYTE:,} MB")
    yield both("a chat template", f"{decoder.MAX_TEMPLATE // MEGABYTE} MB")
    yield both("rendering a prompt", f"{words_of(chat.LIMITS)}, {chat_program.MAX_CHARACTERS:,} characters")
    yield both(
        "a tokenizer's regular expression",
        f"{patterns.MAX_PATTERN:,} characters, {patterns.MAX_SECONDS:.0f} s",
    )
    yield both("JSON of a model", f"{tensors.MAX_JSON // MEGABYTE} MB, {tensors.MAX_JSON_VALUES:,} values")
    yield both(
        "the header of a GGUF file", f"{gguf_file.MAX_HEADER // MEGABYTE} MB, {gguf_file.MAX_VALUES:,} values"
    )
    yield both("an answer of a model server", f"{bounded_response.MAX_BYTES // MEGABYTE} MB")
    yield both(
        "waiting for a model server",
        f"{server.CONNECT_S:.0f} s to connect, {server.SILENCE_S:.0f} s of silence, "
        f"{server.ANSWER_S:,.0f} s in all",
    )
    yield both(
        "the official model, for a text", f"{verify.SECONDS} s, and the memory that is free; one at a time"
    )
    yield both(
        "a model of sentence-transformers, for a block of texts",
        f"{library_model.SECONDS} s, and the memory that is free",
    )
    yield both("a turn at the processor while others wait", f"{turns.SLICE_S:.0f} s")
    yield both("work of a closed tab goes on for", f"{jobs.GONE_S:.0f} s")


def words_of(limits: ProcessLimits) -> str:
    """``90 s and 1,000 MB``."""
    return f"{limits.seconds} s and {limits.megabytes:,} MB"


def run(arguments: Namespace) -> Result:
    """Count how the cases end, and kill the app."""
    suites = {}
    for name, paths in SUITES.items():
        say(f"{name}: {', '.join(paths)}")
        suites[name] = count_ends(paths)
    with tempfile.TemporaryDirectory() as folder:
        kills = run_kills(arguments.kills, Path(folder), arguments.seed)
    ours: dict[str, Any] = {"suites": suites, "kills": kills, "limits": list(limits_in_force())}
    n_cases = sum(int(suite[end]) for suite in suites.values() for end in ENDS)
    return {"workload": f"{n_cases:,} cases, {arguments.kills} kills", "ours": ours}


def tables(result: Result) -> Iterator[Table | str]:
    """Yield the ends of cases, the states after kills, and the limits."""
    suites, kills = result["ours"]["suites"], result["ours"]["kills"]
    rows = [
        [name, *(f"{count}" for count in (sum(suite[end] for end in ENDS), *(suite[end] for end in ENDS)))]
        for name, suite in suites.items()
    ]
    yield Table(["", "cases", *ENDS], rows)
    rows = [
        [name, *(f"{n}" for n in (sum(found[one] for one in STATES[:4]), *(found[one] for one in STATES)))]
        for name, found in kills.items()
    ]
    yield Table(["killed while it writes", "kills", *STATES], rows)
    yield Table(["limit", "own server", "GLASSBOX_PUBLIC=1"], result["ours"]["limits"])


def add_options(parser: ArgumentParser) -> None:
    """Add ``--kills`` and ``--seed``."""
    parser.add_argument(
        "--kills", type=int, default=6, help="how often the app is killed (200: half an hour)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is killed")


BENCHMARK = Benchmark(__doc__, run, tables, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
