"""An answer token by token: the candidates not taken, and continuations with them."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.answer import Written
from engine.generation.generated_token import Candidate, GeneratedToken
from pages.inside.answer.continuation import Request, answer_texts, continuation, start_continuation
from pages.inside.answer.figures import candidate_bars, certainty_figure
from ui.colours import ORANGE, STRONGEST, stylesheet
from ui.export import show_figure
from ui.jobs import current_job
from ui.settings import Settings
from ui.text import escape_markdown, faint_html, show_error, show_text
from ui.tokens import visible_blanks
from ui.widgets import show_metrics

FIRST = f"outline:2px solid {ORANGE};outline-offset:1px;border-radius:3px"

chips = st.components.v2.component(
    "glassbox_token_chips",
    html='<div class="tokens" role="group" aria-label="Tokens of the answer"></div>',
    css=stylesheet(Path(__file__).with_name("tokens.css")),
    js=Path(__file__).with_name("tokens.js").read_text("utf-8"),
)


def token_choice(
    steps: Sequence[GeneratedToken], probabilities: Sequence[float], key: str, first: int
) -> int:
    """Draw the tokens of an answer and return the one that was clicked, ``first`` until then."""
    state = st.session_state.get(key) or {}
    chosen = state.get("chosen")
    result = chips(
        data={
            "chosen": first if chosen is None else chosen,
            "chips": [
                {
                    "text": token_label(step),
                    "title": f"token {number}: {token_label(step)}, probability {probability:.1%}",
                    "doubt": round(100 * STRONGEST * (1 - probability)),
                }
                for number, (step, probability) in enumerate(zip(steps, probabilities, strict=True))
            ],
        },
        default={"chosen": first},
        key=key,
        on_chosen_change=lambda: None,
    )
    return int(first if result.chosen is None else result.chosen)


def token_label(step: GeneratedToken) -> str:
    """Return a token's label: white space made visible, the end of the answer named."""
    if step.finish_reason == "stop" and not step.text:
        return "■ end"
    return visible_blanks(step.text) if step.text else "…"


def show_tokens(written: Written, steps: Sequence[GeneratedToken], settings: Settings) -> None:
    """Draw the tokens, the candidates of the chosen one, and a branch from it."""
    probabilities = [math.exp(step.log_probability) for step in steps]
    st.write("Each chip is a token; a stronger colour means that the model was less sure of it. Click one.")
    identity = hash((written.read_ids, written.ids))
    least_sure = min(range(len(probabilities)), key=probabilities.__getitem__)  # shown first
    chosen = token_choice(steps, probabilities, f"chips-{identity}", least_sure)
    chosen = min(chosen, len(steps) - 1)
    step = steps[chosen]
    entropy = step.entropy or 0.0
    blanks = f"Of {len(steps)} tokens, counted from 0. White space is shown: ␣ is a space, ↵ a line break."
    own = (
        f"The model's own, before temperature and filters; its logarithm is {step.log_probability:.2f} nats."
    )
    choices = f"The uncertainty of the choice: as among {math.exp(entropy):,.1f} equally likely tokens."
    show_metrics(
        {
            f"Token {chosen}": (escape_markdown(token_label(step)), None, blanks),
            "Probability": (f"{math.exp(step.log_probability):.1%}", None, own),
            "Entropy": (f"{entropy:.2f} nats", None, choices),
        }
    )
    if request := alternative(written, steps, chosen, settings):
        start_continuation("branch", request)
    show_branch(written)
    st.markdown("**How sure the model was along the answer**")
    entropies = [step.entropy or 0.0 for step in steps]
    show_figure(
        certainty_figure([token_label(step) for step in steps], probabilities, entropies, chosen),
        name="certainty",
        alt="Probability and entropy of each token of the answer",
    )
    st.caption(
        "Above, the probability of the token that was taken; below, the entropy of the whole distribution: "
        "0 if only one token could follow, higher the more candidates there were."
    )


def alternative(
    written: Written, steps: Sequence[GeneratedToken], chosen: int, settings: Settings
) -> Request | None:
    """Draw the candidates that were not taken; return a request when one is chosen instead."""
    step = steps[chosen]
    others = [candidate for candidate in step.candidates if candidate.token_id != step.token_id]
    left, right = st.columns(2, gap="medium")
    with left:
        taken = st.radio(
            "Not taken",
            range(len(others)),
            format_func=lambda number: f"`{code(others[number])}`",
            captions=[f"{candidate.probability:.1%} · chance {candidate.chance:.2g}" for candidate in others],
            key=f"other-{hash((written.ids, chosen))}",
            help="First the model's own probability, then the chance that the sampler draws the token under "
            "the settings in the sidebar: at temperature 0 it is 0 for all but the most probable.",
        )
        go = st.button(
            "Continue from here with this one",
            key="branch",
            type="primary",
            icon=":material/call_split:",
            help="Keeps the answer up to here, takes this token instead, and lets the model continue.",
        )
    with right:
        candidates = step.candidates
        show_figure(
            candidate_bars(candidates, step.token_id),
            name=f"candidates-{chosen}",
            alt="Probability and chance of the candidates for this token",
        )
    if not go or taken is None:
        return None
    begun = (*written.ids[:chosen], others[taken].token_id)
    return Request(
        written.read_ids, begun, max(1, settings.answer.max_new_tokens - len(begun)), settings.answer.sampling
    )


def code(candidate: Candidate) -> str:
    """Return a candidate's text, safe between backticks."""
    return visible_blanks(candidate.text).replace("`", "ˋ")


def show_branch(written: Written) -> None:
    """Draw the last branch of this answer, if any, next to the original."""
    if (job := current_job("branch")) is None or job.request.prompt_ids != written.read_ids:
        return
    request: Request = job.request
    start = len(request.begun_ids) - 1
    if request.begun_ids[:start] != written.ids[:start]:
        return
    try:
        found = continuation(job)
    except GlassboxError as error:
        show_error(error)
        return
    answers = {"The answer": written.ids, f"The branch at token {start}": found.ids}
    for column, (title, ids) in zip(st.columns(2, gap="medium"), answers.items(), strict=True):
        with column, st.container(border=True):
            st.markdown(f"**{title}**")
            show_text(branch_html(answer_texts(ids), start))
    st.caption(
        f"{found.reused_tokens:,} tokens of prompt and answer were not read again: their keys and values "
        "were in the KV cache."
    )


def branch_html(texts: Sequence[str], start: int) -> str:
    """Return the texts of tokens as HTML: in grey up to ``start``, the token there framed, then the rest."""
    before, at, after = ("".join(part) for part in (texts[:start], texts[start:][:1], texts[start + 1 :]))
    return f'{faint_html(before)}<b style="{FIRST}">{escape(at or "■ end")}</b>{escape(after)}'
