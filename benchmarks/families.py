"""How fast each family embeds: ``python -m benchmarks.families [--families bert,gte] [--json] [--rounds 3]``.

Random models of one size embed the same texts by Glassbox and by sentence-transformers in float32.

The models have 3 layers, 384 dimensions, heads of 64, 1,536 hidden numbers and MiniLM's tokenizer; Qwen2,
which is read only with byte-level BPE, has one learnt of the same texts. The two take turns in one process
on two cores; the ratio is the median over the rounds, and the largest difference is between vectors of length
1.
"""

import random
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result, Table, median_ratio
from benchmarks.encoders import MAX_TOKENS, ours, sentence_transformers
from benchmarks.processes import pin, say
from benchmarks.texts import corpus_words, passage
from engine.layers.norm import l2_normalize
from engine.models.encoder import Encoder
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

OURS, THEIRS = "glassbox float32", "sentence-transformers float32"
N_TEXTS, WORDS = 32, (20, 160)
SIZES: dict[str, Any] = {
    "hidden_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "max_position_embeddings": 514,
    "pad_token_id": 0,
}
DECODER = {"num_key_value_heads": 2, "head_dim": 64}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "distilbert": {"dim": 384, "n_layers": 3, "n_heads": 6, "hidden_dim": 1536},
    "roberta": {},
    "xlm-roberta": {},
    "mpnet": {},
    "modernbert": {},
    "nomic_bert": {},
    "gte": {},
    "qwen3": DECODER,
    "qwen2": DECODER,
    "mistral": DECODER,
    "llama": DECODER,
    "gemma3_text": {**DECODER, "use_bidirectional_attention": True, "sliding_window": 512},
}


def write_model(name: str, texts: list[str], folder: Path) -> None:
    """Write a random model of a family with its tokenizer."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    path = model_path(DEFAULT_ENCODER) / "tokenizer.json"
    if name == "qwen2":
        trained, path = ByteLevelBPETokenizer(), folder / "tokenizer.json"
        trained.train_from_iterator(texts, special_tokens=["[PAD]"], show_progress=False)
        trained.save(str(path))
    tokens = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), pad_token="[PAD]", model_max_length=MAX_TOKENS
    )
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **{**SIZES, "vocab_size": len(tokens), **FAMILIES[name]})
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    tokens.save_pretrained(folder)


def measure(name: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Let both embed the texts in turn; return their seconds, tokens and the largest difference."""
    say(name)
    seconds: dict[str, list[float]] = {OURS: [], THEIRS: []}
    vectors = {}
    with tempfile.TemporaryDirectory() as folder:
        write_model(name, texts, Path(folder))
        ids = Encoder.load(folder).tokenizer.ids_batch(texts)
        contestants = {OURS: ours(folder), THEIRS: sentence_transformers(folder)}
        for turn in range(rounds + 1):  # the first fills caches and is dropped
            for each, encode in contestants.items():
                start = time.perf_counter()
                vectors[each] = l2_normalize(encode(texts))
                if turn:
                    seconds[each].append(time.perf_counter() - start)
    n_tokens = sum(min(len(each), MAX_TOKENS) for each in ids)
    difference = float(np.abs(vectors[OURS] - vectors[THEIRS]).max())
    return seconds | {"n_tokens": n_tokens, "max_difference": difference}


def run(arguments: Namespace) -> Result:
    """Measure the families."""
    pin()
    rng, words = random.Random(0), corpus_words()
    texts = [passage(words, rng.randint(*WORDS), rng) for _ in range(N_TEXTS)]
    found = {name: measure(name, texts, arguments.rounds) for name in arguments.families.split(",")}

    def rates(each: str) -> dict[str, float]:
        return {name: taken["n_tokens"] / statistics.median(taken[each]) for name, taken in found.items()}

    ratios = {name: median_ratio(taken[THEIRS], taken[OURS]) for name, taken in found.items()}
    differences = {name: taken["max_difference"] for name, taken in found.items()}
    peer = {"tokens_per_s": rates(THEIRS), "ratio": min(ratios.values()), "ratios": ratios}
    return {
        "workload": f"{N_TEXTS} chunks of {WORDS[0]} to {WORDS[1]} words",
        "ours": {"tokens_per_s": rates(OURS)},
        "peers": {THEIRS: peer | {"max_difference": differences}},
    }


def table(result: Result) -> Table:
    """Tabulate the rates and the ratio of each family."""
    peer = result["peers"][THEIRS]
    figures = [result["ours"]["tokens_per_s"], peer["ratios"]]
    formats = ("{:,.0f}", "{:.2f}")
    return Table(
        ["", "tokens/s", "ratio"],
        [
            [name, *(f.format(each[name]) for f, each in zip(formats, figures, strict=True))]
            for name in figures[0]
        ],
    )


def add_options(parser: ArgumentParser) -> None:
    """Add the families to measure."""
    parser.add_argument("--families", default=",".join(FAMILIES), help="with commas between")


EXPLANATION = "No number of a vector differs by more than 2e-7."
BENCHMARK = Benchmark(__doc__, run, table, rounds=3, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
