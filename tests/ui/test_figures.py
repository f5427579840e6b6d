import numpy as np

from ui.figures import weights_map
from ui.tokens import token_labels

TOKENS = ["[CLS]", "<b>bold</b>", "bold", "bold", "[SEP]"]


def test_the_causal_mask_leaves_its_half_empty():
    z = weights_map(np.tril(np.full((5, 5), 0.2)), TOKENS, causal=True).data[0].z
    assert np.isnan(np.asarray(z)[np.triu_indices(5, 1)]).all()
    assert not np.isnan(np.asarray(z)[np.tril_indices(5)]).any()


def test_every_token_has_a_label_of_its_own_without_markup():
    labels = token_labels(TOKENS)
    assert len(set(labels)) == len(TOKENS)
    assert labels[1] == "1 &lt;b&gt;bold&lt;/b&gt;"
