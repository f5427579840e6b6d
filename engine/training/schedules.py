"""Learning-rate schedules: a warm-up, then a decay.

Each function returns the factor of update ``update``, counted from 0 as in torch's ``LambdaLR``: a warm-up
starts at 0, so the very first update changes nothing.
"""

import math


def warmup_linear(update: int, n_warmup: int, n_steps: int) -> float:
    """Rise to 1 in ``n_warmup`` updates, then fall linearly to 0 at ``n_steps``.

    transformers' ``get_linear_schedule_with_warmup``.
    """
    if update < n_warmup:
        return update / n_warmup
    return max(0.0, (n_steps - update) / max(1, n_steps - n_warmup))


def warmup_cosine(update: int, n_warmup: int, n_steps: int) -> float:
    """Rise to 1 in ``n_warmup`` updates, then fall along half a cosine to 0 (Loshchilov & Hutter 2017).

    transformers' ``get_cosine_schedule_with_warmup``, and with no warm-up torch's ``CosineAnnealingLR``.
    Those rise again after ``n_steps``; this one stays at 0.
    """
    if update < n_warmup:
        return update / n_warmup
    progress = min(1.0, (update - n_warmup) / max(1, n_steps - n_warmup))
    return 0.5 * (1 + math.cos(math.pi * progress))
