"""Families whose official code comes with the files and is never run: against PyTorch, from their papers."""

import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine import Encoder
from engine.errors import InputError, ModelFileError
from engine.kernels.primitives import prepare_compiled
from engine.verify import verify_model
from tests.pytorch import torch
from tests.sentence_transformer_folders import BERT, TEXTS, WORDPIECES, save_tokenizer, wordpiece

D_MODEL, D_FF, N_LAYERS = 24, 40, 2
LONG = [*TEXTS, "a bad dad had a jade bee " * 10]
JINA = {
    "model_type": "bert",
    "position_embedding_type": "alibi",
    "feed_forward_type": "geglu",
    "hidden_act": "gelu",
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}
GTE = {
    "model_type": "new",
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "hidden_act": "gelu",
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-12,
    "rope_theta": 500.0,
}
SIZES = {
    "vocab_size": len(WORDPIECES),
    "hidden_size": D_MODEL,
    "intermediate_size": D_FF,
    "num_hidden_layers": N_LAYERS,
    "max_position_embeddings": 64,
}


def write(folder, config, tensors, prefix=""):
    """Write a folder whose tensors have these shapes, and return them, random."""
    generator = torch.Generator().manual_seed(0)
    made = {name: 0.3 * torch.randn(shape, generator=generator) for name, shape in tensors.items()}
    named = {prefix + name: tensor.numpy() for name, tensor in made.items()}
    save_file(named, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(SIZES | config))
    save_tokenizer(wordpiece(), folder, 64, **BERT)
    return {name: tensor.double() for name, tensor in made.items()}


def linear(x, tensors, name):
    return torch.nn.functional.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def norm(x, tensors, name, eps=1e-12):
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    return torch.nn.functional.layer_norm(x, (D_MODEL,), weight, bias, eps)


def attend(query, key, value, n_heads, bias=0.0):
    """Attention of one text: ``(n_tokens, d_model)``."""
    heads = [x.view(len(x), n_heads, -1).transpose(0, 1) for x in (query, key, value)]
    scores = heads[0] @ heads[1].transpose(1, 2) / math.sqrt(heads[0].shape[-1]) + bias
    return (scores.softmax(-1) @ heads[2]).transpose(0, 1).reshape(len(query), D_MODEL)


def layer_shapes(**shapes):
    """Shapes of the tensors of all layers, ``(d_out, d_in)`` by name, with a bias where it says so."""
    made = {}
    for number in range(N_LAYERS):
        for name, (shape, biased) in shapes.items():
            name = f"encoder.layer.{number}.{name.replace('__', '.')}"
            made[f"{name}.weight"] = shape
            made |= {f"{name}.bias": shape[:1]} if biased else {}
    return made


SQUARE, VECTOR = ((D_MODEL, D_MODEL), True), ((D_MODEL,), True)
EMBEDDINGS = {
    "embeddings.word_embeddings.weight": (len(WORDPIECES), D_MODEL),
    "embeddings.LayerNorm.weight": (D_MODEL,),
    "embeddings.LayerNorm.bias": (D_MODEL,),
}
SEGMENTS = {"embeddings.token_type_embeddings.weight": (2, D_MODEL)}
JINA_SHAPES = {
    **dict.fromkeys(["attention__self__query", "attention__self__key", "attention__self__value"], SQUARE),
    "attention__output__dense": SQUARE,
    "attention__output__LayerNorm": VECTOR,
}
OLD = {
    "mlp__gated_layers": ((2 * D_FF, D_MODEL), False),
    "mlp__wo": ((D_MODEL, D_FF), True),
    "mlp__layernorm": VECTOR,
}
NEW = {
    "mlp__up_gated_layer": ((2 * D_FF, D_MODEL), False),
    "mlp__down_layer": ((D_MODEL, D_FF), True),
    **dict.fromkeys(["layer_norm_1", "layer_norm_2"], VECTOR),
    **dict.fromkeys(["attention__self__layer_norm_q", "attention__self__layer_norm_k"], VECTOR),
}


def slopes(n):
    """ALiBi's slopes, as its authors compute them."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    power = 2 ** math.floor(math.log2(n))
    return slopes(power) + slopes(2 * power)[0::2][: n - power]


def jina(ids, tensors, n_heads, newer, act):
    x = (
        tensors["embeddings.word_embeddings.weight"][ids]
        + tensors["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, tensors, "embeddings.LayerNorm")
    place = torch.arange(len(ids))
    bias = -torch.tensor(slopes(n_heads), dtype=torch.float64)[:, None, None] * (place[:, None] - place).abs()
    for number in range(N_LAYERS):
        layer = {n.removeprefix(f"encoder.layer.{number}."): t for n, t in tensors.items()}
        query, key, value = (linear(x, layer, f"attention.self.{n}") for n in ("query", "key", "value"))
        if newer:
            query = norm(query, layer, "attention.self.layer_norm_q")
            key = norm(key, layer, "attention.self.layer_norm_k")
        output = linear(attend(query, key, value, n_heads, bias), layer, "attention.output.dense")
        output = norm(output + x, layer, "attention.output.LayerNorm")
        x = norm(output + x, layer, "layer_norm_1") if newer else output
        if newer:
            up, gate = linear(x, layer, "mlp.up_gated_layer").chunk(2, -1)
            x = norm(linear(up * act(gate), layer, "mlp.down_layer") + x, layer, "layer_norm_2")
        else:
            gate, up = linear(x, layer, "mlp.gated_layers").chunk(2, -1)
            x = norm(linear(act(gate) * up, layer, "mlp.wo") + x, layer, "mlp.layernorm")
    return x


def save_jina(folder, n_heads=2, newer=False, gate="geglu", prefix=""):
    """Write a random model of Jina's, and return its tensors."""
    auto = "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel" if newer else "modeling.Jina"
    own = {"num_attention_heads": n_heads, "feed_forward_type": gate, "auto_map": {"AutoModel": auto}}
    shapes = EMBEDDINGS | SEGMENTS | layer_shapes(**JINA_SHAPES, **(NEW if newer else OLD))
    return write(folder, JINA | own, shapes, prefix)


@pytest.mark.parametrize(
    ("n_heads", "newer", "gate", "prefix"),
    [(2, False, "geglu", ""), (3, False, "reglu", "bert."), (6, True, "geglu", "")],
)
def test_jina_embeddings_2_equal_their_equations(tmp_path, n_heads, newer, gate, prefix):
    tensors = save_jina(tmp_path, n_heads, newer, gate, prefix)
    with pytest.raises(InputError, match="official code comes with its files, and is never run"):
        verify_model(Encoder.load(tmp_path))
    act = torch.nn.functional.gelu if gate == "geglu" else torch.relu
    check(tmp_path, lambda ids: jina(ids, tensors, n_heads, newer, act))


def check(folder, official, atol=1e-9):
    """Compare token vectors in float64 and, of compiled kernels, in float32."""
    prepare_compiled().join()
    exact, single = Encoder.load(folder, np.float64), Encoder.load(folder)
    for text in LONG:
        ids = exact.truncate(exact.tokenizer.encode(text).ids)
        theirs = official(torch.tensor(ids)).numpy()
        np.testing.assert_allclose(exact.token_states([ids])[0].vectors, theirs, atol=atol)
        np.testing.assert_allclose(single.token_states([ids])[0].vectors, theirs, atol=1e-5)
        shapes = exact.trace_shapes(len(ids))
        trace = exact.trace(text)
        assert {key: array.shape for key, array in trace.items() if key not in ("ids", "tokens")} == shapes
    together = exact.encode(LONG)
    np.testing.assert_allclose(together, np.concatenate([exact.encode([text]) for text in LONG]), atol=1e-12)


def gte(ids, tensors, n_heads, factor, mixed=None):
    x = norm(tensors["embeddings.word_embeddings.weight"][ids], tensors, "embeddings.LayerNorm")
    d_head = D_MODEL // n_heads
    power = torch.arange(0, d_head, 2, dtype=torch.float64) / d_head
    if mixed is None:
        frequency = (GTE["rope_theta"] * factor) ** -power / factor ** (2 / d_head)
    else:
        slower = math.log(factor) / (d_head / 2) ** mixed * torch.arange(1, d_head // 2 + 1).double() ** mixed
        frequency = GTE["rope_theta"] ** -power / slower.exp()
    angle = torch.arange(len(ids), dtype=torch.float64)[:, None] * frequency
    cos, sin = (torch.cat([part, part], -1).repeat(1, n_heads) for part in (angle.cos(), angle.sin()))

    def rotated(x):
        first, second = x.view(len(x), n_heads, 2, -1).unbind(2)
        return x * cos + torch.stack([-second, first], 2).reshape(len(x), D_MODEL) * sin

    for number in range(N_LAYERS):
        layer = {n.removeprefix(f"encoder.layer.{number}."): t for n, t in tensors.items()}
        query, key, value = linear(x, layer, "attention.qkv_proj").chunk(3, -1)
        context = attend(rotated(query), rotated(key), value, n_heads)
        x = norm(linear(context, layer, "attention.o_proj") + x, layer, "attn_ln")
        up, gate = linear(x, layer, "mlp.up_gate_proj").chunk(2, -1)
        output = linear(torch.nn.functional.gelu(gate) * up, layer, "mlp.down_proj")
        x = norm(output + x, layer, "mlp_ln")
    return x


@pytest.mark.parametrize(("factor", "mixed"), [(1.0, None), (8.0, None), (4.0, 0.625)])
def test_gte_of_its_makers_equals_its_equations(tmp_path, factor, mixed):
    scaling = {"rope_scaling": {"type": "ntk", "factor": factor, "mixed_b": mixed}} if factor > 1 else {}
    square, vector = ((D_MODEL, D_MODEL), True), ((D_MODEL,), True)
    layers = layer_shapes(
        attention__qkv_proj=((3 * D_MODEL, D_MODEL), True),
        attention__o_proj=square,
        attn_ln=vector,
        mlp__up_gate_proj=((2 * D_FF, D_MODEL), False),
        mlp__down_proj=((D_MODEL, D_FF), True),
        mlp_ln=vector,
    )
    tensors = write(tmp_path, {**GTE, "num_attention_heads": 2, **scaling}, EMBEDDINGS | layers, "new.")
    # The angles are float32, of frequencies that are.
    check(tmp_path, lambda ids: gte(ids, tensors, 2, factor, mixed), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "changes", "reason"),
    [
        (JINA, {"feed_forward_type": "original"}, "feed_forward_type 'original' is not one of geglu, reglu"),
        (GTE, {"logn_attention_scale": True}, "sets logn_attention_scale to True"),
        (GTE, {"rope_scaling": {"type": "longrope", "factor": 2}}, r"rotary positions \(longrope\)"),
    ],
)
def test_what_is_not_read_is_refused(tmp_path, config, changes, reason):
    write(tmp_path, {**config, "num_attention_heads": 2, **changes}, EMBEDDINGS)
    with pytest.raises(ModelFileError, match=reason):
        Encoder.load(tmp_path)
