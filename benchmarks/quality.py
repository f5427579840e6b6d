"""How good the vectors are: ``python -m benchmarks.quality STS_FILE`` or ``... BEIR_FOLDER``, ``[--json]``.

A file of scored pairs of sentences measures every pooling beside sentence-transformers; a labelled collection
in BEIR's format measures every retriever.

The file is that of the STS benchmark's archive (sts-test.csv, sts-dev.csv), or a table with the columns
sentence1, sentence2 and score. For every pooling, Spearman's correlation of cosines and scores x 100 with the
95 % interval over resamples of the pairs; beside it, for the poolings of sentence-transformers, its own
vectors and scipy's spearmanr on the same file, from one pass too.

The folder (``benchmarks.cranfield`` makes one of Cranfield) gives nDCG@10 and recall@10 of each retriever,
every document one passage cut at the model's limit. The weight of the weighted retriever is chosen on every
other question and reported on the rest.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Encoder
from engine.evaluation.beir import BeirSet, load_beir
from engine.evaluation.metrics import ndcg, recall
from engine.evaluation.sts import Pair, correlations, load_pairs, sentences, sts_scores
from engine.layers.tracing import Array
from engine.retrieval.retrievers import (
    RETRIEVERS,
    RetrieverOptions,
    SearchInputs,
    SearchTexts,
    retriever_scores,
)
from engine.weights.fetch import model_path

PEER = "sentence-transformers"
K = 10
WEIGHTS = [step / 20 for step in range(21)]  # of dense scores
CHOSEN_ON, REPORTED_ON = slice(0, None, 2), slice(1, None, 2)
PEER_POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def measure_sts(encoder: Encoder, pairs: Sequence[Pair]) -> Result:
    """Correlations x 100 of every strategy, best first, and of the peer."""
    say(f"{len(pairs)} pairs: glassbox")
    found = correlations(pairs, sts_scores(encoder, pairs))
    ours = {
        one.strategy: {
            "spearman": 100 * one.spearman.estimate,
            "low": 100 * one.spearman.low,
            "high": 100 * one.spearman.high,
        }
        for one in found
    }
    say(f"{len(pairs)} pairs: {PEER}")
    theirs = {strategy: 100 * rho for strategy, rho in peer_correlations(encoder, pairs).items()}
    return {
        "workload": f"Spearman's correlation x 100 on {len(pairs)} scored pairs of sentences",
        "ours": ours,
        "peers": {
            PEER: {
                "spearman": theirs,
                "ratio": {name: ours[name]["spearman"] / rho for name, rho in theirs.items()},
                "largest_difference": max(abs(ours[name]["spearman"] - rho) for name, rho in theirs.items()),
            }
        },
    }


def peer_correlations(encoder: Encoder, pairs: Sequence[Pair]) -> dict[str, float]:
    """Spearman's correlation by the official model's own poolings, all from one pass."""
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from sentence_transformers.util import pairwise_cos_sim

    transformer = modules.Transformer(str(model_path(encoder.name)), max_seq_length=encoder.max_tokens)
    pooling = modules.Pooling(encoder.config.d_model, pooling_mode=PEER_POOLINGS)
    model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
    texts = sentences(pairs)
    joined: Array = model.encode(texts)  # (n_texts, n_poolings * d_model)
    row = {text: number for number, text in enumerate(texts)}
    first, second = [row[pair.first] for pair in pairs], [row[pair.second] for pair in pairs]
    gold = [pair.score for pair in pairs]
    vectors = np.hsplit(joined, len(PEER_POOLINGS))
    return {
        strategy: float(spearmanr(gold, pairwise_cos_sim(every[first], every[second])).statistic)
        for strategy, every in zip(PEER_POOLINGS, vectors, strict=True)
    }


def sts_table(result: Result) -> Table:
    """Tabulate the correlation by each pooling, ours with its interval."""
    theirs = result["peers"][PEER]["spearman"]
    return Table(
        ["pooling", "glassbox", "95 % interval", PEER],
        [
            [
                name,
                f"{own['spearman']:.2f}",
                f"{own['low']:.1f} to {own['high']:.1f}",
                f"{theirs[name]:.2f}" if name in theirs else "has none",
            ]
            for name, own in result["ours"].items()
        ],
    )


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
    """Tabulate the correlation by each pooling, or the quality of each retriever."""
    if result["peers"]:
        return sts_table(result)
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
    """Measure a file of pairs or a folder of a collection."""
    if arguments.path.is_dir():
        return measure_retrieval(Encoder.load(), load_beir(arguments.path))
    return measure_sts(Encoder.load(), load_pairs(arguments.path))


def add_options(parser: ArgumentParser) -> None:
    """Add the file or folder to measure."""
    parser.add_argument("path", type=Path, help="a file of scored pairs, or the folder of a BEIR collection")


BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
