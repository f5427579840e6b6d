"""An answer token by token: what else might have come, and where that would have led."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.errors import GlassboxError
from engine.generation.answering import Answer
from engine.generation.step import Candidate, Step
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.generate_chips import token_choice, token_label
from ui.generate_compare import branch_html, show_side_by_side
from ui.generate_figures import candidate_bars, certainty_figure
from ui.generate_jobs import Request, answer_texts, continuation, start_continuation
from ui.maps import readable
from ui.settings import Settings


def show_tokens(answer: Answer, steps: Sequence[Step], settings: Settings) -> None:
    """Draw the tokens, the candidates of the one that is chosen, and a branch from it."""
    assert answer.prompt is not None
    probabilities = [math.exp(step.log_probability) for step in steps]
    st.write("Each chip is a token, the stronger coloured the less sure the model was of it. Click one.")
    identity = hash((answer.prompt.ids, answer.ids))
    chosen = token_choice(steps, probabilities, f"chips-{identity}", least_sure(probabilities))
    chosen = min(chosen, len(steps) - 1)
    show_step(steps[chosen], chosen, len(steps))
    if request := alternative(answer, steps, chosen, settings):
        start_continuation("branch", request)
    show_branch(answer)
    st.markdown("**How sure the model was along the answer**")
    entropies = [step.entropy or 0.0 for step in steps]
    show_figure(
        certainty_figure([token_label(step) for step in steps], probabilities, entropies, chosen),
        name="certainty",
        arrays={
            "tokens": np.array([step.text for step in steps]),
            "probability": np.array(probabilities),
            "entropy": np.array(entropies),
        },
        alt="Probability and entropy of each token of the answer",
    )
    st.caption(
        "Above, the probability of the token that was taken; below, the entropy of all that might have been: "
        "0 where only one could follow, the higher the more there was to choose from."
    )


def least_sure(probabilities: Sequence[float]) -> int:
    """Return the place of the least probable token, where there is most to see."""
    return min(range(len(probabilities)), key=lambda number: probabilities[number])


def show_step(step: Step, number: int, n_steps: int) -> None:
    """Draw the numbers of one token."""
    entropy = step.entropy or 0.0
    place, probability, spread = st.columns(3)
    place.metric(
        f"Token {number}",
        escape_markdown(token_label(step)),
        help=f"Of {n_steps} tokens, counted from 0. White space is shown: ␣ is a space, ↵ a line break.",
    )
    probability.metric(
        "Probability",
        f"{math.exp(step.log_probability):.1%}",
        help=f"The model's own, before temperature and filters; its logarithm is {step.log_probability:.2f} "
        "nats.",
    )
    spread.metric(
        "Entropy",
        f"{entropy:.2f} nats",
        help="How open the choice was. It was as uncertain as one among "
        f"{math.exp(entropy):,.1f} equally likely tokens.",
    )


def alternative(answer: Answer, steps: Sequence[Step], chosen: int, settings: Settings) -> Request | None:
    """Draw the candidates that were not taken; return a request once one is to be taken instead."""
    step = steps[chosen]
    others = [candidate for candidate in step.candidates if candidate.token_id != step.token_id]
    left, right = st.columns(2, gap="medium")
    with left:
        taken = st.radio(
            "Not taken",
            range(len(others)),
            format_func=lambda number: f"`{code(others[number])}`",
            captions=[f"{candidate.probability:.1%} · chance {candidate.chance:.2g}" for candidate in others],
            key=f"other-{hash((answer.ids, chosen))}",
            help="First what the model itself gives the token, then the chance with which the sampler "
            "takes it under the settings in the sidebar: at temperature 0 it is 0 for all but the "
            "most probable.",
        )
        go = st.button(
            "Continue from here with this one",
            key="branch",
            type="primary",
            icon=":material/call_split:",
            help="Keeps the answer up to here, takes this token in place of the one that was, and lets the "
            "model write on.",
        )
    with right:
        candidates = step.candidates
        show_figure(
            candidate_bars(candidates, step.token_id),
            name=f"candidates-{chosen}",
            arrays={
                "ids": np.array([candidate.token_id for candidate in candidates]),
                "probability": np.array([candidate.probability for candidate in candidates]),
                "chance": np.array([candidate.chance for candidate in candidates]),
            },
            alt="Probability and chance of the candidates for this token",
        )
    if not go or taken is None:
        return None
    assert answer.prompt is not None
    begun = (*answer.ids[:chosen], others[taken].token_id)
    return Request(
        answer.prompt.ids,
        begun,
        max(1, settings.max_new_tokens - len(begun)),
        settings.sampling,
        settings.seed,
    )


def code(candidate: Candidate) -> str:
    """Return a candidate's text as it may stand between backticks."""
    return readable(candidate.text).replace("`", "ˋ")


def show_branch(answer: Answer) -> None:
    """Draw the last branch of this answer, if there is one, beside the original."""
    assert answer.prompt is not None
    request: Request | None = st.session_state.get("branch-request")
    if request is None or request.prompt_ids != answer.prompt.ids:
        return
    start = len(request.begun_ids) - 1
    if request.begun_ids[:start] != answer.ids[:start]:
        return
    try:
        found = continuation("branch")
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    show_side_by_side(
        ("The answer", f"The branch at token {start}"),
        (parted(answer.ids, start), parted(found.ids, start)),
    )
    st.caption(
        f"{found.reused_tokens:,} tokens of prompt and answer did not have to be read again: their keys and "
        "values were in the KV cache."
    )


def parted(ids: Sequence[int], start: int) -> str:
    """Return an answer as HTML, with the token at ``start`` framed."""
    texts = answer_texts(ids)
    at = "".join(texts[start : start + 1])
    return branch_html("".join(texts[:start]), at or "■ end", "".join(texts[start + 1 :]))
