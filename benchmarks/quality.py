"""How good the vectors are: ``python -m benchmarks.quality STS_FILE`` or ``… BEIR_FOLDER``, ``[--json]``.

A file holds scored pairs of sentences: that of the STS benchmark's archive (sts-test.csv, sts-dev.csv), or
a table with the columns sentence1, sentence2 and score. For every strategy, Spearman's correlation of cosines
and scores x 100 with the 95 % interval over resamples of the pairs; beside it, for the poolings that
sentence-transformers has, what its own vectors and scipy's spearmanr give on the same file, in one pass too.

A folder holds a labelled collection (``benchmarks.cranfield`` makes one of Cranfield): nDCG@10 and recall@10
of each retriever, every document one passage cut at the model's limit. The weight of the weighted retriever
is chosen on every other question and reported on the rest.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import say
from engine import Encoder
from engine.errors import GlassboxError
from engine.evaluation.beir import BeirSet, load_beir
from engine.evaluation.metrics import ndcg, recall
from engine.evaluation.sts import Pair, correlations, load_pairs, sentences, sts_scores
from engine.layers.tracing import Array
from engine.retrieval.retrievers import RETRIEVERS, Searched, Texts, retriever_scores
from engine.verify import official_model

PEER = "sentence-transformers"
K = 10
WEIGHTS = [step / 20 for step in range(21)]  # of dense scores
CHOSEN_ON, REPORTED_ON = slice(0, None, 2), slice(1, None, 2)
PEER_POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def measure_sts(encoder: Encoder, pairs: Sequence[Pair]) -> dict[str, Any]:
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
        "limit": {},
    }


def peer_correlations(encoder: Encoder, pairs: Sequence[Pair]) -> dict[str, float]:
    """Spearman's correlation by the official model's own poolings, all from one pass."""
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from sentence_transformers.util import pairwise_cos_sim

    pooling = modules.Pooling(encoder.config.d_model, pooling_mode=PEER_POOLINGS)
    model = SentenceTransformer(modules=[official_model(encoder)[0], pooling], device="cpu")
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


def print_sts(result: dict[str, Any]) -> None:
    """Print the figures as a table."""
    peer = result["peers"][PEER]
    print(result["workload"])
    print(f"{'pooling':22}{'glassbox':>9}  {'95 % interval':14}{PEER:>23}")
    for name, own in result["ours"].items():
        theirs = f"{peer['spearman'][name]:23.2f}" if name in peer["spearman"] else f"{'has none':>23}"
        print(f"{name:22}{own['spearman']:9.2f}  {own['low']:5.1f} to {own['high']:5.1f}{theirs}")
    print(f"largest difference: {peer['largest_difference']:.4f}")


def measure_retrieval(encoder: Encoder, collection: BeirSet) -> dict[str, Any]:
    """Quality of each retriever on all questions, and of the best weight on those that did not choose it."""
    say(f"{len(collection.documents)} documents, {len(collection.questions)} questions")
    relevant = collection.relevance([document.name for document in collection.documents])
    passages = tuple(document.text for document in collection.documents)
    vectors, questions = encoder.encode(passages), encoder.encode(collection.questions)
    searched = Searched(Texts(collection.questions, passages, encoder), questions, vectors)

    def quality(scores: Array, rows: slice) -> dict[str, float]:
        return {
            "ndcg_at_10": float(ndcg(scores[rows], relevant[rows], K).mean()),
            "recall_at_10": float(recall(scores[rows], relevant[rows], K).mean()),
        }

    weighted = [retriever_scores("weighted", searched, weight) for weight in WEIGHTS]
    best = int(np.argmax([quality(scores, CHOSEN_ON)["ndcg_at_10"] for scores in weighted]))
    ours: dict[str, Any] = {}
    for name in RETRIEVERS:
        say(name)
        ours[name] = quality(retriever_scores(name, searched), slice(None))
    dense = quality(searched.dense, REPORTED_ON)
    ours["weighted, chosen on half"] = {"dense_weight": WEIGHTS[best], **quality(weighted[best], REPORTED_ON)}
    ours["dense, on the other half"] = dense
    n_documents, n_questions = len(collection.documents), len(collection.questions)
    workload = f"nDCG@10 and recall@10 of {n_questions} questions on {n_documents} documents"
    return {"workload": workload, "ours": ours, "peers": {}, "limit": {}}


def print_retrieval(result: dict[str, Any]) -> None:
    """Print the figures as a table."""
    print(result["workload"])
    print(f"{'retriever':28}{'nDCG@10':>9}{'recall@10':>11}")
    for name, own in result["ours"].items():
        weight = f"  ({own['dense_weight']:.2f} dense)" if "dense_weight" in own else ""
        print(f"{name:28}{own['ndcg_at_10']:9.4f}{own['recall_at_10']:11.4f}{weight}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="a file of scored pairs, or the folder of a BEIR collection")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        if arguments.path.is_dir():
            result = measure_retrieval(Encoder.load(), load_beir(arguments.path))
        else:
            result = measure_sts(Encoder.load(), load_pairs(arguments.path))
    except GlassboxError as error:
        parser.error(str(error))
    if arguments.json:
        print(json.dumps(result))
    elif arguments.path.is_dir():
        print_retrieval(result)
    else:
        print_sts(result)


if __name__ == "__main__":
    main()
