import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.errors import InputError
from engine.kernels.primitives import prepare_compiled
from engine.layers import pooling
from engine.layers.pooling import POOLINGS, TokenStates
from engine.models.token_states import summed_vectors, token_weights

TEXTS = [
    "The cat sat on the mat.",
    "A feline rested on the rug while unbelievably antediluvian clocks ticked.",
    "the of and",
    "",
    "Zugzwang! " * 150,
]
SUMS = tuple(strategy for strategy in POOLINGS if strategy not in ("max", "pooler"))

masks = arrays(np.float64, st.integers(1, 12), elements=st.sampled_from([0.0, 1.0])).filter(np.any)


@pytest.fixture(scope="module")
def weighted(encoder):
    prepare_compiled().join()
    return encoder.with_idf(TEXTS)


@pytest.fixture(scope="module")
def official_states(encoder, official, torch):
    """Every layer's hidden states and attention of one text, by transformers."""

    def run(text):
        [ids] = encoder.tokenizer.ids_batch([text])
        inner = official[0].auto_model
        with torch.no_grad():
            ids = torch.tensor([encoder.truncate(ids)])
            out = inner(ids, output_hidden_states=True, output_attentions=True)
        return [h[0].numpy() for h in out.hidden_states], [a[0].numpy() for a in out.attentions]

    return run


@pytest.mark.parametrize("text", TEXTS)
def test_the_poolings_of_layers_and_of_attention_equal_those_made_of_the_official_states(
    encoder, official_states, text
):
    hidden, attentions = official_states(text)
    received = attentions[-1].mean(axis=(0, 1))  # (n_tokens,)
    expected = {
        "last4": np.mean(hidden[-4:], axis=0).mean(axis=0),
        "first_last": (hidden[1] + hidden[-1]).mean(axis=0) / 2,
        "attention": received @ hidden[-1],
    }
    ours = encoder.encode([text], list(expected), normalize_embeddings=False)
    for strategy, vector in expected.items():
        np.testing.assert_allclose(ours[strategy][0], vector, rtol=0, atol=5e-6)


def test_words_weigh_as_in_scikit_learn(weighted):
    from sklearn.feature_extraction.text import TfidfTransformer

    counts = np.zeros((len(TEXTS), weighted.config.vocab_size))
    for row, ids in enumerate(weighted.tokenizer.ids_batch(TEXTS)):
        np.add.at(counts[row], ids, 1)
    np.testing.assert_allclose(weighted.idf, TfidfTransformer().fit(counts).idf_ - 1, atol=1e-6)


def test_one_pass_gives_what_each_strategy_gives_alone_and_what_a_trace_shows(weighted):
    assert weighted.poolings == tuple(POOLINGS)
    together = weighted.encode(TEXTS, list(POOLINGS), normalize_embeddings=False)
    for strategy in POOLINGS:
        np.testing.assert_array_equal(
            together[strategy], weighted.encode(TEXTS, strategy, normalize_embeddings=False)
        )
    trace = weighted.trace(TEXTS[1])
    for strategy in POOLINGS:
        np.testing.assert_allclose(trace[f"pooled.{strategy}"], together[strategy][1], atol=1e-5)


@pytest.mark.parametrize("strategy", SUMS)
def test_a_sum_is_its_weights_times_its_vectors(weighted, strategy):
    for states in weighted.token_states(weighted.tokenizer.ids_batch(TEXTS[:2]), SUMS):
        weights = token_weights(states, strategy, weighted.idf)
        by_hand = sum(w * x for w, x in zip(weights, summed_vectors(states, strategy), strict=True))
        np.testing.assert_allclose(weighted.pool(states, strategy), by_hand, atol=1e-5)


@given(mask=masks)
def test_weights_go_to_the_tokens_of_the_mask_and_sum_to_one(mask):
    weights = np.arange(len(mask), dtype=float)
    plain = ("mean", "weightedmean", "cls", "lasttoken", "mean_sqrt_len_tokens")
    mean, later, first, last, by_root = (POOLINGS[name].weights(mask, None, None) for name in plain)
    for shares in (mean, later, first, last, pooling.normalized_weights(mask, weights)):
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
        assert not shares[mask == 0].any()
    assert (by_root**2).sum() == pytest.approx(1)
    assert np.flatnonzero(first)[0] == np.flatnonzero(mask)[0]
    assert np.flatnonzero(last)[0] == np.flatnonzero(mask)[-1]


def test_the_largest_value_is_taken_of_the_tokens_of_the_mask():
    x = np.array([[9.0, -3.0], [1.0, -2.0], [2.0, -1.0]])
    pooled = pooling.max_pooling(TokenStates(np.arange(3), x), np.array([0.0, 1.0, 1.0]))
    assert pooled.tolist() == [2.0, -1.0]


@pytest.mark.parametrize("strategy", ["max", "pooler"])
def test_what_is_no_sum_has_no_weights(weighted, strategy):
    [states] = weighted.token_states([[101, 102]])
    with pytest.raises(InputError, match="no sum over tokens"):
        token_weights(states, strategy)


def test_weights_of_words_must_be_there(encoder):
    assert "idf" not in encoder.poolings
    with pytest.raises(InputError, match=r"with_idf\(texts\)"):
        encoder.encode(["x"], "idf")
    with pytest.raises(InputError, match="list of texts"):
        encoder.with_idf("one text")
