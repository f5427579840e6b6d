"""How fast text is generated: ``python -m benchmarks.decode [--json] [--rounds 5]``.

Glassbox, transformers (float32) and llama.cpp continue the same prompt of 500 tokens of the bundled
corpus by 128, greedily, from the same .gguf file, on the same two cores, taking turns; each in a process
of its own. Glassbox does so as its app does, with prompt lookup, and token by token, as the others do.
Figures are medians over the rounds: prompt and new tokens per second, time to the first token, loading
(imports included), peak memory, and the mean Kullback-Leibler divergence of the next-token distribution
from that of float32 transformers over 500 tokens. The limit is the rate at which memory can be read,
measured in between. llama.cpp comes with ``pip install -r benchmarks/requirements.txt``.
"""

import importlib.util
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decoders import CONTESTANTS
from benchmarks.processes import CORES, Served, environment, pin, read_arguments, run_once, say
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.generation.decoder import Decoder
from engine.layers.activation import log_softmax
from engine.layers.tracing import Array
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path

OURS, PLAIN = "glassbox", "glassbox, no prompt lookup"
REFERENCE, LLAMA = "transformers float32", "llama.cpp"
PROMPT_TOKENS, NEW_TOKENS = 500, 128
MODULE = "benchmarks.decoders"


def prompt_ids(decoder: Decoder) -> list[int]:
    """Return the first tokens of the bundled corpus."""
    ids: list[int] = []
    for document in load_corpus(BUNDLED_CORPUS):
        ids += decoder.tokenizer.encode(document.text).ids
    return ids[:PROMPT_TOKENS]


def bytes_read(decoder: Decoder) -> int:
    """Bytes that one new token needs: all matrices, and the keys and values of the tokens before it."""
    config, weights = decoder.config, decoder.weights
    matrices = [weights.unembedding.nbytes]
    for layer in weights.layers:
        parts = (part for part in vars(layer).values() if hasattr(part, "weight"))
        matrices += [part.weight.nbytes for part in parts]
    n_before = PROMPT_TOKENS + NEW_TOKENS // 2
    keys = config.n_layers * config.n_kv_heads * config.d_head * n_before * np.dtype(np.float16).itemsize
    return sum(matrices) + 2 * keys


def divergence(reference: Array, found: Array) -> float:
    """Mean KL divergence in nats of next-token distributions, from logits ``(n_tokens, vocab_size)``."""
    p, q = (log_softmax(logits.astype(np.float64)) for logits in (reference, found))
    return float((np.exp(p) * (p - q)).sum(axis=-1).mean())


def measure(names: list[str], rounds: int, file: Path, ids: list[int], scratch: Path) -> dict[str, Any]:
    """Let the contestants take turns; return what each answered, and how fast memory was read."""
    env, errors = environment(), scratch / "errors.txt"
    loads: dict[str, list[float]] = {name: [] for name in names}
    running: dict[str, Served] = {}
    for turn in range(3):  # the first fills the disk cache and compiles, and does not count
        for name in names:
            if name in running:
                running[name].stop()
            running[name] = Served(MODULE, [name, str(file)], env, errors)
            if turn:
                loads[name].append(running[name].ready["load_s"])
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    bandwidths = []
    for turn in range(rounds + 1):  # as above
        bandwidths.append(json.loads(run_once(MODULE, ["bandwidth", str(file)], env))["gb_per_s"])
        for name in names:
            say(f"round {turn} of {rounds}: {name}")
            answer = running[name].ask({"ids": ids, "n_new": NEW_TOKENS})
            if len(answer["tokens"]) != NEW_TOKENS:
                raise SystemExit(f"{name} ended after {len(answer['tokens'])} tokens")
            if turn:
                answers[name].append(answer)
    logits = {}
    for name in names:
        path = scratch / "logits.npy"
        running[name].ask({"ids": ids, "logits": str(path)})
        logits[name] = np.load(path)
        running[name].stop()
    return {"answers": answers, "loads": loads, "logits": logits, "bandwidth": max(bandwidths)}


def report(measured: dict[str, Any], read_bytes: int) -> dict[str, Any]:
    """Make figures of what was measured."""
    answers, logits = measured["answers"], measured["logits"]

    def new_rates(name: str) -> list[float]:
        return [(NEW_TOKENS - 1) / answer["rest_s"] for answer in answers[name]]

    def prompt_rates(name: str) -> list[float]:
        return [PROMPT_TOKENS / answer["first_s"] for answer in answers[name]]

    def ratio(rates: Any, name: str) -> float:
        pairs = zip(rates(OURS), rates(name), strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)

    def figures(name: str) -> dict[str, Any]:
        return {
            "new_tokens_per_s": statistics.median(new_rates(name)),
            "prompt_tokens_per_s": statistics.median(prompt_rates(name)),
            "first_token_s": statistics.median(answer["first_s"] for answer in answers[name]),
            "load_s": statistics.median(measured["loads"][name]),
            "peak_mb": answers[name][-1]["peak_mb"],
            "divergence": divergence(logits[REFERENCE], logits[name]),
            "same_tokens": answers[name][-1]["tokens"] == answers[REFERENCE][-1]["tokens"],
        }

    def compared(name: str) -> dict[str, Any]:
        ratios = {"ratio": ratio(new_rates, name), "prompt_ratio": ratio(prompt_rates, name)}
        return figures(name) | ratios

    ours, one_by_one = figures(OURS), statistics.median(new_rates(PLAIN))
    return {
        "workload": f"{PROMPT_TOKENS} prompt tokens and {NEW_TOKENS} new ones, greedy, on {CORES} cores",
        "ours": ours,
        "peers": {name: compared(name) for name in answers if name != OURS},
        "limit": {
            "read_gb_per_s": measured["bandwidth"],
            "mb_per_token": read_bytes / 1e6,
            "fraction": one_by_one * read_bytes / 1e9 / measured["bandwidth"],
        },
    }


def print_table(result: dict[str, Any]) -> None:
    """Print the figures for people."""
    print(result["workload"])
    print(
        f"\n{'tokens/s (ours ÷ theirs)':28}{'new':>15}{'prompt':>17}{'first s':>9}{'load s':>8}"
        f"{'peak MB':>9}{'KL':>9}  tokens"
    )
    for name, row in {OURS: result["ours"], **result["peers"]}.items():
        ratios = [f"({row[key]:5.2f})" if key in row else " " * 7 for key in ("ratio", "prompt_ratio")]
        print(
            f"{name:28}{row['new_tokens_per_s']:8.1f}{ratios[0]}{row['prompt_tokens_per_s']:10.0f}{ratios[1]}"
            f"{row['first_token_s']:9.2f}{row['load_s']:8.2f}{row['peak_mb']:9.0f}{row['divergence']:9.0e}"
            f"  {'same' if row['same_tokens'] else 'other'}"
        )
    limit = result["limit"]
    print(
        f"\nmemory is read with {limit['read_gb_per_s']:.0f} GB/s at best, a token needs "
        f"{limit['mb_per_token']:.0f} MB: {limit['fraction']:.0%} of that rate reached without prompt lookup"
    )


def main() -> None:
    """Measure and print."""
    arguments = read_arguments(__doc__, rounds=5)
    names = list(CONTESTANTS)
    if importlib.util.find_spec("llama_cpp") is None:
        say("without llama.cpp, which pip install -r benchmarks/requirements.txt installs")
        names.remove(LLAMA)
    pin()
    decoder = Decoder.load()
    file, ids, read_bytes = model_path(DEFAULT_DECODER), prompt_ids(decoder), bytes_read(decoder)
    with tempfile.TemporaryDirectory() as scratch:
        measured = measure(names, arguments.rounds, file, ids, Path(scratch))
    result = report(measured, read_bytes)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
