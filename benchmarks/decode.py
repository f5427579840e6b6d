"""How fast text is generated: ``python -m benchmarks.decode [--json] [--rounds 5]``.

Glassbox, transformers (float32) and llama.cpp continue one prompt greedily, from the same .gguf file.

The prompt is the start of the bundled corpus. The contestants take turns on the same two cores, each in a
process of its own. Glassbox runs as in its app, with prompt lookup, and token by token, as the others do.
Figures are medians over the rounds: prompt and new tokens per second, time to the first token, loading
(imports included), peak memory, and the mean Kullback-Leibler divergence (in nats) of the next-token
distribution from that of float32 transformers over 500 tokens. The limits are the rate at which memory can
be read and the best matrix product in float32, both measured in each round; shares of them are medians over
the rounds, since what a shared machine can read changes from second to second. llama.cpp comes with ``pip
install -r benchmarks/requirements.txt``, which says how to build it for processors with AMX.
"""

import importlib.util
import json
import math
import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import OURS, Benchmark, Result, Table, contestants, median_ratio
from benchmarks.decoders import CONTESTANTS
from benchmarks.processes import CORES, Lineup, Served, environment, pin, run_once, say
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
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
    for document in load_corpus(BUNDLED_CORPUS):
        ids += decoder.tokenizer.encode(document.text).ids
    return ids


def bytes_read(decoder: Decoder) -> int:
    """Bytes read for one new token: all matrices, and the keys and values of the tokens before it."""
    config, weights = decoder.config, decoder.weights
    matrices = [weights.unembedding.nbytes]
    for layer in weights.layers:
        parts = (part for part in vars(layer).values() if hasattr(part, "weight"))
        matrices += [part.weight.nbytes for part in parts]
    n_before = PROMPT_TOKENS + NEW_TOKENS // 2
    keys = config.n_layers * config.n_kv_heads * config.d_head * n_before * np.dtype(np.float16).itemsize
    return sum(matrices) + 2 * keys


def prompt_flops(decoder: Decoder) -> int:
    """Floating-point operations of the matrix products that reading the prompt needs."""
    config, layers = decoder.config, decoder.weights.layers
    parts = (part for layer in layers for part in vars(layer).values() if hasattr(part, "weight"))
    projections = sum(math.prod(part.weight.shape) for part in parts if len(part.weight.shape) == 2)
    # A token attends to half of the prompt on average: once for the scores, once for the values.
    attention = config.n_layers * config.n_heads * config.d_head * (PROMPT_TOKENS + 1)
    return 2 * PROMPT_TOKENS * (projections + attention) + 2 * config.d_model * config.vocab_size


def take_turns(lineup: Lineup, rounds: int, file: Path, ids: list[int], scratch: Path) -> dict[str, Any]:
    """Run the contestants in turn; return their answers, and each round's read rate and best GFLOP/s."""
    env, errors = environment(), scratch / "errors.txt"
    loads: dict[str, list[float]] = {name: [] for name in lineup}
    running: dict[str, Served] = {}
    for turn in range(3):  # the first warms up (disk cache, compiling) and is dropped
        for name in lineup:
            if name in running:
                running[name].stop()
            with lineup.turn(name):
                running[name] = Served(MODULE, [name, str(file)], env, errors)
                if turn:
                    loads[name].append(running[name].ready["load_s"])
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in lineup}
    bandwidths, peaks = [], []
    for turn in range(rounds + 1):  # as above
        bandwidth = json.loads(run_once(MODULE, ["bandwidth", str(file)], env))["gb_per_s"]
        peak = json.loads(run_once("benchmarks.encoders", ["gemm", str(file)], env))["gflops"]
        if turn:
            bandwidths.append(bandwidth)
            peaks.append(peak)
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
    return {
        "answers": {name: answers[name] for name in lineup},
        "loads": loads,
        "logits": logits,
        "bandwidths": bandwidths,
        "gflops": peaks,
        "ended": lineup.ended_rows,
    }


def figures_of(measured: dict[str, Any], read_bytes: int, flops: int) -> Result:
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
            "first_token_s": statistics.median(answer["first_s"] for answer in answers[name]),
            "load_s": statistics.median(measured["loads"][name]),
            "peak_mb": answers[name][-1]["peak_mb"],
            "divergence": float(divergence(logits[REFERENCE], logits[name]).mean()),
            "same_tokens": answers[name][-1]["tokens"] == answers[REFERENCE][-1]["tokens"],
        }

    def compared(name: str) -> dict[str, Any]:
        return figures(name) | {
            "ratio": median_ratio(new_rates(OURS), new_rates(name)),
            "prompt_ratio": median_ratio(prompt_rates(OURS), prompt_rates(name)),
        }

    read = [rate * read_bytes / 1e9 for rate in new_rates(PLAIN)]
    computed = [rate / PROMPT_TOKENS * flops / 1e9 for rate in prompt_rates(PLAIN)]
    return {
        "workload": f"{PROMPT_TOKENS} prompt tokens and {NEW_TOKENS} new ones, greedy, on {CORES} cores",
        "ours": figures(OURS),
        "peers": {name: compared(name) for name in answers if name != OURS} | measured["ended"],
        "limit": {
            "read_gb_per_s": statistics.median(measured["bandwidths"]),
            "mb_per_token": read_bytes / 1e6,
            "fraction": median_ratio(read, measured["bandwidths"]),
            "gemm_gflops": statistics.median(measured["gflops"]),
            "prompt_gflop": flops / 1e9,
            "prompt_fraction": median_ratio(computed, measured["gflops"]),
        },
    }


def table(result: Result) -> Table:
    """Tabulate the figures of each decoder."""
    return contestants(
        result,
        {
            "new tokens/s": "{new_tokens_per_s:.1f}",
            "ratio": "{ratio:.2f}",
            "prompt tokens/s": "{prompt_tokens_per_s:,.0f}",
            "prompt ratio": "{prompt_ratio:.2f}",
            "first token, s": "{first_token_s:.2f}",
            "loading, s": "{load_s:.2f}",
            "peak MB": "{peak_mb:,.0f}",
            "divergence": "{divergence:.0e}",
            "same tokens": "{same_tokens}",
        },
    )


def run(arguments: Namespace) -> Result:
    """Measure all decoders that are installed."""
    names = list(CONTESTANTS)
    if importlib.util.find_spec("llama_cpp") is None:
        say("without llama.cpp, which pip install -r benchmarks/requirements.txt installs")
        names.remove(LLAMA)
    pin()
    decoder = Decoder.load()
    file, ids, read_bytes = (
        model_path(DEFAULT_DECODER),
        corpus_ids(decoder)[:PROMPT_TOKENS],
        bytes_read(decoder),
    )
    with tempfile.TemporaryDirectory() as scratch:
        lineup = Lineup(names, needed=(OURS, PLAIN, REFERENCE))
        measured = take_turns(lineup, arguments.rounds, file, ids, Path(scratch))
        return figures_of(measured, read_bytes, prompt_flops(decoder))


EXPLANATION = """\
Matrices stay in the file's own 4 and 8 bits. Prompt lookup reads several tokens at once where a text
repeats itself, with the same answer to the last bit; the peers have none. The divergence is in nats."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=5, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
