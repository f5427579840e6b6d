"""How fast documents are split: ``python -m benchmarks.chunk [--json] [--rounds 5]``.

Glassbox ("fixed", with exact spans), LangChain's split_text_on_tokens and Chonkie's TokenChunker (which
give decoded text) cut the same 10 MB into chunks of 128 tokens of all-MiniLM-L6-v2 with an overlap of 16,
on the same two cores, taking turns; each in a process of its own. The text is the bundled corpus again and
again, in which one word in ten is made of the halves of two others. Then 1,000 documents of ten pages.
Figures are medians over the rounds; peaks are of all that a process did until then. ``redraw_ms`` is what
another size costs once a text is measured, for each method: for a document of 200 pages, and for the 10 MB.
The limit is what the `tokenizers` library alone needs for the same lines on all cores. The peers come with
``pip install -r benchmarks/requirements.txt``.
"""

import json
import random
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chunkers import CHUNK_TOKENS, CONTESTANTS, OVERLAP
from benchmarks.processes import CORES, Served, environment, pin, read_arguments, say
from engine.documents.document import Document, Section
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import METHODS, Splitting, split
from engine.documents.token_spans import measure
from engine.layers.tracing import Array
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

OURS, LIMIT = "glassbox", "tokenizers alone"
CHARACTERS, PAGE = 10_000_000, 3000
N_DOCUMENTS, DOCUMENT_PAGES, LONG_PAGES = 1000, 10, 200
NEW_WORDS = 0.1
REDRAWN_TOKENS = 64


def varied_text(n_characters: int, seed: int = 0) -> str:
    """Repeat the bundled corpus; one word in ten is made of the halves of two others."""
    corpus = "\n\n".join(document.text for document in load_corpus(BUNDLED_CORPUS))
    generator = random.Random(seed)
    words = sorted(set(re.findall(r"[A-Za-z]{4,}", corpus)))

    def varied(match: re.Match[str]) -> str:
        if generator.random() >= NEW_WORDS:
            return match.group()
        first, last = generator.choice(words), generator.choice(words)
        return first[: len(first) // 2] + last[len(last) // 2 :]

    parts: list[str] = []
    while sum(map(len, parts)) < n_characters:
        parts.append(re.sub(r"[A-Za-z]+", varied, corpus) + "\n\n")
    return "".join(parts)[:n_characters]


def take_turns(names: list[str], rounds: int, scratch: Path) -> dict[str, Any]:
    """Let the contestants take turns; return their answers for the one text and for the documents."""
    folder, env, errors = str(model_path(DEFAULT_ENCODER)), environment(), scratch / "errors.txt"
    running = {name: Served("benchmarks.chunkers", [name, folder], env, errors) for name in names}
    answers: dict[str, dict[str, list[Any]]] = {name: {"text": [], "documents": []} for name in names}
    orders = {
        "text": {"path": str(scratch / "text"), "documents": 1},
        "documents": {"path": str(scratch / "documents"), "documents": N_DOCUMENTS},
    }
    for kind, order in orders.items():
        for turn in range(rounds if kind == "text" else 1):
            for name in names:
                say(f"{kind}, round {turn + 1}: {name}")
                answers[name][kind].append(running[name].ask(order))
    for served in running.values():
        served.stop()
    return answers


def redraw(text: str) -> dict[str, float]:
    """Milliseconds that another size costs, for each method; the vectors of sentences are made up."""
    tokenizer = WordPieceTokenizer(model_path(DEFAULT_ENCODER) / "tokenizer.json")
    tokens = measure(text, tokenizer)
    sections = tuple(Section(place, (f"Page {place}",)) for place in range(0, len(text), PAGE))
    document = Document("d", text, sections=sections)

    def embed(texts: Any) -> Array:
        return np.random.default_rng(0).standard_normal((len(texts), 8)).astype(np.float32)

    found = {}
    for method in METHODS:
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            split(document, tokenizer, Splitting(method, REDRAWN_TOKENS, OVERLAP), embed, tokens)
            seconds.append(time.perf_counter() - begin)
        found[method] = 1000 * statistics.median(seconds)
    return found


def report(answers: dict[str, Any], redrawn: dict[str, Any]) -> dict[str, Any]:
    """Make figures of what was measured."""

    def seconds(name: str, kind: str) -> list[float]:
        return [answer["s"] for answer in answers[name][kind]]

    def figures(name: str) -> dict[str, Any]:
        return {
            "s": statistics.median(seconds(name, "text")),
            "chunks": answers[name]["text"][-1]["chunks"],
            "peak_mb": answers[name]["text"][-1]["peak_mb"],
            "documents_s": statistics.median(seconds(name, "documents")),
            "documents_peak_mb": answers[name]["documents"][-1]["peak_mb"],
        }

    def ratio(name: str, kind: str) -> float:
        pairs = zip(seconds(OURS, kind), seconds(name, kind), strict=True)
        return statistics.median(theirs / mine for mine, theirs in pairs)

    return {
        "workload": (
            f"{CHARACTERS / 1e6:.0f} MB in one text; {N_DOCUMENTS} documents of {DOCUMENT_PAGES} pages; "
            f"chunks of {CHUNK_TOKENS} tokens, overlap {OVERLAP}, on {CORES} cores"
        ),
        "ours": figures(OURS) | {"redraw_ms": redrawn},
        "peers": {
            name: figures(name) | {"ratio": ratio(name, "text"), "documents_ratio": ratio(name, "documents")}
            for name in answers
            if name not in (OURS, LIMIT)
        },
        "limit": {
            "tokenizers_alone_s": statistics.median(seconds(LIMIT, "text")),
            "ratio": ratio(LIMIT, "text"),
        },
    }


def print_table(result: dict[str, Any]) -> None:
    """Print the figures for people."""
    print(result["workload"])
    names = f"{'text s':>9}{'ratio':>7}{'chunks':>8}{'peak MB':>9}{'docs s':>9}{'ratio':>7}{'peak MB':>9}"
    print(f"\n{'':18}{names}")
    for name, row in {OURS: result["ours"], **result["peers"]}.items():
        ratios = [f"{row[key]:7.2f}" if key in row else " " * 7 for key in ("ratio", "documents_ratio")]
        print(
            f"{name:18}{row['s']:9.2f}{ratios[0]}{row['chunks']:8}{row['peak_mb']:9.0f}"
            f"{row['documents_s']:9.2f}{ratios[1]}{row['documents_peak_mb']:9.0f}"
        )
    limit = result["limit"]
    print(f"{LIMIT:18}{limit['tokenizers_alone_s']:9.2f}{limit['ratio']:7.2f}")
    for length, times in result["ours"]["redraw_ms"].items():
        each = ", ".join(f"{method} {ms:.0f}" for method, ms in times.items())
        print(f"\nmilliseconds to another size, {length}: {each}")


def main() -> None:
    """Measure and print."""
    arguments = read_arguments(__doc__, rounds=5)
    pin()
    text = varied_text(N_DOCUMENTS * DOCUMENT_PAGES * PAGE)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "text").write_text(text[:CHARACTERS], encoding="utf-8")
        (scratch / "documents").write_text(text, encoding="utf-8")
        answers = take_turns(list(CONTESTANTS), arguments.rounds, scratch)
    redrawn = {f"{LONG_PAGES} pages": redraw(text[: LONG_PAGES * PAGE]), "10 MB": redraw(text[:CHARACTERS])}
    result = report(answers, redrawn)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
