"""Gradients of a cross-encoder are those of autograd on the official model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from engine.models.reranker import Reranker
from engine.training.backward.cross_encoder import pairs_backward, pairs_forward
from engine.training.backward.encoder import layer_parameters
from tests.engine.training.test_encoder_backward import OFFICIAL

QUESTION = "a b c?"
PASSAGES = ["j i h g f e d c b a", "c", "abc def a b c " * 3]


def official_name(name):
    if not name.startswith("layers."):
        return name.replace("pooler", "bert.pooler.dense")
    _, number, part = name.split(".", 2)
    part, kind = part.rsplit(".", 1)
    return f"bert.encoder.layer.{number}.{OFFICIAL[part]}.{kind}"


def test_scores_and_gradients_equal_pytorch(reranker_folder):
    model = Reranker.load(reranker_folder, dtype=np.float64)
    head = {"pooler": model.head.dense, "classifier": model.head.score}
    params = layer_parameters(model.weights, model.config.n_layers)
    for name, (weight, bias) in head.items():
        params |= {f"{name}.weight": np.array(weight), f"{name}.bias": np.array(bias)}
    pairs = [model.read(QUESTION, passage) for passage in PASSAGES]
    run = pairs_forward(pairs, replace(model.weights, layers=()), params, model.config)
    assert run.logits == pytest.approx(model.score_ids(pairs, as_logits=True), abs=1e-12)

    d_logits = np.array([1.0, -2.0, 0.5])
    grads = pairs_backward(d_logits, run, params, model.config)
    official = AutoModelForSequenceClassification.from_pretrained(
        str(reranker_folder), dtype=torch.float64
    ).eval()
    for pair, weight in zip(pairs, d_logits, strict=True):
        inputs = {"input_ids": pair.ids, "token_type_ids": pair.type_ids}
        logits = official(**{name: torch.tensor([ids]) for name, ids in inputs.items()}).logits
        (logits.sum() * weight).backward()
    theirs = {name: parameter.grad for name, parameter in official.named_parameters()}
    assert set(grads) == set(params)
    for name, grad in grads.items():
        expected = theirs[official_name(name)].numpy()
        np.testing.assert_allclose(grad, expected, rtol=0, atol=1e-6 * max(np.abs(expected).max(), 1e-6))
