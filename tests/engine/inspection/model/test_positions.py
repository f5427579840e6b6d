import math

import numpy as np
import pytest

from engine.errors import InputError
from engine.inspection.model.positions import (
    decoder_score_by_distance,
    learned_scores,
    rope_scores,
    score_by_distance,
)
from engine.layers import positions as layers
from engine.layers.activation import softmax
from engine.layers.attention import causal_mask
from tests.pytorch import Library, transformers

LLAMA = Library("transformers.models.llama.modeling_llama")
BLOOM = Library("transformers.models.bloom.modeling_bloom")


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("d_model", [2, 6, 7, 64])
def test_sinusoidal_positions_are_those_of_the_paper(d_model):
    vectors = layers.sinusoidal(np.arange(50), d_model, np.dtype(np.float64))
    for position, i in [(0, 0), (1, 0), (1, 1), (49, d_model - 1), (20, d_model // 2)]:
        angle = position / 10000 ** (2 * (i // 2) / d_model)
        expected = math.cos(angle) if i % 2 else math.sin(angle)
        assert vectors[position, i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "default"},
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "llama3", "original_max_position_embeddings": 128, **LLAMA3},
    ],
    ids=lambda rope: rope["rope_type"],
)
def test_rope_equals_transformers(torch, rope):
    theta, start = 10000.0, 400
    config = transformers.LlamaConfig(
        hidden_size=128, num_attention_heads=2, rope_parameters={"rope_theta": theta, **rope}
    )
    positions, x = np.arange(start, start + 20), random(2, 20, 64).astype(np.float32)
    tables = LLAMA.LlamaRotaryEmbedding(config)(torch.tensor(x)[None], torch.tensor(positions)[None])
    expected, _ = LLAMA.apply_rotary_pos_emb(torch.tensor(x)[None], torch.tensor(x)[None], *tables)
    factors = {
        "default": 1.0,
        "linear": 4.0,
        "llama3": tuple(layers.llama3_factors(64, theta, 8.0, 1.0, 4.0, 128)),
    }[rope["rope_type"]]
    ours = layers.apply_rope(x, *layers.rope_tables(positions, 64, theta, x.dtype, factors))
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, expected[0].numpy(), rtol=0, atol=2e-6)


def test_alibi_slopes_and_attention_equal_those_of_bloom(torch):
    np.testing.assert_allclose(layers.alibi_slopes(8), [2.0**-i for i in range(1, 9)])  # as in the paper
    for n_heads in range(1, 41):
        official = BLOOM.build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), n_heads, torch.float32)
        np.testing.assert_allclose(layers.alibi_slopes(n_heads), official[:, 0, 1].numpy(), rtol=1e-6)
    scores, mask = random(6, 9, 9), causal_mask(9, 9, np.float64)
    official = BLOOM.build_alibi_tensor(torch.ones(1, 9, dtype=torch.long), 6, torch.float64).numpy()
    ours = layers.alibi_bias(6, 9, 9, np.dtype(np.float64))
    np.testing.assert_allclose(softmax(scores + ours + mask), softmax(scores + official + mask), atol=1e-12)


@pytest.mark.parametrize(("d_rotary", "scale"), [(16, 1.0), (12, 1.2)])
def test_the_line_of_rope_is_the_mean_over_tokens_of_its_own_rotation(d_rotary, scale):
    d_head, n_tokens = 16, 4000
    tokens = random(n_tokens, 1, d_head)
    line = rope_scores(layers.rope_frequencies(d_rotary, 100.0), 12, d_head, scale)
    for distance in line.distances:
        cos, sin = layers.rope_tables(np.array([3 + distance, 3]), d_rotary, 100.0, np.dtype(np.float64))
        query, key = layers.apply_rope(tokens, cos[0], sin[0]), layers.apply_rope(tokens, cos[1], sin[1])
        scores = ((query * key).sum(-1) - np.square(tokens).sum(-1)) / np.sqrt(d_head)
        scores *= scale**2
        error = scores.std() / np.sqrt(n_tokens)
        assert line.change[0, distance] == pytest.approx(scores.mean(), abs=5 * error + 1e-5)


def test_every_scheme_begins_at_zero_and_only_a_table_knows_places():
    schemes = score_by_distance(64, d_model=32, n_heads=4)
    assert [scheme.scheme for scheme in schemes] == ["learned", "sinusoidal", "RoPE", "ALiBi"]
    for scheme in schemes:
        assert scheme.change.shape == (len(scheme.lines), 64)
        np.testing.assert_allclose(scheme.change[:, 0], 0, atol=1e-12)
        assert (scheme.change[:, 1:] < 0).all()
        assert (scheme.lowest <= scheme.change).all()
        assert (scheme.change <= scheme.highest).all()
        alone = np.array_equal(scheme.lowest, scheme.highest)
        assert alone == (scheme.scheme != "learned")


def test_more_distances_than_positions_and_heads_that_cannot_be_rotated_are_refused():
    for n_distances in (0, 11):
        with pytest.raises(InputError, match="give 1 to 10"):
            learned_scores(random(10, 4), n_distances)
    with pytest.raises(InputError, match="give a multiple of 8"):
        score_by_distance(10, d_model=12, n_heads=4)


def test_a_decoder_is_drawn_with_its_own_frequencies(decoder):
    line = decoder_score_by_distance(decoder, 100)
    angle = 50 * 100000.0 ** (-np.arange(0, 64, 2) / 64)  # SmolLM2: heads of 64, RoPE base 100000
    assert line.scheme == "RoPE"
    assert line.change[0, 50] == pytest.approx(8 * (np.cos(angle).mean() - 1), abs=1e-4)
