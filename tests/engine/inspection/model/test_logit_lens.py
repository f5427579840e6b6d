import numpy as np

from engine.inspection.model.logit_lens import logit_lens
from engine.layers.activation import softmax
from tests.engine.models.test_decoder_families import TEXT


def test_the_last_row_is_the_models_own_distribution(family):
    ids = family.tokenizer.encode(TEXT).ids
    trace, probabilities = family.trace(ids), softmax(family.logits(ids)[-1])
    names = ["embeddings.output", *(f"layers.{layer}.output" for layer in range(family.config.n_layers))]
    lens = logit_lens(np.stack([trace[name][-1] for name in names]), family, 3)
    assert lens.ids.shape == lens.scores.shape == (len(names), 3)
    np.testing.assert_allclose(lens.scores[-1], np.sort(probabilities)[:-4:-1], rtol=1e-4, atol=1e-7)
    assert lens.ids[-1, 0] == probabilities.argmax()
