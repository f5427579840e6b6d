from dataclasses import fields

import numpy as np
import pytest

from engine.inspection.model.faults import PAD_TOKENS, Faults, broken, broken_trace, stage_drift
from engine.kernels.primitives import prepare_compiled
from engine.retrieval.ranking import ordinal_ranks

TEXTS = [
    "What does the CarbFix project do with carbon dioxide?",
    "Dog bites man.",
    "The naïve reader — unhappily — never learns what stood in the second half 🙂. " * 2,
    "word " * 130,  # more tokens than are padded to
]
SINGLE = [Faults(**{field.name: True}) for field in fields(Faults)]
MANY = [
    Faults(no_scaling=True, no_positions=True),
    Faults(no_residual=True, norm_first=True),
    Faults(norm_first=True, pad_mean=True),
    Faults(*[True] * len(fields(Faults))),
]


def names(faults):
    return "+".join(field.name for field in fields(faults) if getattr(faults, field.name)) or "intact"


def broken_vectors(encoder, texts, faults, on_progress=None):
    return broken(encoder, faults).encode(texts, "mean", on_progress=on_progress)


def in_torch(torch, official, text, faults):
    """The broken encoder in a few lines of torch, on the official model's own modules."""
    functional = torch.nn.functional
    bert = official[0].auto_model
    ids = official.tokenizer(text, truncation=True, max_length=256)["input_ids"]
    n_real = len(ids)
    if faults.pad_mean:
        ids = ids + [official.tokenizer.pad_token_id] * (PAD_TOKENS - n_real)
    n = len(ids)
    mask = (torch.arange(n) < n_real).expand(n, n)

    def add(x, y):
        return y if faults.no_residual else x + y

    def attend(x, attention):
        def heads(dense):
            return dense(x).view(n, 12, 32).transpose(0, 1)

        own = attention.self
        context = functional.scaled_dot_product_attention(
            heads(own.query), heads(own.key), heads(own.value), mask, scale=1 if faults.no_scaling else None
        )
        return attention.output.dense(context.transpose(0, 1).reshape(n, 384))

    with torch.inference_mode():
        table = bert.embeddings
        x = table.word_embeddings(torch.tensor(ids)) + table.token_type_embeddings.weight[0]
        if not faults.no_positions:
            x = x + table.position_embeddings.weight[:n]
        x = table.LayerNorm(x)
        for layer in bert.encoder.layer:
            norms = layer.attention.output.LayerNorm, layer.output.LayerNorm

            def transform(x, layer=layer):
                return layer.output.dense(functional.gelu(layer.intermediate.dense(x)))

            if faults.norm_first:
                x = add(x, attend(norms[0](x), layer.attention))
                x = add(x, transform(norms[1](x)))
            else:
                x = norms[0](add(x, attend(x, layer.attention)))
                x = norms[1](add(x, transform(x)))
        return functional.normalize(x.mean(0), dim=0).numpy()


@pytest.mark.parametrize("faults", [Faults(), *SINGLE, *MANY], ids=names)
def test_vectors_of_one_pack_or_two_and_of_traces_equal_the_same_fault_in_torch(
    torch, encoder, official, monkeypatch, faults
):
    prepare_compiled().join()  # compiled steps take no fault away
    theirs = np.stack([in_torch(torch, official, text, faults) for text in TEXTS])
    traced = np.stack([broken_trace(encoder, text, faults)["normalized"] for text in TEXTS])
    np.testing.assert_allclose(traced, theirs, rtol=0, atol=2e-5)
    np.testing.assert_allclose(broken_vectors(encoder, TEXTS, faults), theirs, rtol=0, atol=2e-5)
    monkeypatch.setattr("engine.models.encoder.BATCH_TOKENS", 150)
    np.testing.assert_allclose(broken_vectors(encoder, TEXTS, faults), theirs, rtol=0, atol=2e-5)


def test_the_torch_twin_without_faults_is_the_official_model(torch, official):
    theirs = official.encode(TEXTS, show_progress_bar=False)
    ours = np.stack([in_torch(torch, official, text, Faults()) for text in TEXTS])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)


def test_without_faults_nothing_moves(encoder):
    texts = [*TEXTS, "word " * 300]  # the last is truncated
    np.testing.assert_allclose(broken_vectors(encoder, texts, Faults()), encoder.encode(texts), atol=1e-6)
    intact, moved = encoder.trace(TEXTS[0]), broken_trace(encoder, TEXTS[0], Faults())
    assert set(intact) - set(moved) == {"tokens"}
    for name, array in moved.items():
        np.testing.assert_allclose(array, intact[name], atol=1e-6)
    assert max(stage_drift(intact, moved, 6).values()) < 1e-6
    moved = stage_drift(intact, broken_trace(encoder, TEXTS[0], Faults(pad_mean=True)), 6)
    assert moved.pop("normalized") > 0.1  # padding that is averaged moves the text, and no token
    assert max(moved.values()) < 1e-6
    trace = broken_trace(encoder, TEXTS[0], Faults(no_positions=True, pad_mean=True))
    assert len(trace["ids"]) == PAD_TOKENS  # what goes on after the fault is traced
    assert not trace["embeddings.position"].any()
    assert not trace["layers.2.attention.weights"][..., len(intact["ids"]) :].any()


def test_ranks_count_from_the_largest_score_and_ties_keep_their_order():
    assert ordinal_ranks(np.array([0.1, 0.9, 0.5, 0.9])).tolist() == [4, 1, 3, 2]
    assert ordinal_ranks(np.array([])).tolist() == []
