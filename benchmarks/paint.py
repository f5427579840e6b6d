"""How fast many files are read, split and painted: ``python -m benchmarks.paint [--json] [--rounds 1]``.

1,000 files of ten pages, a fifth each of text, Markdown, HTML, Word and PDF, are read, cut into chunks of 512
tokens with an overlap of 64, and painted as on the page of documents.

The text is that of ``benchmarks.chunk``. Every part of every document is painted under the limit of 256
tokens, so that half of each chunk is struck through. Documents and chunks are kept, as in the app; the peak
is of the whole process. Seconds are medians over the rounds.
"""

import html
import io
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import docx

from benchmarks.chunk import DOCUMENT_PAGES, N_DOCUMENTS, PAGE, varied_text
from benchmarks.command import Benchmark, Result
from benchmarks.processes import memory, pin, say
from engine.documents.loaders import read_corpus
from engine.documents.splitters import Splitting, split
from engine.documents.unread_text import read_ends
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from pages.documents.chunks import PART
from tests.pdf_file import make_pdf
from ui.chunk_paint import near_to, painted

SPLITTING = Splitting("fixed", 512, 64)
LIMIT, LINE = 256, 90


def lines_of(text: str) -> list[str]:
    """Cut text into lines of ASCII without characters that a PDF has to escape."""
    plain = text.encode("ascii", "ignore").decode().translate(str.maketrans("()\\\n", "[]/ "))
    return [plain[start : start + LINE] for start in range(0, len(plain), LINE)]


def pdf(pages: list[str]) -> bytes:
    """Make a PDF of the pages."""
    return make_pdf(*("\n".join(lines_of(page)) for page in pages))


def word(pages: list[str]) -> bytes:
    """Make a Word file of the pages, each under a heading."""
    document, buffer = docx.Document(), io.BytesIO()
    for number, page in enumerate(pages, 1):
        document.add_heading(f"Page {number}")
        for paragraph in page.split("\n\n"):
            document.add_paragraph(paragraph)
    document.save(buffer)
    return buffer.getvalue()


def markdown(pages: list[str]) -> bytes:
    """Make a Markdown file of the pages, each under a heading."""
    return "".join(f"# Page {number}\n\n{page}\n\n" for number, page in enumerate(pages, 1)).encode()


def webpage(pages: list[str]) -> bytes:
    """Make a web page of the pages, each under a heading."""
    bodies = (f"<h1>Page {number}</h1><p>{html.escape(page)}</p>" for number, page in enumerate(pages, 1))
    return f"<html><body>{''.join(bodies)}</body></html>".encode()


KINDS: dict[str, Callable[[list[str]], bytes]] = {
    "txt": lambda pages: "\n\n".join(pages).encode(),
    "md": markdown,
    "html": webpage,
    "docx": word,
    "pdf": pdf,
}


def write_files(folder: Path) -> None:
    """Write the documents, of each kind in turn."""
    text, size = varied_text(N_DOCUMENTS * DOCUMENT_PAGES * PAGE), DOCUMENT_PAGES * PAGE
    for n in range(N_DOCUMENTS):
        own = text[n * size : (n + 1) * size]
        pages = [own[start : start + PAGE] for start in range(0, size, PAGE)]
        kind = list(KINDS)[n % len(KINDS)]
        (folder / f"{n:04}.{kind}").write_bytes(KINDS[kind](pages))


def read_split_paint(folder: str) -> dict[str, Any]:
    """Read, split and paint the files of a folder; return time and memory."""
    tokenizer = WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")
    tokenizer.ids_batch([""])  # loads the compiled library
    idle, times = memory("VmRSS"), [time.perf_counter()]
    documents = read_corpus(Path(folder)).documents
    times.append(time.perf_counter())
    cut = [split(document, tokenizer, SPLITTING) for document in documents]
    times.append(time.perf_counter())
    n_painted, slowest = 0, 0.0
    for document, chunks in zip(documents, cut, strict=True):
        for start in range(0, len(document.text), PART):
            begin, end = time.perf_counter(), min(start + PART, len(document.text))
            near = near_to(chunks, start, end)
            stops = read_ends([chunks[number] for number in near], tokenizer, LIMIT)
            n_painted += len(painted(document, chunks, dict(zip(near, stops, strict=True)), start, end))
            slowest = max(slowest, time.perf_counter() - begin)
    times.append(time.perf_counter())
    seconds = {name: times[i + 1] - times[i] for i, name in enumerate(("read", "split", "painted"))}
    return {
        "s": seconds,
        "documents": len(documents),
        "chunks": sum(map(len, cut)),
        "html_mb": n_painted / 1e6,
        "slowest_part_ms": 1000 * slowest,
        "idle_mb": idle,
        "peak_mb": memory("VmHWM"),
    }


def run(arguments: Namespace) -> Result:
    """Write the files and measure, each round in a process of its own."""
    pin()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        say("writing the files")
        write_files(Path(folder))
        for turn in range(arguments.rounds):
            say(f"round {turn + 1}")
            with get_context("spawn").Pool(1) as process:  # of its own, since memory is measured
                results.append(process.apply(read_split_paint, (folder,)))
    ours = results[-1]
    ours["s"] = {name: statistics.median(each["s"][name] for each in results) for name in ours["s"]}
    workload = f"{ours['documents']:,} documents of {DOCUMENT_PAGES} pages in {ours['chunks']:,} chunks"
    return {"workload": workload, "ours": ours}


def tables(result: Result) -> Iterator[str]:
    """Yield times and memory in words."""
    ours = result["ours"]
    yield ", ".join(f"{name} in {seconds:.1f} s" for name, seconds in ours["s"].items())
    yield f"the slowest part of a document took {ours['slowest_part_ms']:.0f} ms to paint"
    yield f"memory: {ours['peak_mb']:.0f} MB at most, {ours['idle_mb']:.0f} MB before the first file"


BENCHMARK = Benchmark(__doc__, run, tables, rounds=1)


if __name__ == "__main__":
    BENCHMARK.main()
