"""Every encoder family against transformers and sentence-transformers, with random weights."""

import json
import re
from collections import namedtuple

import numpy as np
import pytest

from engine import Encoder
from engine.errors import InputError, ModelFileError
from engine.kernels.primitives import prepare_compiled
from engine.models import rope
from engine.models.encoder_families import FAMILIES
from engine.models.mpnet import distance_buckets
from engine.official_program import load_official, official_trace
from engine.training.search.frozen_layers import run_frozen_layers
from engine.verify import verify_model
from tests import sentence_transformer_folders as saved
from tests.pytorch import Library, modules, torch, transformers
from tests.tokenizer_files import sentencepiece

ROBERTA = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
LLAMA = {"pad_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
LONG = [*saved.TEXTS, "a bad dad had a jade bee " * 10, "<pad> a <pad>", "x" * 300]
LENGTH = 40  # tokens at most


# How a random model of a family is made.
Family = namedtuple("Family", "sizes tokenizer special")


def like_bert(tokenizer, special, **sizes):
    """A family whose sizes have the names of BERT's."""
    return Family({**saved.SIZES, "max_position_embeddings": LENGTH, **sizes}, tokenizer, special)


ONE, TWO, QWEN = {"num_key_value_heads": 1}, {"num_attention_heads": 2}, {"pad_token": "<|endoftext|>"}
WINDOWS = {"sliding_window": 8, "sliding_window_pattern": 3, "num_hidden_layers": 3, "head_dim": 6}
SHIFTED = {"max_position_embeddings": LENGTH + 2}  # the first two are left out
DISTIL = {"dim": 24, "n_layers": 3, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": LENGTH}
MODERN = {"num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0}
GEMMA = {"query_pre_attn_scalar": 9, "use_bidirectional_attention": True}
FAMILY_CASES = {
    "distilbert": Family(DISTIL, saved.wordpiece, saved.BERT),
    "mpnet": like_bert(saved.roberta_like_wordpiece, {**ROBERTA, "unk_token": "[UNK]"}, **SHIFTED, **TWO),
    "roberta": like_bert(saved.roberta_tokenizer, ROBERTA, **SHIFTED, type_vocab_size=1, pad_token_id=1),
    "xlm-roberta": like_bert(
        saved.unigram_tokenizer, ROBERTA, **SHIFTED, type_vocab_size=1, hidden_act="gelu_new"
    ),
    "modernbert": like_bert(saved.modern_bert_tokenizer, saved.BERT, **MODERN, **TWO),
    "qwen3": like_bert(saved.qwen3_tokenizer, QWEN, **ONE, head_dim=6),
    "mistral": like_bert(lambda: sentencepiece("always"), LLAMA, **ONE, sliding_window=7),
    "qwen2": like_bert(saved.qwen3_tokenizer, QWEN, num_key_value_heads=3, is_causal=False),
    "llama": like_bert(lambda: sentencepiece("prepend"), LLAMA, **ONE, attention_bias=True),
    "gemma3_text": like_bert(lambda: sentencepiece("gemma"), LLAMA, **ONE, **WINDOWS, **GEMMA),
    "gte": like_bert(saved.unigram_tokenizer, ROBERTA, **TWO),
    "nomic_bert": like_bert(saved.wordpiece, saved.BERT, **TWO),
}


def save(folder, name, **changes):
    """Write a random model of a family, and return transformers' model."""
    family = FAMILY_CASES[name]
    tokenizer = family.tokenizer()
    sizes = {"vocab_size": tokenizer.get_vocab_size(), **family.sizes, **changes}
    config = transformers.AutoConfig.for_model(name, **sizes)
    model = saved.random_model(transformers.AutoModel.from_config, config)
    model.save_pretrained(folder)
    saved.save_tokenizer(tokenizer, folder, LENGTH, **family.special)
    return model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of each family, written on first use."""
    made = {}

    def folder(name):
        if name not in made:
            base = tmp_path_factory.mktemp("base")
            save(base, name)
            behind = (
                modules.Pooling(saved.SIZES["hidden_size"], ("cls", "mean", "lasttoken")),
                modules.Normalize(),
            )
            made[name] = saved.save_modules(tmp_path_factory.mktemp(name), base, *behind)
        return made[name]

    return folder


@pytest.fixture(autouse=True)
def same_rotations(monkeypatch):
    """Rotate by the cosines of torch, and rotate and norm in float64 where the model is.

    transformers has float32 for these; what is left to compare are the equations, to 1e-9.
    """

    def rms_norm(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    def gemma_norm(self, x):
        return (1 + self.weight) * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def tables(positions, d_head, theta, dtype, factors=1.0):
        frequency = 1.0 / (theta ** (torch.arange(0, d_head, 2, dtype=torch.float) / d_head))
        angle = torch.tensor(positions)[:, None].float() * (frequency / torch.tensor(factors))
        return angle.cos().numpy().astype(dtype), angle.sin().numpy().astype(dtype)

    monkeypatch.setattr(rope, "rope_tables", tables)
    for name in ("Qwen3", "Qwen2", "Mistral", "Llama"):
        of_family = Library(f"transformers.models.{name.lower()}.modeling_{name.lower()}")
        monkeypatch.setattr(getattr(of_family, f"{name}RMSNorm"), "forward", rms_norm)
    of_gemma = Library("transformers.models.gemma3.modeling_gemma3").Gemma3RMSNorm
    monkeypatch.setattr(of_gemma, "forward", gemma_norm)
    float32 = torch.Tensor.float
    heads = 4  # dimensions of the arrays that are rotated
    monkeypatch.setattr(torch.Tensor, "float", lambda x: x if x.dim() == heads else float32(x))


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_vectors_equal_sentence_transformers(folders, name):
    """In float64; compiled kernels have float32, and are compared below."""
    theirs = saved.library_vectors(saved.library(folders(name), np.float64), LONG)
    vectors = Encoder.load(folders(name), np.float64).encode(LONG)
    np.testing.assert_allclose(vectors, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_compiled_kernels_equal_numpy(tmp_path, name):
    wide = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2}
    if name == "distilbert":
        wide = {"dim": 64, "hidden_dim": 128, "n_heads": 2}
    if "num_key_value_heads" in FAMILY_CASES[name].sizes:
        wide["num_key_value_heads"] = 1
    model = save(tmp_path, name, **wide)
    prepare_compiled().join()
    by_numpy, compiled = (Encoder.load(tmp_path, compiled=chosen) for chosen in (False, True))
    scale = max(1, np.abs(by_numpy.encode(LONG)).max())
    np.testing.assert_allclose(compiled.encode(LONG), by_numpy.encode(LONG), rtol=0, atol=1e-5 * scale)
    with torch.inference_mode():
        ids = torch.tensor(by_numpy.tokenizer.ids_batch(LONG[1:2]))
        theirs = model(ids).last_hidden_state[0, 0].numpy()
    [found] = compiled.encode(LONG[1:2], "cls", normalize_embeddings=False)
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_the_attention_received_equals_that_of_transformers(folders, name):
    encoder, official = Encoder.load(folders(name), np.float64), saved.library(folders(name), np.float64)
    for text in LONG[:5]:
        trace = encoder.trace(text)
        with torch.inference_mode():
            output = official[0].auto_model(torch.tensor(trace["ids"])[None])
        vectors = encoder.encode([text], ["cls", "attention"], normalize_embeddings=False)
        np.testing.assert_allclose(vectors["cls"][0], output.last_hidden_state[0, 0].numpy(), atol=1e-9)
        weights = trace[f"layers.{encoder.config.n_layers - 1}.attention.weights"].mean(axis=(0, 1))
        [states] = encoder.token_states([trace["ids"].tolist()])
        expected = weights / weights.sum() @ states.vectors
        np.testing.assert_allclose(vectors["attention"][0], expected, atol=1e-9)
        shapes = encoder.trace_shapes(len(trace["ids"]))
        assert {key: array.shape for key, array in trace.items() if key not in ("ids", "tokens")} == shapes


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_texts_are_cut_as_by_transformers(folders, name):
    encoder, official = Encoder.load(folders(name)), saved.library(folders(name))
    for text in [*LONG, saved.WORDS]:
        whole = encoder.tokenizer.encode(text).ids
        for limit in range(encoder.tokenizer.n_special + 1, LENGTH):
            theirs = official.tokenizer(text, truncation=True, max_length=limit)["input_ids"]
            assert encoder.truncate(whole, limit) == theirs


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_texts_of_a_pack_do_not_see_each_other_and_those_of_a_pair_do(folders, name):
    encoder, official = Encoder.load(folders(name), np.float64), saved.library(folders(name), np.float64)
    apart = np.concatenate([encoder.encode([text]) for text in LONG])
    np.testing.assert_allclose(encoder.encode(LONG), apart, atol=1e-12)
    trace = encoder.trace("a bad", pair="dad had")
    features = official.tokenizer("a bad", "dad had", return_tensors="pt")
    assert trace["ids"].tolist() == features["input_ids"][0].tolist()
    if name == "nomic_bert":  # the only one of these that tells segments apart
        features["token_type_ids"] = torch.tensor([encoder.read("a bad", "dad had").type_ids])
    with torch.inference_mode():
        theirs = official[0].auto_model(**features).last_hidden_state[0, 0].numpy()
    np.testing.assert_allclose(trace["pooled.cls"], theirs, atol=1e-9)


@pytest.mark.parametrize("name", FAMILY_CASES)
def test_the_limit_is_that_of_the_positions(tmp_path, name):
    save(tmp_path, name)
    (tmp_path / "tokenizer_config.json").unlink()
    encoder = Encoder.load(tmp_path)
    assert encoder.max_tokens == encoder.config.max_positions
    assert np.isfinite(encoder.encode(["a " * 500])).all()
    with pytest.raises(
        InputError, match=f"takes {encoder.tokenizer.n_special + 1} to {encoder.config.max_positions}"
    ):
        encoder.token_limit(encoder.config.max_positions + 1)


def test_an_unknown_family_is_refused_with_the_known_ones(tmp_path):
    save(tmp_path, "roberta")
    saved.edit_json(tmp_path / "config.json", model_type="electra")
    with pytest.raises(ModelFileError, match=f"'electra' model.*: give one of .*{', '.join(FAMILIES)}"):
        Encoder.load(tmp_path)


def test_configs_of_older_files_are_read(tmp_path):
    save(tmp_path, "modernbert")
    new = Encoder.load(tmp_path)
    path = tmp_path / "config.json"
    raw = json.loads(path.read_text())
    del raw["layer_types"], raw["rope_parameters"]
    old = {"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0}
    path.write_text(json.dumps(raw | old))
    assert Encoder.load(tmp_path).config == new.config

    save(tmp_path, "nomic_bert")
    new = Encoder.load(tmp_path)
    raw = json.loads(path.read_text())
    names = {
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "n_positions": "max_position_embeddings",
        "layer_norm_epsilon": "layer_norm_eps",
    }
    first = {old: raw[name] for old, name in names.items()}
    first |= {key: raw[key] for key in ("model_type", "vocab_size", "type_vocab_size")}
    first |= {"activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0}
    path.write_text(json.dumps(first | {"auto_map": {"AutoModel": "their_code.Model"}}))
    assert Encoder.load(tmp_path).config == new.config


def test_distances_fall_into_the_buckets_of_transformers():
    distances = np.arange(-600, 601)
    theirs = Library("transformers.models.mpnet.modeling_mpnet").MPNetEncoder.relative_position_bucket(
        torch.tensor(distances)
    )
    assert distance_buckets(distances).tolist() == theirs.tolist()


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("roberta", {"pad_token_id": None}, "pad_token_id is None"),
        ("xlm-roberta", {"is_decoder": True}, "reads left to right"),
        ("roberta", {"pad_token_id": 500}, "pad_token_id is 500"),
        ("mpnet", {"relative_attention_num_buckets": 16}, "16 buckets of distances: only 32"),
        ("distilbert", {"activation": "mish"}, "activation 'mish'"),
        ("distilbert", {"n_heads": 5}, "does not divide into 5 heads"),
        ("roberta", {"max_position_embeddings": 30}, "has shape"),
        ("modernbert", {"layer_types": ["full_attention"]}, "layer_types is not 4 of"),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "longrope"}}}, "scales its rota"),
        ("nomic_bert", {"head_dim": 10}, "heads of 10 dimensions"),
        ("nomic_bert", {"prenorm": True}, "sets prenorm to True, which is not read"),
    ],
)
def test_sizes_that_are_not_read_are_refused(tmp_path, name, changes, reason):
    save(tmp_path, name)
    saved.edit_json(tmp_path / "config.json", **changes)
    with pytest.raises(ModelFileError, match=reason):
        Encoder.load(tmp_path)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mistral", {"head_dim": 10, "sliding_window": None, "rope_parameters": YARN | {"rope_theta": 1e4}}),
        ("mistral", {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}),
        ("llama", {"mlp_bias": True, "attention_bias": False, "tie_word_embeddings": True}),
        ("llama", {"rope_parameters": LLAMA3 | {"rope_theta": 500.0, "original_max_position_embeddings": 8}}),
        (
            "qwen2",
            {"is_causal": True, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        ),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
        ("qwen3", {"is_causal": False, "attention_bias": True, "num_key_value_heads": 3}),
        ("qwen3", {"rope_parameters": YARN | {"rope_theta": 1e6, "mscale": 0.7, "mscale_all_dim": 0.9}}),
        (
            "gemma3_text",
            {"use_bidirectional_attention": False, "num_key_value_heads": 3, "sliding_window": 5},
        ),
        ("gemma3_text", {"is_causal": False, "query_pre_attn_scalar": 6, "num_hidden_layers": 7}),
        (
            "gemma3_text",
            {
                "rope_parameters": {
                    "full_attention": LINEAR,
                    "sliding_attention": {**LINEAR, "rope_type": "default"},
                }
            },
        ),
        ("gte", {"type_vocab_size": 0, "hidden_act": "relu", "rope_parameters": LINEAR}),
        ("gte", {"type_vocab_size": 2, "num_attention_heads": 6, "layer_norm_eps": 1e-5}),
        ("modernbert", {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "local_attention": 5}),
        ("modernbert", {"rope_parameters": {"full_attention": YARN | {"rope_theta": 1e4}}}),
        ("nomic_bert", {"hidden_act": "gelu", "num_attention_heads": 6, "rope_parameters": LINEAR}),
        ("qwen3", {"hidden_act": "gelu_fast", "rope_parameters": LINEAR | {"rope_type": "dynamic"}}),
        ("gemma3_text", {"hidden_activation": "relu", "attention_bias": True, "attn_logit_softcapping": 5.0}),
        ("distilbert", {"activation": "quick_gelu"}),
    ],
)
def test_other_sizes_and_options_equal_sentence_transformers(tmp_path, name, changes):
    save(tmp_path / "base", name, **changes)
    pooling = modules.Pooling(24, ("lasttoken", "mean"))
    folder = saved.save_modules(tmp_path / "folder", tmp_path / "base", pooling)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-9)):
        theirs = saved.library_vectors(saved.library(folder, dtype), LONG)
        scale = max(1, np.abs(theirs).max())
        found = Encoder.load(folder, dtype).encode(LONG)
        np.testing.assert_allclose(found, theirs, rtol=0, atol=tolerance * scale)


def test_what_knows_bert_alone_refuses_other_families(folders):
    encoder = Encoder.load(folders("roberta"))
    with pytest.raises(InputError, match="is a roberta model, and fine-tuning knows only BERT"):
        run_frozen_layers(encoder, ["a"], 1)


# Stages that the official modules do not give: tables before they are added up, and arrays inside others.
NOT_COMPARED = ("embeddings.token", "embeddings.position", "embeddings.type", "embeddings.sum")
MASKED = ("mpnet", "modernbert", "qwen3", "mistral", "llama", "gemma3_text")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FAMILY_CASES)
def test_every_stage_is_compared_with_the_official_model(folders, name, dtype):
    encoder = Encoder.load(folders(name), dtype)
    sizes = encoder.max_tokens, encoder.config.d_model, np.dtype(dtype).name
    official = load_official.__wrapped__(str(folders(name)), *sizes)

    def trace(text):
        return official_trace(official, text, encoder.config.n_kv_heads)

    checks = verify_model(encoder, LONG[1:3], trace)
    assert [check for check in checks if not check.passed] == []
    left_out = {*NOT_COMPARED, *(["attention.scores"] if name in MASKED else [])}
    missing = {*encoder.trace_shapes(3)} - {check.stage for check in checks}
    assert {re.sub(r"layers\.\d+\.", "", stage) for stage in missing if "pooled" not in stage} <= left_out
    exact = next(check for check in checks if check.stage == "ids")
    assert exact.difference(exact.decisive) == f"0, all {exact.n_numbers} numbers are equal"
