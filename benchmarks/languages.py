"""Words of ten languages in BM25: ``python -m benchmarks.languages [--json]``.

For each language 16 short texts and 12 questions in other forms of their words.

The peer is bm25s as it is set up for English: runs of letters without its stop words, reduced to stems.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import bm25s
import numpy as np
from Stemmer import Stemmer

from benchmarks.command import Benchmark, Result, Table
from engine.documents.document import Document, document_languages
from engine.documents.language import LANGUAGES
from engine.layers.tracing import Array
from engine.retrieval.bm25 import Bm25

SETS = Path(__file__).with_suffix(".json")


def our_scores(texts: Sequence[str], questions: Sequence[str]) -> Array:
    """Score texts by BM25 over the words of the language that is detected: ``(n_questions, n_texts)``."""
    languages = document_languages(Document(str(number), text) for number, text in enumerate(texts))
    return Bm25(texts, languages=list(languages.values())).scores(questions)


def english_scores(texts: Sequence[str], questions: Sequence[str]) -> Array:
    """Score texts by bm25s as for English: ``(n_questions, n_texts)``."""

    def split(texts: Sequence[str]) -> list[list[str]]:
        tokens = bm25s.tokenize(texts, stemmer=Stemmer("english"), return_ids=False, show_progress=False)
        return [list(own) for own in tokens]

    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(split(texts), show_progress=False)
    return np.stack([index.get_scores(own) if own else np.zeros(len(texts)) for own in split(questions)])


def quality(scores: Array) -> dict[str, float]:
    """Return the MRR of the questions' texts; one that scores 0 is not found."""
    own = np.diagonal(scores)[:, None]
    ranks = 1 + (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) - 1)  # the last of equal ones
    gains = np.where(own[:, 0] > 0, 1 / ranks, 0)
    return {"MRR": float(gains.mean())}


def run(arguments: Namespace) -> Result:
    """Measure both on each language."""
    sets = json.loads(SETS.read_text(encoding="utf-8"))

    def rows(scores: Callable[[Sequence[str], Sequence[str]], Array]) -> dict[str, dict[str, float]]:
        return {name: quality(scores(each["texts"], each["questions"])) for name, each in sets.items()}

    return {
        "workload": f"{len(sets)} languages, 16 texts and 12 questions each",
        "ours": rows(our_scores),
        "peers": {"bm25s": rows(english_scores)},
    }


def table(result: Result) -> Table:
    """Tabulate both, a row for each language."""
    both = {"bm25s, as English": result["peers"]["bm25s"], "ours": result["ours"]}
    rows = [
        [LANGUAGES[name].label, *(f"{each[name]['MRR']:.2f}" for each in both.values())]
        for name in result["ours"]
    ]
    return Table(["MRR", *both], rows)


BENCHMARK = Benchmark(__doc__, run, table)


if __name__ == "__main__":
    BENCHMARK.main()
