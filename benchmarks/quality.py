"""How well each pooling tells similarity: ``python -m benchmarks.quality STS_FILE [--json]``.

The file holds scored pairs of sentences: that of the STS benchmark's archive (sts-test.csv, sts-dev.csv), or
a table with the columns sentence1, sentence2 and score. For every strategy, Spearman's correlation of cosines
and scores x 100 with the 95 % interval over resamples of the pairs; beside it, for the poolings that
sentence-transformers has, what its own vectors and scipy's spearmanr give on the same file, in one pass too.
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
from engine.evaluation.sts import Pair, correlations, load_pairs, sentences, sts_scores
from engine.layers.tracing import Array
from engine.verify import official_model

PEER = "sentence-transformers"
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sts_file", type=Path, help="scored pairs of sentences")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        result = measure_sts(Encoder.load(), load_pairs(arguments.sts_file))
    except GlassboxError as error:
        parser.error(str(error))
    if arguments.json:
        print(json.dumps(result))
    else:
        print_sts(result)


if __name__ == "__main__":
    main()
