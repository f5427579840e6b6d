"""How fast text is generated: ``python -m benchmarks.decode [--json] [--rounds 5]``.

Glassbox, transformers (float32) and llama.cpp continue one prompt greedily, from the same .gguf file.

The prompt is the start of the bundled corpus. The contestants take turns on the same two cores, each in a
process of its own. Glassbox runs as in its app, with prompt lookup, and token by token, as the others do.
Figures are medians over the rounds: prompt and new tokens per second, peak memory,
and the mean Kullback-Leibler divergence (in nats) of the next-token distribution from that of float32
transformers over 500 tokens. llama.cpp comes with ``pip install -r benchmarks/requirements.txt``, which says
how to build it for processors with AMX.
"""

import importlib.util
import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.decoders import CONTESTANTS
from benchmarks.processes import CORES, Lineup, Served, environment, pin, say
from engine.documents.loaders import load_corpus
from engine.generation.decoder import Decoder
from engine.generation.sampling import divergence
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path

PLAIN = "glassbox, no prompt lookup"
REFERENCE, LLAMA = "transformers float32", "llama.cpp"
PROMPT_TOKENS, NEW_TOKENS = 500, 128
MODULE = "benchmarks.decoders"


def corpus_ids(decoder: Decoder) -> list[int]:
    """Return the tokens of the bundled corpus."""
    ids: list[int] = []
    for document in load_corpus():
        ids += decoder.tokenizer.encode(document.text).ids
    return ids


def take_turns(lineup: Lineup, rounds: int, file: Path, ids: list[int], scratch: Path) -> dict[str, Any]:
    """Run the contestants in turn; return what was measured."""
    env, errors = environment(), scratch / "errors.txt"
    running: dict[str, Served] = {}
    for name in lineup:
        with lineup.turn(name):
            running[name] = Served(MODULE, [name, str(file)], env, errors)
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in lineup}
    for turn in range(rounds + 1):  # the first warms up and is dropped
        for name in lineup:
            say(f"round {turn} of {rounds}: {name}")
            with lineup.turn(name):
                answer = running[name].ask({"ids": ids, "n_new": NEW_TOKENS})
                if len(answer["tokens"]) != NEW_TOKENS:
                    raise SystemExit(f"{name} ended after {len(answer['tokens'])} tokens")
                if turn:
                    answers[name].append(answer)
    logits = {}
    for name in lineup:
        path = scratch / "logits.npy"
        with lineup.turn(name):
            running[name].ask({"ids": ids, "logits": str(path)})
            logits[name] = np.load(path)
            running[name].stop()
    return {"answers": {name: answers[name] for name in lineup}, "logits": logits, "ended": lineup.ended_rows}


def figures_of(measured: dict[str, Any]) -> Result:
    """Return the figures of what was measured."""
    answers, logits = measured["answers"], measured["logits"]

    def new_rates(name: str) -> list[float]:
        return [(NEW_TOKENS - 1) / answer["rest_s"] for answer in answers[name]]

    def prompt_rates(name: str) -> list[float]:
        return [PROMPT_TOKENS / answer["first_s"] for answer in answers[name]]

    def figures(name: str) -> dict[str, Any]:
        return {
            "new_tokens_per_s": statistics.median(new_rates(name)),
            "prompt_tokens_per_s": statistics.median(prompt_rates(name)),
            "peak_mb": answers[name][-1]["peak_mb"],
            "divergence": float(divergence(logits[REFERENCE], logits[name]).mean()),
            "same_tokens": answers[name][-1]["tokens"] == answers[REFERENCE][-1]["tokens"],
        }

    def compared(name: str) -> dict[str, Any]:
        return figures(name) | {
            "ratio": median_ratio(new_rates(OURS), new_rates(name)),
            "prompt_ratio": median_ratio(prompt_rates(OURS), prompt_rates(name)),
        }

    return {
        "workload": f"{PROMPT_TOKENS} prompt tokens and {NEW_TOKENS} new ones, greedy, on {CORES} cores",
        "ours": figures(OURS),
        "peers": {name: compared(name) for name in answers if name != OURS} | measured["ended"],
    }


def table(result: Result) -> Table:
    """Tabulate the figures of each decoder."""
    return contestants(
        result,
        {
            "new tokens/s": "{new_tokens_per_s:.1f}",
            "ratio": "{ratio:.2f}",
            "prompt ratio": "{prompt_ratio:.2f}",
            "peak MB": "{peak_mb:,.0f}",
            "divergence": "{divergence:.0e}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Measure all decoders that are installed."""
    names = list(CONTESTANTS)
    if importlib.util.find_spec("llama_cpp") is None:
        say("without llama.cpp, which pip install -r benchmarks/requirements.txt installs")
        names.remove(LLAMA)
    pin()
    file, ids = model_path(DEFAULT_DECODER), corpus_ids(Decoder.load())[:PROMPT_TOKENS]
    with tempfile.TemporaryDirectory() as scratch:
        lineup = Lineup(names, needed=(OURS, PLAIN, REFERENCE))
        measured = take_turns(lineup, arguments.rounds, file, ids, Path(scratch))
        return figures_of(measured)


EXPLANATION = """\
All write the same tokens. Prompt lookup reads several at once where a text repeats itself. The divergence
is in nats."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=5, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
