"""How fast a grid of settings is measured: ``python -m benchmarks.sweep [--json]``.

4 chunk sizes x 2 overlaps x 4 poolings x 2 retrievers (cosines; reciprocal rank fusion of them and BM25) on
the bundled corpus and its questions. The peer is the loop that one writes with sentence-transformers,
LangChain's split_text_on_tokens and bm25s: for each cell it cuts the documents, embeds chunks and questions,
searches and takes the mean reciprocal rank. Glassbox takes eight metrics with intervals, first with an empty
cache of vectors (cold), then with what it holds (warm, the median of three rounds). Each in a process of its
own on the same two cores, its model loaded before the clock starts. ``cpu`` figures are of processor time, of
both cores together, which other programs on the machine disturb less.

LangChain's chunks are decoded tokens without a place in the document, and their borders are not ours. So that
scores can be compared, the loop embeds and searches the texts of our chunks, as many as its own within a few;
its own cut is timed and dropped. Compared is the mean reciprocal rank of all 64 cells; the largest difference
is of rankings in which float32 rounding swapped near ties. The limit is what embedding the distinct texts of
all splittings takes, once, for all poolings. The peers come with
``pip install -r benchmarks/requirements.txt``.
"""

import argparse
import json
import tempfile
from typing import Any

from benchmarks.processes import CORES, environment, pin, run_once, say
from benchmarks.sweepers import MAX_TOKENS, OVERLAPS, POOLINGS, RETRIEVERS, SIZES
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

PEER = "sentence-transformers + LangChain + bm25s, cell by cell"


def report(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Make figures of what was measured."""
    differences = [abs(mrr - theirs["mrr"][cell]) for cell, mrr in ours["mrr"].items()]
    return {
        "workload": (
            f"{len(ours['mrr'])} cells: chunks of {', '.join(map(str, SIZES))} tokens, overlaps "
            f"{', '.join(map(str, OVERLAPS))}, poolings {', '.join(POOLINGS)}, retrievers "
            f"{', '.join(RETRIEVERS)}; {ours['n_texts']} distinct texts, at most {MAX_TOKENS} tokens read, "
            f"on {CORES} cores"
        ),
        "ours": {name: ours[name] for name in ("cold_s", "warm_s", "cold_cpu_s", "warm_cpu_s", "peak_mb")},
        "peers": {
            PEER: {
                "s": theirs["s"],
                "cpu_s": theirs["cpu_s"],
                "peak_mb": theirs["peak_mb"],
                "ratio": theirs["s"] / ours["cold_s"],
                "warm_ratio": theirs["s"] / ours["warm_s"],
                "cpu_ratio": theirs["cpu_s"] / ours["cold_cpu_s"],
                "warm_cpu_ratio": theirs["cpu_s"] / ours["warm_cpu_s"],
                "largest_difference_mrr": max(differences),
                "cells_s": theirs["cells_s"],
            }
        },
        "limit": {
            "embedding_alone_s": ours["embedding_s"],
            "ratio": ours["embedding_s"] / ours["cold_s"],
        },
    }


def print_table(result: dict[str, Any]) -> None:
    """Print the figures for people."""
    ours, peer = result["ours"], result["peers"][PEER]
    print(result["workload"])
    print(f"\n{'':54}{'seconds':>9}{'ratio':>8}{'CPU s':>9}{'ratio':>8}{'peak MB':>9}")
    for kind, against in (("cold", ""), ("warm", "warm_")):
        ratios = peer[f"{against}ratio"], peer[f"{against}cpu_ratio"]
        print(
            f"{f'glassbox, {kind}':54}{ours[f'{kind}_s']:9.1f}{ratios[0]:8.1f}{ours[f'{kind}_cpu_s']:9.1f}"
            f"{ratios[1]:8.1f}{ours['peak_mb']:9.0f}"
        )
    print(f"{PEER:54}{peer['s']:9.1f}{'':8}{peer['cpu_s']:9.1f}{'':8}{peer['peak_mb']:9.0f}")
    limit = result["limit"]
    print(f"{'embedding the distinct texts alone':54}{limit['embedding_alone_s']:9.1f}{limit['ratio']:8.2f}")
    print(f"\nlargest difference of a mean reciprocal rank: {peer['largest_difference_mrr']:.1e}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    pin()
    folder, env = str(model_path(DEFAULT_ENCODER)), environment()
    with tempfile.TemporaryDirectory() as scratch:
        found = []
        for name in ("glassbox", "loop"):
            say(f"running {name}")
            found.append(json.loads(run_once("benchmarks.sweepers", [name, folder, scratch], env)))
    result = report(*found)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
