"""Memory of the running app: ``python -m benchmarks.memory [--json]``.

A public server with its child processes, while Chromium uses it.

It is the resident set size of Linux, which includes the code of libraries. Models are downloaded and kernels
compiled before.
"""

import os
import tempfile
from argparse import Namespace
from contextlib import ExitStack, suppress
from pathlib import Path
from time import sleep

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from tests.browser.conftest import TITLES, WIDE, go_to, launch, served, settled, visit, window

N_SESSIONS = 8
SETTLING_S = 3.0  # in which memory that is not used any more is given back
READY, PAGES, COMPARED, SESSIONS = (
    "ready to be asked",
    "after a look at every page",
    "after a comparison with the official model",
    f"with {N_SESSIONS} sessions that asked",
)
# MB; the reader's layers have 42 of them.
LIMITS = {READY: 400, PAGES: 700, COMPARED: 700, SESSIONS: 700}
QUESTION = "What happens to text beyond the token limit?"


def memory_mb(process: int) -> float:
    """Return the resident memory of a process and of all its descendants, in MB."""
    return sum(map(resident_bytes, process_tree(process))) / 1e6


def process_tree(process: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):  # it has ended
                found += map(int, children.read_text().split())
    return found


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process, 0 if it has ended."""
    try:
        n_pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0
    return n_pages * os.sysconf("SC_PAGE_SIZE")


def begin_to_ask(page: Page, question: str) -> None:
    """Ask a question without waiting for its answer."""
    page.get_by_role("textbox", name="Your question").fill(question)
    page.keyboard.press("Enter")


def run(arguments: Namespace) -> Result:
    """Play the visitors one after the other on one server; return the megabytes at each stage."""
    ours: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        served(Path(folder) / "log.txt", GLASSBOX_PUBLIC="1") as (app, server),
        ExitStack() as windows,
    ):
        browser = launch(playwright)

        def measure(stage: str) -> None:
            sleep(SETTLING_S)
            ours[stage] = memory_mb(server)
            say(f"{stage}: {ours[stage]:.0f} MB")

        with window(browser, WIDE) as context:
            page = visit(context.new_page(), app)
            measure(READY)
            for title in TITLES.values():
                go_to(page, title)
                say(f"{memory_mb(server):.0f} MB  {title}")
            measure(PAGES)
            go_to(page, TITLES["verify"])
            page.get_by_role("button", name="Compare with the official model").click()
            expect(page.get_by_text("79 of 79")).to_be_visible()
            settled(page)
            measure(COMPARED)
        pages = [
            visit(windows.enter_context(window(browser, WIDE)).new_page(), app) for _ in range(N_SESSIONS)
        ]
        for page in pages:
            begin_to_ask(page, QUESTION)
        for page in pages:
            expect(page.get_by_role("tab", name="Sources")).to_be_visible()
            settled(page)
        measure(SESSIONS)
        browser.close()
    return {"workload": "the bundled documents and models", "ours": ours, "limit": LIMITS}


def table(result: Result) -> Table:
    """Tabulate the megabytes at each stage, and the most that they should be."""
    ours, limit = result["ours"], result["limit"]
    return Table(
        ["", "MB", "aim, at most"], [[stage, f"{mb:.0f}", f"{limit[stage]}"] for stage, mb in ours.items()]
    )


BENCHMARK = Benchmark(__doc__, run, table)


if __name__ == "__main__":
    BENCHMARK.main()
