"""What a person waits for: ``python -m benchmarks.waits [--json] [--corpus FOLDER]``.

Chromium uses the app, models downloaded and kernels compiled before: seconds until the result is in sight,
processor time and peak memory.

The first answer counts from the start of the app. Ten megabytes are drawn sentence by sentence from the
bundled documents, by a seed; a folder of text files may be given beside them. All vectors count from the
upload. Then one, four and twelve people ask about the samples within five seconds, each another question:
they speak the browser's protocol, as twelve browsers would take the cores from the app. Every page is
opened twice, with the samples and with the folder.
"""

import argparse
import os
import tempfile
import threading
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.command import Benchmark, Result, Table
from benchmarks.memory import begin_to_ask, memory_mb, process_tree
from benchmarks.processes import say
from benchmarks.texts import drawn_sentences
from engine.documents.loaders import BUNDLED_CORPUS
from engine.evaluation.answers import load_answer_questions
from tests.browser.conftest import TITLES, WIDE, drawn, go_to, launch, served, visit, window
from tests.browser.visitor import Visitor, visiting
from ui.server_settings import WORKSPACES

FIRST, SECOND = ", first visit", ", second visit"
PAGES = Path(__file__).parent / "pages"
SAMPLES = BUNDLED_CORPUS.parent / "samples"
FIRST_PAGE, FIRST_ANSWER = "first page", "first answer"
PEOPLE, WITHIN_S = (1, 4, 12), 5
BYTES, SENTENCES = 10_000_000, 5_000  # of all files, and of one
POLL_S, PATIENCE_MS = 0.2, 3_600_000
QUESTION = "What does the CarbFix project do with carbon dioxide?"
OTHER_QUESTION = "What is said about the energy of Stockholm?"


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process and of all its descendants, those that have ended included."""
    total = 0
    for each in process_tree(process):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


class Waits:
    """The rows of the table: seconds, processor time and memory of the app while a person waits."""

    def __init__(self, process: int) -> None:
        self.process, self.rows = process, dict[str, dict[str, float]]()

    @contextmanager
    def measured(self, name: str, since: float | None = None) -> Iterator[None]:
        """Measure a block, which began at a time if it is given."""
        begun, before, ended = since or monotonic(), cpu_seconds(self.process), threading.Event()
        peak = [0.0]

        def watch() -> None:
            while not ended.wait(POLL_S):
                peak[0] = max(peak[0], memory_mb(self.process))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            seconds = monotonic() - begun
            ended.set()
            watcher.join()
        peak[0] = max(peak[0], memory_mb(self.process))
        cpu = cpu_seconds(self.process) - (0 if since else before)
        self.rows[name] = {"seconds": seconds, "cpu_s": cpu, "peak_mb": peak[0]}
        say(f"{name}: {seconds:.1f} s, {cpu:.1f} CPU-s, {peak[0]:.0f} MB")


def large_corpus(folder: Path) -> list[Path]:
    """Write files of `BYTES` in all, of sentences drawn from the bundled documents, each with its number."""
    sentences, files, n_bytes = drawn_sentences(), list[Path](), 0
    while n_bytes < BYTES:
        path = folder / f"drawn_{len(files)}.txt"
        n_bytes += path.write_text(" ".join(islice(sentences, SENTENCES))[: BYTES - n_bytes], "utf-8")
        files.append(path)
    return files


def upload(page: Page, files: list[Path]) -> None:
    """Upload files on the first page."""
    page.locator("input[type=file]").set_input_files(files)


def wait_for_vectors(page: Page) -> None:
    """Wait until all chunks have vectors; a page that is being drawn anew lacks the box for a moment.

    It is looked at every second, as looking more often takes a tenth of a core from the app.
    """
    drawn(page)
    while page.locator(".st-key-embedding-progress").count():
        page.wait_for_timeout(1000)
        drawn(page)


def measure_start(browser: Browser, folder: Path) -> dict[str, dict[str, float]]:
    """Start the app, open its first page, and pick an example."""
    begun = monotonic()
    with window(browser, WIDE) as context, served(folder / "start.txt", **{WORKSPACES: f"{folder}/0"}) as app:
        page, waits = context.new_page(), Waits(app[1])
        with waits.measured(FIRST_PAGE, begun):
            visit(page, app[0])
        with waits.measured(FIRST_ANSWER):
            page.get_by_test_id("stButtonGroup").get_by_role("radio").first.click()
            expect(page.locator("blockquote mark").first).to_be_visible()
        waits.rows[FIRST_ANSWER]["seconds"] += waits.rows[FIRST_PAGE]["seconds"]
    return waits.rows


def measure_uploads(
    browser: Browser, folder: Path, name: str, files: list[Path], pages: bool = False, in_8_bits: bool = False
) -> dict[str, dict[str, float]]:
    """Upload files, ask a question at once, wait for all vectors, and open every page if so asked."""
    with (
        window(browser, WIDE) as context,
        served(folder / "uploads.txt", **{WORKSPACES: f"{folder}/{name}"}) as (url, process),
    ):
        page, waits = visit(context.new_page(), url), Waits(process)
        begun = monotonic()
        caption = page.get_by_test_id("stMain").get_by_text(f"{len(files):,} documents · ")
        with waits.measured(f"{name}: searchable"):
            upload(page, files)
            expect(caption).to_be_visible(timeout=PATIENCE_MS)
        if in_8_bits:
            faster = page.get_by_role("button", name="In 8 bits")
            faster.click()
            expect(faster).to_have_count(0)
        with waits.measured(f"{name}: a question at once"):
            begin_to_ask(page, QUESTION)
            expect(page.locator(".st-key-answer")).to_be_visible(timeout=PATIENCE_MS)
        with waits.measured(f"{name}: all vectors"):
            wait_for_vectors(page)
        waits.rows[f"{name}: all vectors"]["seconds"] = monotonic() - begun
        with waits.measured(f"{name}: a question"):
            begin_to_ask(page, OTHER_QUESTION)
            expect(page.get_by_role("heading", name=OTHER_QUESTION)).to_be_visible(timeout=PATIENCE_MS)
        if pages:
            visit_pages(page, waits, name)
    return waits.rows


def visit_pages(page: Page, waits: Waits, corpus: str) -> None:
    """Open every page but the first twice."""
    for visited in (FIRST, SECOND):
        for title in TITLES.values():
            if title != TITLES[""]:
                with waits.measured(f"{corpus}: {title}{visited}"):
                    go_to(page, title)


def measure_people(url: str, waits: Waits) -> None:
    """Have several people ask about the samples, each another question, one shortly after the other."""

    def ask(visitor: Visitor, question: str, after: float) -> float:
        sleep(after)
        begun = monotonic()
        shown = visitor.run(**{"Your question": question, "Ask": None})
        while "Sources" not in shown:  # a browser asks for the page again, too
            shown = visitor.run()
        return monotonic() - begun

    for n_people in PEOPLE:
        with ExitStack() as stack, ThreadPoolExecutor(n_people) as pool:
            visitors = [stack.enter_context(visiting(url)) for _ in range(n_people)]
            for visitor in visitors:
                visitor.open()
            questions = [one.text for one in load_answer_questions()[:n_people]]
            times = [number * WITHIN_S / n_people for number in range(n_people)]
            with waits.measured(name := f"{n_people} ask within {WITHIN_S} s"):
                seconds = list(pool.map(ask, visitors, questions, times))
        row = waits.rows.pop(name)
        for which, of_all in (("median", median(seconds)), ("longest", max(seconds))):
            waits.rows[f"{name}: {which}"] = row | {"seconds": of_all}


def measure_samples(browser: Browser, folder: Path) -> dict[str, dict[str, float]]:
    """Have people ask about the samples, then open every page."""
    with served(folder / "people.txt", **{WORKSPACES: f"{folder}/people"}) as (url, process):
        waits = Waits(process)
        measure_people(url, waits)
        with window(browser, WIDE) as context:
            visit_pages(visit(context.new_page(), url), waits, "samples")
    return waits.rows


def run(arguments: Namespace) -> Result:
    """Play all visitors, each with an app of its own."""
    small = [*sorted(PAGES.iterdir()), *sorted(SAMPLES.iterdir())]
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder, browser = Path(temporary), launch(playwright)
        drawn = folder / "drawn"
        drawn.mkdir()
        ours: dict[str, Any] = measure_start(browser, folder)
        ours |= measure_uploads(browser, folder, f"{len(small)} files", small)
        large = large_corpus(drawn)
        ours |= measure_uploads(browser, folder, "10 MB", large)
        ours |= measure_uploads(browser, folder, "10 MB in 8 bits", large, in_8_bits=True)
        workload = f"{len(small)} small files, {len(large)} with 10 MB"
        if arguments.corpus is not None:
            brought = sorted(arguments.corpus.iterdir())
            name = f"{len(brought):,} files in 8 bits"
            ours |= measure_uploads(browser, folder, name, brought, pages=True, in_8_bits=True)
            n_bytes = sum(path.stat().st_size for path in brought)
            workload += f", {name} with {n_bytes / 1e6:.0f} MB"
        ours |= measure_samples(browser, folder)
        browser.close()
    return {"workload": workload, "ours": ours}


def table(result: Result) -> Table:
    """Tabulate what a person waits for; of the visits of pages, the slowest."""
    found, visits = dict[str, dict[str, float]](), defaultdict[str, dict[str, dict[str, float]]](dict)
    for name, row in result["ours"].items():
        corpus, _, page = name.partition(": ")
        if page.endswith((FIRST, SECOND)):
            visits[f"{corpus}, {page.rpartition(', ')[2]}"][page.rpartition(", ")[0]] = row
        else:
            found[name] = row
    for kind, pages in visits.items():
        slowest = max(pages, key=lambda page: pages[page]["seconds"])
        found[f"slowest of {len(pages)} pages with {kind}: {slowest}"] = pages[slowest]
    rows = [
        [name, *(f"{row[key]:.1f}" for key in ("seconds", "cpu_s")), f"{row['peak_mb']:.0f}"]
        for name, row in found.items()
    ]
    return Table(["", "seconds", "CPU-seconds", "peak MB"], rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option of another corpus."""
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="text files beside the 10 MB")


BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
