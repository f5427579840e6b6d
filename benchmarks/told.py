"""Waits as announced and as measured: ``python -m benchmarks.told [--json] [--only NAME …]``.

Chromium presses each button that begins long work: the seconds that the app announces, and those until the
work has ended. Nothing of the kind was done by the app before.

The corpus is a megabyte of sentences of the bundled documents, drawn by a seed and in a file of its own, or
the bundled documents where the work needs their labelled questions.
"""

import argparse
import re
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from benchmarks.texts import drawn_sentences
from engine.documents.loaders import BUNDLED_CORPUS
from tests.browser.conftest import WIDE, drawn, fill_area, fill_in, launch, open_tab, served, visit, window
from ui.current import PASTED

BYTES, FACTOR, ASKED = 1_000_000, 1.5, 0.9  # of the corpus; the largest ratio, in this share of the rows
PATIENCE_MS = 60_000  # until a button can be pressed
ABOUT = re.compile(r"about (?:(\d+) h )?(?:(\d+) min )?(?:(\d+) s)?")
EMBED = "Embed them"
QUESTION = "What does the CarbFix project do with carbon dioxide?"
FAULT = "Skip the scaling by √d_head"


@dataclass(frozen=True)
class Work:
    """A button that begins work on a page, and the key of what is drawn until its end."""

    address: str
    button: str  # the beginning of its label
    box: str
    query: Mapping[str, str] = field(default_factory=dict)
    is_uploaded: bool = False  # whether it works on the megabyte
    prepare: Callable[[Page], object] = lambda page: None
    is_next_to: bool = False  # whether the price stands next to the button, not on it


def press(label: str) -> Callable[[Page], None]:
    """Return how to press a button or a choice before the work, by its text."""

    def pressed(page: Page) -> None:
        page.get_by_test_id("stMain").get_by_text(label, exact=True).first.click()
        drawn(page)

    return pressed


def asked(page: Page) -> None:
    """Ask a question, and wait for its answer."""
    fill_in(page, "Your question", QUESTION)
    expect(page.locator(".st-key-answer")).to_be_visible(timeout=PATIENCE_MS)


def broken(page: Page) -> None:
    """Ask the broken model a question."""
    fill_in(page, "Question", QUESTION)
    press(FAULT)(page)


def folder_named(page: Page) -> None:
    """Name a new folder for an index of the bundled documents."""
    page.get_by_text("An index on this computer").click()
    fill_in(page, "Folder of the index", tempfile.mkdtemp())
    fill_in(page, "Files to index", str(BUNDLED_CORPUS))


def wronged(page: Page) -> None:
    """Diagnose a question that no passage answers so, which no cure helps."""
    press(PASTED)(page)
    fill_in(page, "Your question", QUESTION)
    fill_area(page, "The passage", next(drawn_sentences()).partition(" (")[0])
    fill_in(page, "The right answer, if you know its words", "Zanzibar")


SMALL = {"chunk_tokens": "16", "splitter": "fixed", "overlap": "0"}  # many chunks to compare
health, kinds, drafts = (partial(open_tab, name=name) for name in ("Health", "Index", "Drafts"))
WORKS = {
    "embedding": Work("documents", EMBED, "embedding-progress", is_uploaded=True, prepare=health),
    "embedding for poolings": Work(
        "poolings",
        EMBED,
        "embedding-progress",
        is_uploaded=True,
        prepare=partial(open_tab, name="Your question"),
    ),
    "Health": Work(
        "documents", "Compare all chunks", "health-progress", SMALL, is_uploaded=True, prepare=health
    ),
    "kinds of index": Work(
        "documents", "Compare all kinds", "kinds-progress", SMALL, is_uploaded=True, prepare=kinds
    ),
    "late chunking": Work("late", "Read it in context", "late-progress", is_uploaded=True),
    "Break it": Work("broken", EMBED, "embedding-progress", is_uploaded=True, prepare=broken),
    "Verify": Work("verify", "Compare with the official model", "verify-progress"),
    "drafts": Work("questions", "Draft 60", "drafts-progress", prepare=drafts, is_next_to=True),
    "Best settings": Work("settings", "Run the grid", "experiment-progress", is_next_to=True),
    "tuning the search": Work("tuning", "Train", "tuning-progress", is_next_to=True),
    "tuning the reader": Work(
        "tuning", "Train", "reader-tuning-progress", prepare=press("The reader"), is_next_to=True
    ),
    "an answer in sentences": Work("", "Have", "stop", prepare=asked, is_next_to=True),
    "an index in a folder": Work(
        "documents", "Write or update", "index", prepare=folder_named, is_next_to=True
    ),
    "the other cures": Work("diagnose", "Try the other cures", "cures-progress", prepare=wronged),
    "a decoder from scratch": Work("decoder", "Train", "lab-decoder-pause", is_next_to=True),
}


def corpus(path: Path) -> Path:
    """Write sentences of the bundled documents, drawn by a seed, each with its number."""
    sentences, kept = drawn_sentences(), ""
    while len(kept) < BYTES:
        kept += next(sentences) + " "
    path.write_text(kept, "utf-8")
    return path


def seconds_of(text: str) -> float:
    """``"Embed them · about 1 min 5 s" -> 65``; 0 where nothing is told."""
    if not (found := ABOUT.search(text)):
        return 0.0
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(3600 * hours + 60 * minutes + seconds)


@contextmanager
def opened(browser: Browser, folder: Path, work: Work, file: Path) -> Iterator[Page]:
    """The page of some work, in an app of its own, ready for its button to be pressed."""
    with window(browser, WIDE) as context, served(folder / "log.txt") as (url, _):
        page = visit(context.new_page(), url, work.address, **work.query)
        if work.is_uploaded:
            page.locator("input[type=file]").first.set_input_files([file])
            expect(page.get_by_text("The samples are not searched").first).to_be_visible()
            drawn(page)
        work.prepare(page)
        embed = page.get_by_test_id("stMain").get_by_role("button", name=EMBED)
        if work.button != EMBED and embed.count():
            embed.click()
            wait_until_done(page, page.locator(".st-key-embedding-progress"))
        yield page


def wait_until_done(page: Page, box: Locator) -> None:
    """Wait until the progress of some work has come and gone; short work may be over before it is seen."""
    drawn(page)
    while box.count():
        page.wait_for_timeout(200)
        if not box.count():
            drawn(page)


def measure(browser: Browser, folder: Path, work: Work, file: Path) -> dict[str, float]:
    """Press the button of some work; return the seconds that were told, and those that it took."""
    with opened(browser, folder, work, file) as page:
        main = page.get_by_test_id("stMain")
        button = main.locator("button").filter(has_text=work.button).first
        expect(button).to_be_visible(timeout=PATIENCE_MS)
        drawn(page)
        said = main.get_by_text(re.compile("about .*\\d s")) if work.is_next_to else button
        told = max(map(seconds_of, said.all_inner_texts()), default=0.0)
        begun = monotonic()
        button.click()
        wait_until_done(page, page.locator(f".st-key-{work.box}"))
        return {"told": told, "measured": monotonic() - begun}


def run(arguments: Namespace) -> Result:
    """Measure all works, or some."""
    rows = {}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder, browser = Path(temporary), launch(playwright)
        file = corpus(folder / "drawn.txt")
        for name in arguments.only or WORKS:
            rows[name] = measure(browser, folder, WORKS[name], file)
            say(f"{name}: {rows[name]}")
        browser.close()
    within = [1 / FACTOR <= row["told"] / row["measured"] <= FACTOR for row in rows.values()]
    return {
        "workload": f"{len(rows)} buttons, {BYTES / 1e6:.0f} MB or the bundled documents",
        "ours": {"rows": rows, "share_within": sum(within) / len(within)},
        "limit": {"ratio": FACTOR, "share_within": ASKED},
    }


def table(result: Result) -> Table:
    """Tabulate told and measured seconds of each button."""
    rows = [
        [name, f"{row['told']:.0f}", f"{row['measured']:.1f}", f"{row['told'] / row['measured']:.2f}"]
        for name, row in result["ours"]["rows"].items()
    ]
    return Table(["work", "seconds told", "measured", "told ÷ measured"], rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the choice of some works."""
    parser.add_argument("--only", nargs="+", choices=[*WORKS], metavar="NAME", help="some of the works")


BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
