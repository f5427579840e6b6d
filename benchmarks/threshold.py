"""When is nothing relevant? A share of unrelated questions against a fixed cosine.

``python -m benchmarks.threshold [--json]``. For several poolings and chunk sizes, each rule with its one
default: the share of the bundled labelled questions that are answered, and of the unanswerable ones that
are refused. The rule must not break where the documents do answer some of the questions of everyday life
that it compares with, so it is measured too with labelled questions in the place of some of those.
"""

import argparse
import csv
import json
from collections.abc import Iterator

import numpy as np

from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import Splitting, split
from engine.evaluation.questions import load_questions
from engine.generation.answering import DEFAULT_MIN_RELEVANCE
from engine.layers.tracing import Array
from engine.retrieval.background import background_of, everyday_questions
from engine.retrieval.index import Index, index_vectors
from engine.retrieval.vector_kind import VectorKind

COSINE = 0.3  # what mean pooling and chunks of 128 tokens are well served by
POOLINGS = ("mean", "cls", "max", "idf")
CHUNK_TOKENS = (64, 128, 256)
RELATED = (0.0, 0.1, 0.25)  # shares of the everyday questions that are replaced by labelled ones


def indexes(encoder: Encoder) -> Iterator[tuple[int, Encoder, Index]]:
    """Index the bundled corpus in every way; yield chunk size, encoder and index."""
    documents = load_corpus(BUNDLED_CORPUS)
    for size in CHUNK_TOKENS:
        chunks = [c for d in documents for c in split(d, encoder.tokenizer, Splitting("fixed", size))]
        texts = [chunk.text for chunk in chunks]
        weighted = encoder.with_idf(texts)
        vectors = weighted.encode(texts, list(POOLINGS))
        for pooling in POOLINGS:
            kind = VectorKind.of(weighted, pooling)
            idf = weighted.idf if pooling == "idf" else None
            yield size, weighted, index_vectors(chunks, vectors[pooling], kind, idf)


def best_scores(index: Index, encoder: Encoder, questions: list[str]) -> Array:
    """Return the cosine of each question's best chunk: ``(n_questions,)``."""
    vectors = encoder.encode(questions, index.kind.pooling)
    return np.asarray(index.faiss.search(vectors, 1)[0][:, 0])


def with_related(everyday: list[str], labelled: list[str], share: float) -> list[str]:
    """Put random labelled questions in the place of a share of the everyday ones."""
    n_related = round(share * len(everyday))
    chosen = np.random.default_rng(0).permutation(len(labelled))[:n_related]
    return everyday[n_related:] + [labelled[row] for row in chosen]


def limits(index: Index, encoder: Encoder, labelled: list[str]) -> dict[str, float]:
    """Return the cosine from which each rule calls a passage of an index relevant."""
    named = {f"cosine {COSINE}": COSINE}
    for share in RELATED:
        questions = with_related(everyday_questions(), labelled, share)
        name = f"relevance {DEFAULT_MIN_RELEVANCE:.0f}" + f", {share:.0%} related" * (share > 0)
        named[name] = background_of(index, encoder, questions).score_of(DEFAULT_MIN_RELEVANCE)
    return named


def measure() -> list[dict[str, str | int | float]]:
    """Return a row for each chunk size, pooling and rule."""
    labelled = [question.text for question in load_questions()]
    with (BUNDLED_CORPUS.parent / "unanswerable.csv").open(encoding="utf-8", newline="") as file:
        unanswerable = [row["question"] for row in csv.DictReader(file)]
    rows: list[dict[str, str | int | float]] = []
    for size, encoder, index in indexes(Encoder.load()):
        answerable_scores = best_scores(index, encoder, labelled)
        unanswerable_scores = best_scores(index, encoder, unanswerable)
        for rule, limit in limits(index, encoder, labelled).items():
            rows.append(
                {
                    "rule": rule,
                    "chunk_tokens": size,
                    "pooling": index.kind.pooling,
                    "limit": limit,
                    "answered": float((answerable_scores >= limit).mean()),
                    "refused": float((unanswerable_scores < limit).mean()),
                }
            )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    rows = measure()
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    by_rule = {rule: [row for row in rows if row["rule"] == rule] for rule in rules}
    if as_json:
        fixed, ours, *related = by_rule.values()
        workload = "310 labelled and 20 unanswerable questions, bundled corpus, by pooling and chunk size"
        report = {
            "workload": workload,
            "ours": {"rows": ours, "related": [row for own in related for row in own]},
            "peers": {"fixed cosine": {"rows": fixed}},
            "limit": {},
        }
        print(json.dumps(report))
        return
    print("answered / refused")
    print(f"{'chunks':>6}  {'pooling':8}" + "".join(f"{rule:>27}" for rule in rules))
    for cells in zip(*by_rule.values(), strict=True):
        shares = (f"{cell['answered']:.0%} / {cell['refused']:.0%}" for cell in cells)
        print(f"{cells[0]['chunk_tokens']:6}  {cells[0]['pooling']:8}" + "".join(f"{s:>27}" for s in shares))


if __name__ == "__main__":
    main()
