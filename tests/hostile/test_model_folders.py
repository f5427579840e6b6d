"""Folders of models whose JSON files and weights lie: one short line, and never a traceback or gigabytes."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine import Decoder, Encoder
from engine.tokenizers.bpe_vocabulary import byte_characters
from tests.hostile.child import in_child
from tests.model_files import config_with, edit_json

D_MODEL, N_IDS = 8, 256
SIZES = {
    "vocab_size": N_IDS,
    "hidden_size": D_MODEL,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": D_MODEL,
    "max_position_embeddings": 64,
}
QWEN2 = {"model_type": "qwen2", "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
CONFIG = SIZES | QWEN2
BERT = SIZES | {"model_type": "bert", "type_vocab_size": 2, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}
DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
HUGE = int("1" + "0" * 400)


def write_model(folder):
    (folder / "config.json").write_text(json.dumps(CONFIG))
    symbols = {byte_characters()[byte]: byte for byte in range(N_IDS)}
    model = {"type": "BPE", "vocab": symbols, "merges": []}
    parts = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({"model": model, "pre_tokenizer": parts}))
    layer, square, bias = "model.layers.0.", np.ones((D_MODEL, D_MODEL), np.float32), np.ones(D_MODEL, "f4")
    attention = {
        f"{layer}self_attn.{part}_proj.{kind}": value
        for part in "qkv"
        for kind, value in (("weight", square), ("bias", bias))
    }
    matrices = ("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    norms = (f"{layer}input_layernorm", f"{layer}post_attention_layernorm", "model.norm")
    tensors = {
        "model.embed_tokens.weight": np.ones((N_IDS, D_MODEL), np.float32),
        **attention,
        **{f"{layer}{name}.weight": square for name in matrices},
        **{f"{name}.weight": bias for name in norms},
    }
    save_file(tensors, folder / "model.safetensors")
    return tensors


def tokenizer(**changes):
    return lambda folder: edit_json(folder / "tokenizer.json", **changes)


def sparse(name):
    """A file of 30 GB of zeros, which takes no place on the disk."""

    def write(folder):
        with (folder / name).open("wb") as file:
            file.truncate(30 * 10**9)

    return write


def pipe(folder):
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def poisoned(folder):
    tensors = write_model(folder)
    tensors["model.norm.weight"] = np.full(D_MODEL, np.nan, np.float32)
    save_file(tensors, folder / "model.safetensors")


CASES = {
    "config 100,000 deep": lambda folder: (folder / "config.json").write_text(DEEP),
    "config of 30 GB": sparse("config.json"),
    "config is a pipe": pipe,
    "config of 10 million lists": lambda f: (f / "config.json").write_text(f'{{"a": [{"[]," * 10**7}[]]}}'),
    "window a text": config_with(use_sliding_window=True, sliding_window="4", max_window_layers="x"),
    "kinds of layers a number": config_with(use_sliding_window=True, sliding_window=4, layer_types=5),
    "epsilon 10**400": config_with(rms_norm_eps=HUGE),
    "epsilon infinite": config_with(rms_norm_eps=float("inf")),
    "epsilon NaN": config_with(rms_norm_eps=float("nan")),
    "epsilon a text": config_with(rms_norm_eps="1e-5"),
    "epsilon 10**6": config_with(rms_norm_eps=1e6),
    "head_dim 10**9": config_with(head_dim=10**9),
    "layers 10**9": config_with(num_hidden_layers=10**9),
    "vocabulary 10**400": config_with(vocab_size=HUGE),
    "base 10**400": config_with(rope_theta=HUGE),
    "kind of rotation a list": config_with(rope_scaling={"rope_type": ["x" * 10_000]}),
    "rotation without its numbers": config_with(rope_scaling={"rope_type": "llama3", "factor": 8}),
    "activation a list": config_with(hidden_act=[["x" * 10_000]]),
    "first token 10**9": config_with(bos_token_id=10**9),
    "first token a text": config_with(bos_token_id="a"),
    "last token 10**9": config_with(eos_token_id=[1, 10**9]),
    "last token a list of lists": config_with(eos_token_id=[[1]]),
    "template not UTF-8": lambda folder: (folder / "chat_template.jinja").write_bytes(b"\xff{{ x }}"),
    "template of 30 GB": sparse("chat_template.jinja"),
    "template a number": lambda folder: (folder / "tokenizer_config.json").write_text('{"chat_template": 5}'),
    "tokenizer 100,000 deep": lambda folder: (folder / "tokenizer.json").write_text(DEEP),
    "tokenizer of 30 GB": sparse("tokenizer.json"),
    "tokenizer without bytes": lambda folder: (folder / "tokenizer.json").write_bytes(b"\xff"),
    "id 10**9": tokenizer(model={"type": "BPE", "vocab": {"a": 10**9}, "merges": []}),
    "merges a number": tokenizer(model={"type": "BPE", "vocab": {"a": 0}, "merges": 5}),
    "empty vocabulary": tokenizer(model={"type": "BPE", "vocab": {}, "merges": []}),
    "added token 10**9": tokenizer(
        added_tokens=[
            {"id": 10**9, "content": "<x>", **dict.fromkeys(("single_word", "lstrip", "rstrip"), False)}
            | {"normalized": False, "special": True}
        ]
    ),
    "weights of 30 GB": sparse("model.safetensors"),
    "weights NaN": poisoned,
}
BERT_CASES = {
    "epsilon 10**400": {"layer_norm_eps": HUGE},
    "heads 10**9": {"num_attention_heads": 10**9},
    "activation a list": {"hidden_act": [["x" * 10_000]]},
    "positions a text": {"position_embedding_type": "x" * 10_000},
    "family a list": {"model_type": [["x" * 10_000]]},
    "layers NaN": {"num_hidden_layers": float("nan")},
    "architectures a number": {"architectures": 5},
}


def load(kind, folder):
    model = kind.load(folder, compiled=False)
    return len(model.logits([1, 2])) if kind is Decoder else model.name


def check(outcome):
    assert outcome.error in ("ModelFileError", "MemoryLimitError"), outcome
    assert len(outcome.message) <= 300
    assert "\n" not in outcome.message


def test_the_folder_that_the_cases_change_is_read(tmp_path):
    write_model(tmp_path)
    assert in_child(load, Decoder, tmp_path).result == 2


@pytest.mark.parametrize("case", CASES)
def test_a_decoder_that_lies_is_refused_by_one_short_line(tmp_path, case):
    write_model(tmp_path)
    CASES[case](tmp_path)
    check(in_child(load, Decoder, tmp_path, seconds=10, megabytes=1500))


@pytest.mark.parametrize("case", BERT_CASES)
def test_an_encoder_that_lies_is_refused_by_one_short_line(tmp_path, case):
    (tmp_path / "config.json").write_text(json.dumps(BERT | BERT_CASES[case]))
    check(in_child(load, Encoder, tmp_path, seconds=10, megabytes=1500))
