import numpy as np
import pytest

from engine.errors import InputError
from engine.inspection.pooling.token_contributions import (
    document_frequency,
    has_no_idf_weight,
    pooled_parts,
    pooling_shares,
    token_contributions,
)
from engine.layers.pooling import POOLINGS

TEXTS = ["What does the CarbFix project do with carbon dioxide?", "Dog bites man."]


@pytest.mark.parametrize("strategy", [strategy for strategy in POOLINGS if strategy != "pooler"])
def test_contributions_and_shares_of_what_is_pooled_sum_to_one(encoder, strategy):
    weighted = encoder.with_idf(TEXTS)
    for states in weighted.token_states(weighted.tokenizer.ids_batch(TEXTS), [strategy]):
        pooled, idf = weighted.pool(states, strategy), weighted.idf
        np.testing.assert_allclose(pooled_parts(states, strategy, idf).sum(0), pooled, rtol=0, atol=2e-6)
        assert token_contributions(states, strategy, idf).sum() == pytest.approx(1, abs=1e-5)
        shares = pooling_shares(states, strategy, idf)
        if strategy != "mean_sqrt_len_tokens":
            assert shares.sum() == pytest.approx(1, abs=1e-5)
        if strategy == "max":  # the share of the dimensions that a token won
            np.testing.assert_allclose(384 * shares, (states.vectors == pooled).sum(1), atol=1e-9)
    with pytest.raises(InputError, match="no sum over tokens"):
        token_contributions(states, "pooler")


def test_document_frequencies_come_back_from_the_weights(encoder):
    texts = [f"word {'carbon ' * (n % 2)}{'basalt' * (n == 3)}" for n in range(400)]
    frequency, n_documents = document_frequency(encoder.with_idf(texts).idf)
    ids = encoder.tokenizer.encode("word carbon basalt dioxide").ids
    assert n_documents == 400
    assert frequency[ids].tolist() == [400, 400, 200, 1, 0, 400]


def test_only_a_text_of_words_that_all_texts_have_weighs_nothing(encoder):
    weighted = encoder.with_idf(["the cat", "the dog"])
    assert has_no_idf_weight(np.array(encoder.tokenizer.encode("The the").ids), weighted.idf)
    assert not has_no_idf_weight(np.array(encoder.tokenizer.encode("the cat").ids), weighted.idf)
