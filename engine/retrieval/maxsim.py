"""Late interaction: the best match of every question token among a chunk's tokens.

ColBERT's MaxSim (Khattab & Zaharia 2020), here over the token vectors of any encoder. All tokens
count, [CLS] and [SEP] included, as in ColBERT. The paper sums over the question's tokens; here it is their
mean, which ranks the same and is on the scale of a cosine.
"""

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..layers.norm import l2_normalize
from ..layers.tracing import Array
from ..models.encoder import BATCH_TOKENS, Encoder
from ..models.parallel import row_spans, run_packs

MAXSIM = "maxsim"


def best_matches(query_vectors: Array, chunk_vectors: Array) -> tuple[Array, Array]:
    """Best token of a chunk for each token of a question, the first of equal ones, and their cosine.

    ``(n_query, d), (n_chunk, d)``, rows of length 1, to ``(n_query,)`` places and ``(n_query,)`` cosines.
    """
    if not len(query_vectors) or not len(chunk_vectors):
        raise InputError(
            f"MaxSim of {len(query_vectors)} and {len(chunk_vectors)} tokens: each text needs one or more"
        )
    if query_vectors.shape[1:] != chunk_vectors.shape[1:]:
        raise InputError(
            f"the tokens' vectors have shapes {query_vectors.shape} and {chunk_vectors.shape}: embed both "
            f"texts with one model"
        )
    cosines = query_vectors @ chunk_vectors.T  # (n_query, n_chunk)
    best = cosines.argmax(axis=1)
    return best, np.take_along_axis(cosines, best[:, None], axis=1)[:, 0]


def unit_vectors(sequences: Sequence[Sequence[int]], encoder: Encoder) -> Array:
    """Vectors of the tokens of all texts, one text after the other, each of length 1: ``(n, d_model)``."""
    spans = row_spans([len(ids) for ids in sequences])
    vectors = np.empty((sum(len(ids) for ids in sequences), encoder.config.d_model), encoder.dtype)

    def embed_pack(batch: slice) -> None:
        for span, each in zip(spans[batch], encoder.token_states(sequences[batch]), strict=True):
            vectors[span] = l2_normalize(each.vectors)

    run_packs(embed_pack, sequences, BATCH_TOKENS)
    return vectors
