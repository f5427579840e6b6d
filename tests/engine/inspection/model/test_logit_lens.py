import numpy as np
import pytest
from scipy.stats import entropy

from engine.errors import InputError
from engine.inspection.model.last_positions import read_last
from engine.inspection.model.logit_lens import logit_lens
from engine.layers.activation import softmax
from engine.models.decoders import final_norm
from tests.engine.models.test_decoder_families import TEXT

N = 4  # last positions


def states_and_logits(decoder):
    """The residual stream at the last positions of a text, and the model's own logits there."""
    ids = decoder.tokenizer.encode(TEXT).ids
    return read_last(decoder, ids, N)[0].states, decoder.logits(ids)[-N:]


def test_the_last_row_is_the_models_own_distribution(family):
    states, logits = states_and_logits(family)
    lens, probabilities = logit_lens(states, family, 3), softmax(logits)
    np.testing.assert_allclose(
        lens.probabilities[-1], np.sort(probabilities)[:, :-4:-1], rtol=1e-4, atol=1e-7
    )
    np.testing.assert_array_equal(lens.ids[-1, :, 0], probabilities.argmax(axis=-1))
    np.testing.assert_array_equal(lens.targets, probabilities.argmax(axis=-1))
    np.testing.assert_array_equal(lens.target_ranks[-1], 1)
    np.testing.assert_array_equal(lens.divergences[-1], 0)
    followed = logit_lens(states, family, 2, [11] * N)
    np.testing.assert_allclose(followed.target_probabilities[-1], probabilities[:, 11], rtol=1e-4)
    np.testing.assert_array_equal(followed.target_ranks[-1], 1 + (logits > logits[:, 11:12]).sum(axis=-1))


def test_the_divergence_is_that_of_the_models_distribution_from_the_layers(family):
    states, logits = states_and_logits(family)
    lens = logit_lens(states, family, 1)
    last = softmax(logits.astype(np.float64))
    for layer in range(len(states)):
        own = family.unembed(final_norm(states[layer], family.weights, family.config))
        expected = entropy(last, softmax(own.astype(np.float64)), axis=-1)
        np.testing.assert_allclose(lens.divergences[layer], expected, rtol=1e-3, atol=1e-5)
    for place, row in enumerate(lens.settled()):  # from there on, no layer prefers another token
        assert (lens.ids[row:, place, 0] == lens.targets[place]).all()
        assert row == 0 or lens.ids[row - 1, place, 0] != lens.targets[place]


def test_the_states_read_are_those_of_a_trace(family):
    ids = family.tokenizer.encode(TEXT).ids
    found, _ = read_last(family, ids, N)
    trace = family.trace(ids)
    np.testing.assert_allclose(found.states[0], trace["embeddings.output"][-N:], atol=1e-6)
    np.testing.assert_allclose(found.final, trace["norm"][-N:], atol=1e-4)
    for layer in range(family.config.n_layers):
        own = f"layers.{layer}"
        np.testing.assert_allclose(found.states[layer + 1], trace[f"{own}.output"][-N:], atol=1e-4)
        np.testing.assert_allclose(found.attention[layer], trace[f"{own}.attention.output"][-N:], atol=1e-4)
        np.testing.assert_allclose(found.heads[layer], trace[f"{own}.attention.context"][:, -N:], atol=1e-4)
        np.testing.assert_allclose(found.ffn[layer], trace[f"{own}.ffn.output"][-N:], atol=1e-4)


def test_what_cannot_be_followed_is_refused(family):
    states = states_and_logits(family)[0]
    for k, targets, reason in (
        (0, None, "k is 0: give 1 to"),
        (1, [5], "1 targets for 4 positions: give one for each"),
        (1, [5, 5, 5, 10**6], "token id 1000000 is not one of"),
    ):
        with pytest.raises(InputError, match=reason):
            logit_lens(states, family, k, targets)
    with pytest.raises(InputError, match=r"65 positions of a text of 3 tokens: give 1 to 3"):
        read_last(family, [5, 6, 7], 65)
