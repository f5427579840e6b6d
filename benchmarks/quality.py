"""How well each retriever searches: ``python -m benchmarks.quality BEIR_FOLDER [--json]``.

A labelled collection in BEIR's format (``benchmarks.cranfield`` makes one of Cranfield) gives nDCG@10 and
recall@10 of each retriever, every document one passage cut at the model's limit. The weight of the weighted
retriever is chosen on every other question and reported on the rest.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Encoder
from engine.evaluation.beir import BeirSet, load_beir
from engine.evaluation.metrics import ndcg, recall
from engine.layers.tracing import Array
from engine.retrieval.retrievers import (
    RETRIEVERS,
    RetrieverOptions,
    SearchInputs,
    SearchTexts,
    retriever_scores,
)

K = 10
WEIGHTS = [step / 20 for step in range(21)]  # of dense scores
CHOSEN_ON, REPORTED_ON = slice(0, None, 2), slice(1, None, 2)


def measure_retrieval(encoder: Encoder, collection: BeirSet) -> Result:
    """Quality of each retriever on all questions, and of the best weight on those that did not choose it."""
    say(f"{len(collection.documents)} documents, {len(collection.questions)} questions")
    relevant = collection.relevance([document.name for document in collection.documents])
    passages = tuple(document.text for document in collection.documents)
    vectors, questions = encoder.encode(passages), encoder.encode(collection.questions)
    inputs = SearchInputs(SearchTexts(collection.questions, passages, encoder), questions, vectors)

    def quality(scores: Array, rows: slice) -> dict[str, float]:
        return {
            "ndcg_at_10": float(ndcg(scores[rows], relevant[rows], K).mean()),
            "recall_at_10": float(recall(scores[rows], relevant[rows], K).mean()),
        }

    weighted = [retriever_scores("weighted", inputs, RetrieverOptions(weight)) for weight in WEIGHTS]
    best = int(np.argmax([quality(scores, CHOSEN_ON)["ndcg_at_10"] for scores in weighted]))
    ours: dict[str, Any] = {}
    for name in RETRIEVERS:
        say(name)
        ours[name] = quality(retriever_scores(name, inputs), slice(None))
    dense = quality(inputs.dense, REPORTED_ON)
    ours["weighted, chosen on half"] = {"dense_weight": WEIGHTS[best], **quality(weighted[best], REPORTED_ON)}
    ours["dense, on the other half"] = dense
    n_documents, n_questions = len(collection.documents), len(collection.questions)
    workload = f"nDCG@10 and recall@10 of {n_questions} questions on {n_documents} documents"
    return {"workload": workload, "ours": ours}


def table(result: Result) -> Table:
    """Tabulate the quality of each retriever."""
    return Table(
        ["retriever", "nDCG@10", "recall@10", "weight of dense"],
        [
            [
                name,
                f"{own['ndcg_at_10']:.4f}",
                f"{own['recall_at_10']:.4f}",
                f"{own['dense_weight']:.2f}" if "dense_weight" in own else "",
            ]
            for name, own in result["ours"].items()
        ],
    )


def run(arguments: Namespace) -> Result:
    """Measure the folder of a collection."""
    return measure_retrieval(Encoder.load(), load_beir(arguments.path))


def add_options(parser: ArgumentParser) -> None:
    """Add the folder to measure."""
    parser.add_argument("path", type=Path, help="the folder of a BEIR collection")


BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
