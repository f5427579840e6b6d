"""Where to draw the line of relevance: ``python -m benchmarks.threshold [--json]``.

For each threshold: the share of the bundled questions whose best passage reaches it (they are
answered), and the share of the unanswerable ones whose best passage does not (they are refused).
"""

import argparse
import csv
import json

import numpy as np

from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import split
from engine.layers.tracing import Array
from engine.retrieval.index import build_index

THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)


def questions(name: str) -> list[str]:
    """Read the column ``question`` of a bundled CSV file."""
    with (BUNDLED_CORPUS.parent / name).open(encoding="utf-8", newline="") as file:
        return [row["question"] for row in csv.DictReader(file)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json

    encoder = Encoder.load()
    chunks = [
        chunk for document in load_corpus(BUNDLED_CORPUS) for chunk in split(document, encoder.tokenizer)
    ]
    index = build_index(chunks, encoder)

    def best_scores(name: str) -> Array:
        return np.array([index.search(vector, 1)[0].score for vector in encoder.encode(questions(name))])

    answerable, unanswerable = best_scores("questions.csv"), best_scores("unanswerable.csv")
    rows = [
        {
            "threshold": threshold,
            "answered": float((answerable >= threshold).mean()),
            "refused": float((unanswerable < threshold).mean()),
        }
        for threshold in THRESHOLDS
    ]
    if as_json:
        workload = (
            f"{len(answerable)} labelled and {len(unanswerable)} unanswerable questions, {len(chunks)} chunks"
        )
        print(json.dumps({"workload": workload, "ours": {"rows": rows}, "peers": {}, "limit": {}}))
        return
    print("threshold  answered  refused")
    for row in rows:
        print(f"{row['threshold']:9.2f}  {row['answered']:8.1%}  {row['refused']:7.1%}")


if __name__ == "__main__":
    main()
