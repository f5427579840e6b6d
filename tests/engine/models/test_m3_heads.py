"""The heads of BGE-M3 give the weights and vectors of FlagEmbedding, by its equations in PyTorch."""

import os

import numpy as np
import pytest
from safetensors.torch import save_file

from engine import Encoder
from engine.errors import ModelFileError
from engine.inspection.model.matches import expanded_text
from engine.models.m3_heads import COLBERT, SPARSE
from engine.models.multi_vector import MultiVectorEncoder
from engine.models.sparse_encoder import SparseEncoder
from tests.engine.models.test_encoder_families import save
from tests.pytorch import modules, torch
from tests.sentence_transformer_folders import SIZES, edit_json, save_modules

TEXTS = ["the cat sat on the mat", "кошка <s> сидит", "", "東京 café " * 9, "<unk> \x01 1234"]
D_MODEL, WIDTH = SIZES["hidden_size"], 6


def save_m3(folder, dtype="float32", write=torch.save, end="pt"):
    """Write a folder as FlagEmbedding and sentence-transformers do, and return its two layers."""
    save(folder / "base", "xlm-roberta")
    heads = modules.Pooling(D_MODEL, "cls"), modules.Normalize()
    save_modules(folder, folder / "base", *heads)
    special = {"cls_token": "<s>", "eos_token": "</s>", "unk_token": {"content": "<unk>"}}
    edit_json(folder / "tokenizer_config.json", **special)
    torch.manual_seed(1)
    layers = {SPARSE: torch.nn.Linear(D_MODEL, 1), COLBERT: torch.nn.Linear(D_MODEL, WIDTH)}
    for name, layer in layers.items():
        layer = layer.to(getattr(torch, dtype))
        write(layer.state_dict(), folder / f"{name}.{end}")
        layer.double()
    return layers


@pytest.mark.parametrize(
    ("dtype", "write", "end"),
    [("float32", torch.save, "pt"), ("float16", torch.save, "pt"), ("bfloat16", save_file, "safetensors")],
)
def test_weights_and_vectors_equal_flag_embedding(tmp_path, dtype, write, end):
    layers = save_m3(tmp_path, dtype, write, end)
    sparse, late = (kind.load(tmp_path, dtype=np.float64) for kind in (SparseEncoder, MultiVectorEncoder))
    encoder = Encoder.load(tmp_path, np.float64)
    weights, vectors = sparse.encode(TEXTS).toarray(), late.vectors(TEXTS)
    for place, ids in enumerate(sparse.transformer.ids_of(TEXTS)):
        hidden = torch.tensor(sparse.transformer.vectors([ids])[0])  # (n_tokens, d_model)
        of_tokens = torch.relu(layers[SPARSE](hidden))[:, 0].tolist()
        expected = np.zeros(sparse.transformer.config.vocab_size)
        for number, weight in zip(ids, of_tokens, strict=True):
            if number not in (0, 1, 2, 3):  # <s>, <pad>, </s> and <unk>
                expected[number] = max(expected[number], weight)
        np.testing.assert_allclose(weights[place], expected, atol=1e-9)
        projected = torch.nn.functional.normalize(layers[COLBERT](hidden[1:]), dim=-1)
        np.testing.assert_allclose(vectors[place], projected.detach().numpy(), atol=1e-9)
        assert len(late.placed_tokens(TEXTS[place], "document")) == len(projected)
        own = torch.nn.functional.normalize(hidden[0], dim=0).numpy()
        np.testing.assert_allclose(encoder.encode(TEXTS[place]), own, atol=1e-9)
        found = sparse.expand(TEXTS[place])
        words = np.flatnonzero(found.weights)
        assert [ids[token] for token in found.tokens[words]] == words.tolist()
        np.testing.assert_allclose(np.array(of_tokens)[found.tokens[words]], found.weights[words], atol=1e-9)
    shown = expanded_text(sparse, TEXTS[0], "query")
    assert shown.words
    assert all(word.stands_in_text for word in shown.words)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harmed",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (Harmful(), "mkdir is no tensor"),
        ({"weight": torch.ones(4, 6).T}, "a tensor does not lie row by row"),
        ({"weight": torch.ones(2, 24)}, r"shape \(2, 24\), but the model's sizes ask for \(1, 24\)"),
        ([1], "has no attribute 'items'"),
        (None, "File is not a zip file"),
    ],
)
def test_other_files_of_pytorch_are_refused_and_never_run(tmp_path, monkeypatch, content, reason):
    monkeypatch.chdir(tmp_path)
    save_m3(tmp_path)
    if content is None:
        (tmp_path / f"{SPARSE}.pt").write_bytes(b"PK")
    else:
        torch.save(content, tmp_path / f"{SPARSE}.pt")
    with pytest.raises(ModelFileError, match=reason):
        SparseEncoder.load(tmp_path)
    assert not (tmp_path / "harmed").exists()
