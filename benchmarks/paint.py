"""Many documents read, split and painted: ``python -m benchmarks.paint [--json] [--rounds 1]``.

1,000 files of ten pages, a fifth each of text, Markdown, HTML, Word and PDF, with the text that
``benchmarks.chunk`` uses. Each is read; all are cut into chunks of 512 tokens with an overlap of 64; and
every part of every document is painted as the page of documents does it, under the limit of 256 tokens, so
that half of each chunk is struck through. Documents and chunks are kept, as the app keeps them; the peak is
of the whole process. Seconds are medians over the rounds.
"""

import html
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import docx

from benchmarks.chunk import DOCUMENT_PAGES, N_DOCUMENTS, PAGE, varied_text
from benchmarks.processes import memory, pin, read_arguments, say
from engine.documents.budget import read_ends
from engine.documents.loaders import read_corpus
from engine.documents.splitters import Splitting, split
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.pdf_file import make_pdf
from ui.chunk_paint import near_to, painted
from ui.documents_chunks import PART

SPLITTING = Splitting("fixed", 512, 64)
LIMIT, LINE = 256, 90


def lines_of(text: str) -> list[str]:
    """Cut text into lines of ASCII without what a PDF would have to escape."""
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
    """Read, split and paint the files of a folder; return what it took."""
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


def main() -> None:
    """Measure and print."""
    arguments = read_arguments(__doc__, rounds=1)
    pin()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        say("writing the files")
        write_files(Path(folder))
        for turn in range(arguments.rounds):
            say(f"round {turn + 1}")
            with get_context("spawn").Pool(1) as process:  # memory is measured, so each has its own
                results.append(process.apply(read_split_paint, (folder,)))
    result = results[-1]
    result["s"] = {name: statistics.median(each["s"][name] for each in results) for name in result["s"]}
    if arguments.json:
        print(json.dumps(result))
        return
    each = ", ".join(f"{name} in {seconds:.1f} s" for name, seconds in result["s"].items())
    print(f"{result['documents']} documents, {result['chunks']} chunks: {each}")
    print(f"the slowest part of a document took {result['slowest_part_ms']:.0f} ms to paint")
    print(f"memory: {result['peak_mb']:.0f} MB at the most, {result['idle_mb']:.0f} MB before the first file")


if __name__ == "__main__":
    main()
