import numpy as np
import pytest

from engine.inspection.model import model_view as views
from engine.inspection.model.logit_lens import nearest_tokens, pairwise_cosines

TEXT = "The bank raised its interest rates."


def random_attention(*shape, seed=0):
    weights = np.random.default_rng(seed).random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_rollout_multiplies_layers_of_half_attention_and_half_residual():
    first, second = random_attention(2, 3, 3)
    mixed = [(weights + np.eye(3)) / 2 for weights in (first, second)]
    np.testing.assert_allclose(views.attention_rollout(first[None]), mixed[0])
    np.testing.assert_allclose(views.attention_rollout(np.stack([first, second])), mixed[1] @ mixed[0])


def test_distances_shares_and_weights_without_some_tokens_are_those_of_known_heads():
    heads = np.stack([np.eye(6), np.roll(np.eye(6), 1, axis=1)])  # attend to themselves, to the next
    heads[1, -1] = np.eye(6)[-2]
    np.testing.assert_allclose(views.attention_distance(heads), [0, 1])
    weights = random_attention(2, 3, 5, 5)
    keys = np.array([True, False, False, True, False])
    np.testing.assert_allclose(views.attention_share(weights, keys), weights[..., [0, 3]].sum(-1).mean(-1))
    weights = random_attention(2, 4, 4)
    left_out = np.array([True, False, False, True])
    kept = views.without_tokens(weights, left_out)
    assert kept.shape == (2, 2, 2)
    np.testing.assert_allclose(kept.sum(axis=-1), 1)
    np.testing.assert_allclose(kept[0, 0, 0] / kept[0, 0, 1], weights[0, 1, 1] / weights[0, 1, 2])
    none_left = views.without_tokens(np.eye(2)[None, ::-1], np.array([True, False]))
    np.testing.assert_array_equal(none_left, [[[0]]])


def test_a_look_holds_one_layer_whole_and_all_in_outline(encoder):
    seen = views.view_encoder(encoder, TEXT, layer=2)
    trace = encoder.trace(TEXT)
    assert seen.tokens == list(trace["tokens"])
    assert list(seen.special) == [True] + [False] * 7 + [True]
    for name in seen.trace:
        np.testing.assert_array_equal(seen.trace[name], trace[name])
    assert {name for name in trace if name.startswith("layers.2.")} <= set(seen.trace)
    assert "layers.3.attention.weights" not in seen.trace
    for layer in range(6):
        weights = trace[f"layers.{layer}.attention.weights"]
        np.testing.assert_allclose(seen.attention.maps[layer], weights.mean(axis=0))
        np.testing.assert_allclose(seen.attention.distances[layer], views.attention_distance(weights))
        np.testing.assert_allclose(seen.attention.shares[layer], weights[..., [0, -1]].sum(-1).mean(-1))
    np.testing.assert_array_equal(seen.states(3)[0], trace["embeddings.output"][3])
    np.testing.assert_array_equal(seen.states(3)[-1], trace["layers.5.output"][3])


def test_a_view_leaves_out_special_tokens_and_takes_a_pair_or_a_long_text(encoder):
    seen = views.view_encoder(encoder, TEXT, layer=0, without_special=True)
    assert seen.attention.rollout().shape == (7, 7)
    weights = encoder.trace(TEXT)["layers.4.attention.weights"][:, 1:-1, 1:-1]
    weights = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(seen.attention.distances[4], views.attention_distance(weights), rtol=1e-5)
    pair = views.view_encoder(encoder, "How do cats sleep?", 0, pair="Curled up.")
    assert pair.encoding.type_ids[-1] == 1
    assert pair.special.sum() == 3
    long = views.view_encoder(encoder, "word " * 600, 5, max_tokens=512)
    assert long.attention.rollout().shape == (512, 512)


def test_a_decoder_is_cut_at_the_limit_and_reads_causally(decoder):
    seen = views.view_decoder(decoder, "The bank raised its interest rates. " * 30, layer=7, max_tokens=50)
    assert len(seen.encoding) == len(seen.tokens) == 50
    assert seen.tokens[:2] == ["The", " bank"]
    assert len(seen.attention.maps) == decoder.config.n_layers
    assert (np.triu(seen.attention.rollout(), 1) == 0).all()


def test_nearest_tokens_and_similarities_are_by_cosine(encoder):
    table = encoder.weights.token_table
    number = encoder.tokenizer.encode("river").ids[1]
    nearest = nearest_tokens(table[number][None] * 3, table, 5)
    assert nearest.ids[0, 0] == number
    assert nearest.scores[0, 0] == pytest.approx(1, abs=1e-5)
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(np.diag(pairwise_cosines(x)), 1)
    expected = x[0] @ x[1] / np.linalg.norm(x[0]) / np.linalg.norm(x[1])
    np.testing.assert_allclose(pairwise_cosines(x * 7)[0, 1], expected)
