"""Probabilities, entropy and candidates of tokens that are known already, in one forward pass."""

from collections.abc import Sequence

import numpy as np

from .decoder import Decoder
from .generated_token import GeneratedToken
from .prefix_cache import PrefixCache
from .sampling import Sampling, entropy, log_probability
from .sentences import token_texts


def replay(
    decoder: Decoder,
    prompt_ids: Sequence[int],
    answer_ids: Sequence[int],
    n_candidates: int,
    sampling: Sampling,
    reuse: PrefixCache | None = None,
) -> tuple[GeneratedToken, ...]:
    """Return the tokens of an answer as `Decoder.generate` would have yielded them, without sampling.

    ``answer_ids`` include the token that ended the answer, if one did: the others have no ``finish_reason``.
    The chances of the ``n_candidates``, 1 or more, depend on ``sampling``.
    """
    ids, start = [*prompt_ids, *answer_ids], len(prompt_ids)
    decoder.check_ids(prompt_ids)
    decoder.check_ids(ids)
    if not answer_ids:
        return ()
    spoken = [number for number in answer_ids if number not in decoder.end_ids]
    texts = iter(token_texts(spoken, decoder.tokenizer))
    tokens: list[GeneratedToken] = []
    with decoder.prefilled(ids, start - 1, reuse) as cache:
        hidden = np.concatenate(list(decoder.read(ids[start - 1 : -1], cache)))  # (n_answer, d_model)
    for place, before in enumerate(hidden, start=start):
        logits, token = decoder.unembed(before[None])[0], ids[place]
        ends = token in decoder.end_ids
        tokens.append(
            GeneratedToken(
                token_id=token,
                text="" if ends else next(texts),
                log_probability=float(log_probability(logits[None], np.array([token]))[0]),
                finish_reason="stop" if ends else None,
                entropy=entropy(logits),
                candidates=decoder.candidates(logits, n_candidates, token, sampling, ids[:place]),
            )
        )
    return tuple(tokens)
