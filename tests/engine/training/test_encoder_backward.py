from dataclasses import replace

import numpy as np
import pytest

from engine import Encoder
from engine.models.bert import encoder_forward
from engine.models.parallel import row_spans
from engine.training.backward import encoder as backward
from engine.weights.fetch import model_path
from tests.pytorch import transformers

TEXTS = ["Tides.", "The tide turns twice a day, for the moon pulls the sea.", "Who moves the water?"]
OFFICIAL = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "ffn.hidden": "intermediate.dense",
    "ffn.output": "output.dense",
    "norm": "output.LayerNorm",
}


@pytest.fixture(scope="module")
def exact():
    return Encoder.load(dtype=np.float64)


@pytest.fixture(scope="module")
def official_gradients(torch, exact):
    """Gradients of sum(d_vectors * mean vectors) by torch's autograd, by the official names."""
    model = transformers.BertModel.from_pretrained(
        str(model_path(exact.name)), dtype=torch.float64, attn_implementation="eager"
    ).eval()
    for text, weights in zip(TEXTS, d_vectors(), strict=True):
        ids = torch.tensor([exact.tokenizer.encode(text).ids])
        (model(input_ids=ids).last_hidden_state[0].mean(dim=0) * torch.tensor(weights)).sum().backward()
    return {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}


def d_vectors():
    return np.random.default_rng(0).normal(size=(len(TEXTS), 384))


@pytest.mark.parametrize("n_last", [1, 6])
def test_gradients_are_those_of_autograd_on_the_official_model(exact, official_gradients, n_last):
    sequences = [exact.tokenizer.encode(text).ids for text in TEXTS]
    spans = row_spans([len(ids) for ids in sequences])
    frozen = replace(exact.weights, layers=exact.weights.layers[:-n_last])
    hidden = np.concatenate(encoder_forward(sequences, frozen, exact.config))
    layers = backward.named_layers(backward.layer_parameters(exact.weights, n_last))
    output, kept = backward.layers_forward(hidden, layers, exact.config, spans)
    d_output = backward.mean_pooling_backward(d_vectors(), spans)
    _, grads = backward.layers_backward(d_output, kept, layers, exact.config, spans)

    whole = encoder_forward(sequences, exact.weights, exact.config)
    np.testing.assert_allclose(output, np.concatenate(whole), atol=1e-12)
    assert len(grads) == 16 * n_last
    for name, grad in grads.items():
        _, number, part = name.split(".", 2)
        part, kind = part.rsplit(".", 1)
        expected = official_gradients[f"encoder.layer.{number}.{OFFICIAL[part]}.{kind}"]
        # Keys' biases change nothing: their gradient is rounding on both sides.
        np.testing.assert_allclose(grad, expected, rtol=0, atol=1e-6 * max(np.abs(expected).max(), 1e-6))


def test_parameters_are_copies_that_come_back_as_the_layers_they_were_taken_from(encoder):
    params = backward.layer_parameters(encoder.weights, 2)
    again = backward.with_parameters(encoder.weights, params)
    for array in params.values():
        array += 1
    assert len(again.layers) == 6
    for ours, theirs in zip(again.layers, Encoder.load().weights.layers, strict=True):
        for part, original in zip(ours.__dict__.values(), theirs.__dict__.values(), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(part, original, strict=True))
