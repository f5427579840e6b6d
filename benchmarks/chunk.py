"""How fast documents are split: ``python -m benchmarks.chunk [--json] [--rounds 5]``.

Glassbox, LangChain and Chonkie cut the same texts by the tokens of all-MiniLM-L6-v2.

Glassbox cuts by "fixed" with exact spans; LangChain's split_text_on_tokens and Chonkie's TokenChunker return
decoded text. The contestants take turns on the same two cores, each in a process of its own. The text repeats
the bundled corpus with one word in ten made of the halves of two others. Figures are medians over the rounds;
peaks are of the whole process so far. The limit is the time that the `tokenizers` library alone needs for the
same lines on all cores. The peers come with ``pip install -r benchmarks/requirements.txt``.
"""

import random
import re
import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from benchmarks.chunkers import CHUNK_TOKENS, CONTESTANTS, OVERLAP
from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.processes import CORES, Lineup, Served, environment, pin, say
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

LIMIT = "tokenizers alone"
CHARACTERS, PAGE = 10_000_000, 3000
N_DOCUMENTS, DOCUMENT_PAGES = 1000, 10
NEW_WORDS = 0.1


def varied_text(n_characters: int) -> str:
    """Repeat the bundled corpus; one word in ten is made of the halves of two others."""
    corpus = "\n\n".join(document.text for document in load_corpus(BUNDLED_CORPUS))
    generator = random.Random(0)
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


def take_turns(lineup: Lineup, rounds: int, scratch: Path) -> dict[str, Any]:
    """Run the contestants in turn; return their answers for the one text and for the documents."""
    folder, env, errors = str(model_path(DEFAULT_ENCODER)), environment(), scratch / "errors.txt"
    running: dict[str, Served] = {}
    for name in lineup:
        with lineup.turn(name):
            running[name] = Served("benchmarks.chunkers", [name, folder], env, errors)
    answers: dict[str, dict[str, list[Any]]] = {name: {"text": [], "documents": []} for name in lineup}
    orders = {
        "text": {"path": str(scratch / "text"), "documents": 1},
        "documents": {"path": str(scratch / "documents"), "documents": N_DOCUMENTS},
    }
    for kind, order in orders.items():
        for turn in range(rounds if kind == "text" else 1):
            for name in lineup:
                say(f"{kind}, round {turn + 1}: {name}")
                with lineup.turn(name):
                    answers[name][kind].append(running[name].ask(order))
    for name in lineup:
        running[name].stop()
    return {name: answers[name] for name in lineup}


def figures_of(answers: dict[str, Any], ended: dict[str, Any]) -> Result:
    """Return the figures of what was measured, and how contestants ended."""

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
        return median_ratio(seconds(name, kind), seconds(OURS, kind))

    return {
        "workload": (
            f"{CHARACTERS / 1e6:.0f} MB in one text; {N_DOCUMENTS} documents of {DOCUMENT_PAGES} pages; "
            f"chunks of {CHUNK_TOKENS} tokens, overlap {OVERLAP}, on {CORES} cores"
        ),
        "ours": figures(OURS),
        "peers": {
            name: figures(name) | {"ratio": ratio(name, "text"), "documents_ratio": ratio(name, "documents")}
            for name in answers
            if name not in (OURS, LIMIT)
        }
        | ended,
        "limit": {
            "tokenizers_alone_s": statistics.median(seconds(LIMIT, "text")),
            "ratio": ratio(LIMIT, "text"),
        },
    }


def table(result: Result) -> Table:
    """Tabulate the figures of each splitter."""
    return contestants(
        result,
        {
            "10 MB text, s": "{s:.2f}",
            "ratio": "{ratio:.2f}",
            "chunks": "{chunks:,}",
            "peak MB": "{peak_mb:,.0f}",
            "1,000 documents, s": "{documents_s:.2f}",
            "documents ratio": "{documents_ratio:.2f}",
            "documents peak MB": "{documents_peak_mb:,.0f}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Make the texts and measure."""
    pin()
    text = varied_text(N_DOCUMENTS * DOCUMENT_PAGES * PAGE)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "text").write_text(text[:CHARACTERS], encoding="utf-8")
        (scratch / "documents").write_text(text, encoding="utf-8")
        lineup = Lineup(list(CONTESTANTS), needed=(OURS, LIMIT))
        answers = take_turns(lineup, arguments.rounds, scratch)
    return figures_of(answers, lineup.ended_rows)


EXPLANATION = """\
Only distinct words are tokenized, once for all sizes and splitters."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=5, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
