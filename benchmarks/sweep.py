"""How fast a grid of settings is measured: ``python -m benchmarks.sweep [--json]``.

16 settings (2 chunk sizes, 2 overlaps, 2 poolings, 2 retrievers) are measured on the bundled corpus and its
questions, beside the usual loop over them with sentence-transformers, LangChain and bm25s.

The retrievers are cosines, and reciprocal rank fusion of them with BM25. For each cell the peer cuts the
documents with split_text_on_tokens, embeds chunks and questions, searches and takes the mean reciprocal rank.
Glassbox takes eight metrics with intervals, first with an empty cache of vectors (cold), then with a full one
(warm, the median of three rounds). Each runs in a process of its own on the same two cores, its model loaded
before the clock starts. ``cpu`` figures are processor time of both cores together, which other programs on
the machine disturb less.

LangChain's chunks are decoded tokens without a place in the document, and their borders are not ours. So that
scores can be compared, the loop embeds and searches the texts of our chunks, about as many as its own; its
own cut is timed and dropped. Compared is the mean reciprocal rank of all cells; the largest difference
comes from rankings in which float32 rounding swapped near ties. The limit is the time to embed the distinct
texts of all splittings once, for all poolings. The peers come with ``pip install -r
benchmarks/requirements.txt``.
"""

import json
import tempfile
from argparse import Namespace
from typing import Any

from benchmarks.command import OURS, Benchmark, Result, Table
from benchmarks.processes import CORES, Lineup, environment, pin, run_once, say
from benchmarks.sweepers import MAX_TOKENS, OVERLAPS, POOLINGS, RETRIEVERS, SIZES
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

PEER = "sentence-transformers + LangChain + bm25s, cell by cell"
MODULE = "benchmarks.sweepers"


def figures_of(ours: dict[str, Any], peers: dict[str, Any]) -> Result:
    """Return the figures of what was measured; ``peers`` are those of `compared`, or how the peer ended."""
    return {
        "workload": (
            f"{len(ours['mrr'])} cells: chunks of {', '.join(map(str, SIZES))} tokens, overlaps "
            f"{', '.join(map(str, OVERLAPS))}, poolings {', '.join(POOLINGS)}, retrievers "
            f"{', '.join(RETRIEVERS)}; {ours['n_texts']} distinct texts, at most {MAX_TOKENS} tokens read, "
            f"on {CORES} cores"
        ),
        "ours": {name: ours[name] for name in ("cold_s", "warm_s", "cold_cpu_s", "warm_cpu_s", "peak_mb")},
        "peers": peers,
        "limit": {
            "embedding_alone_s": ours["embedding_s"],
            "ratio": ours["embedding_s"] / ours["cold_s"],
        },
    }


def compared(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the peer."""
    differences = [abs(mrr - theirs["mrr"][cell]) for cell, mrr in ours["mrr"].items()]
    return {
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


def table(result: Result) -> Table:
    """Tabulate Glassbox cold and warm, the peer and the limit."""
    ours, peer, limit = result["ours"], result["peers"][PEER], result["limit"]
    ended = "ended" in peer
    rows = [
        [
            f"{OURS}, {kind}",
            f"{ours[f'{kind}_s']:.1f}",
            "" if ended else f"{peer[f'{prefix}ratio']:.1f}",
            f"{ours[f'{kind}_cpu_s']:.1f}",
            "" if ended else f"{peer[f'{prefix}cpu_ratio']:.1f}",
            f"{ours['peak_mb']:,.0f}",
        ]
        for kind, prefix in (("cold", ""), ("warm", "warm_"))
    ]
    if ended:
        rows.append([PEER, peer["ended"], *[""] * 4])
    else:
        rows.append([PEER, f"{peer['s']:.1f}", "", f"{peer['cpu_s']:.1f}", "", f"{peer['peak_mb']:,.0f}"])
    alone = [f"{limit['embedding_alone_s']:.1f}", f"{limit['ratio']:.2f}"]
    rows.append(["embedding the distinct texts alone", *alone, *[""] * 3])
    return Table(["", "seconds", "ratio", "CPU s", "CPU ratio", "peak MB"], rows)


def run(arguments: Namespace) -> Result:
    """Run both sweeps, Glassbox first."""
    pin()
    folder, env = str(model_path(DEFAULT_ENCODER)), environment()
    with tempfile.TemporaryDirectory() as scratch:
        lineup = Lineup((OURS, PEER), needed=(OURS,))
        say(f"running {OURS}")
        ours = json.loads(run_once(MODULE, [OURS, folder, scratch], env))
        peers = {}
        with lineup.turn(PEER):
            say(f"running {PEER}")
            theirs = json.loads(run_once(MODULE, ["loop", folder, scratch], env))
            peers[PEER] = compared(ours, theirs)
    return figures_of(ours, peers | lineup.ended_rows)


BENCHMARK = Benchmark(__doc__, run, table)


if __name__ == "__main__":
    BENCHMARK.main()
