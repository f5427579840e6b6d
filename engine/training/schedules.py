"""Learning rate by step: a warm-up, and then a way down.

Each function gives the factor of step ``step``, counted from 0 as in torch's ``LambdaLR``: a warm-up
starts at 0, so the very first step moves nothing.
"""

import math


def warmup_linear(step: int, n_warmup: int, n_steps: int) -> float:
    """Up to 1 in ``n_warmup`` steps, then straight down to 0 at ``n_steps``.

    transformers' ``get_linear_schedule_with_warmup``.
    """
    if step < n_warmup:
        return step / n_warmup
    return max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))


def warmup_cosine(step: int, n_warmup: int, n_steps: int) -> float:
    """Up to 1 in ``n_warmup`` steps, then down half a cosine to 0 at ``n_steps`` (Loshchilov & Hutter 2017).

    transformers' ``get_cosine_schedule_with_warmup``, and with no warm-up torch's ``CosineAnnealingLR``.
    Both rise again after ``n_steps``; this one stays at 0.
    """
    if step < n_warmup:
        return step / n_warmup
    progress = min(1.0, (step - n_warmup) / max(1, n_steps - n_warmup))
    return 0.5 * (1 + math.cos(math.pi * progress))


def warmup_inverse_sqrt(step: int, d_model: int, n_warmup: int) -> float:
    """``d_model^-0.5 min(step^-0.5, step n_warmup^-1.5)``, of Vaswani et al. 2017, section 5.3.

    The paper uses it as the learning rate itself: its peak, at ``n_warmup``, is
    ``(d_model * n_warmup)^-0.5``.
    """
    return float(d_model**-0.5 * min(max(step, 1) ** -0.5, step * max(n_warmup, 1) ** -1.5))
