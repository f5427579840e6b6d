"""Two answers side by side, their differences marked, and the answer without some of its passages."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.answering import Answer
from engine.generation.passages import ids_without
from ui.generate_jobs import Request, answer_texts, continuation, start_continuation
from ui.models import load_decoder
from ui.settings import Settings
from ui.text import mark_colour, show_text

# Okabe and Ito's vermilion and blue, thin enough to read through; gone words are struck through as well.
GONE = "background:#D55E0033;color:inherit;text-decoration:line-through 1px"
NEW = "background:#0072B244;color:inherit;text-decoration:none;border-radius:3px"
NO_PASSAGES = "No passage fitted into the prompt: allow more prompt tokens under Answer in the sidebar."
FIRST = "outline:2px solid #E69F00;outline-offset:1px;border-radius:3px"


def show_side_by_side(titles: tuple[str, str], texts: tuple[str, str]) -> None:
    """Draw two texts (as HTML) next to each other."""
    for column, title, html in zip(st.columns(2, gap="medium"), titles, texts, strict=True):
        with column, st.container(border=True):
            st.markdown(f"**{title}**")
            show_text(html or "<em>(nothing)</em>")


def word_differences(before: str, after: str) -> tuple[str, str]:
    """Return both texts as HTML, the words marked that the other one does not have there."""
    old, new = words(before), words(after)
    left, right = "", ""
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        gone, come = escape("".join(old[old_start:old_end])), escape("".join(new[new_start:new_end]))
        left += gone if kind == "equal" or not gone else f'<del style="{GONE}">{gone}</del>'
        right += come if kind == "equal" or not come else f'<ins style="{NEW}">{come}</ins>'
    return left, right


def words(text: str) -> list[str]:
    """Cut a text into words and what is between them."""
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def branch_html(before: str, at: str, after: str) -> str:
    """Return an answer as HTML: what two share in grey, the token at which they part framed, the rest."""
    shared = f'<span style="opacity:0.6">{escape(before)}</span>' if before else ""
    return f'{shared}<b style="{FIRST}">{escape(at)}</b>{escape(after)}'


def show_without(answer: Answer, settings: Settings) -> None:
    """Draw a switch for each passage, and the answer without those that are off beside the original."""
    assert answer.prompt is not None
    if not answer.sources:
        st.info(NO_PASSAGES)
        return
    st.write(
        "Switch a passage off and the model answers again without it: what changes rested on it, what stays "
        "comes from elsewhere."
    )
    on = [
        source.number
        for source in answer.sources
        if passage_switch(source.number, source.document, source.text, answer.prompt.ids)
    ]
    off = [source.number for source in answer.sources if source.number not in on]
    if not off:
        st.info("All passages are on: switch one off.", icon=":material/toggle_on:")
        return
    decoder = load_decoder()
    request = Request(
        tuple(ids_without(answer.prompt, off, decoder)),
        (),
        min(settings.max_new_tokens, max(1, decoder.max_tokens - len(answer.prompt.ids))),
        settings.sampling,
        settings.seed,
    )
    if st.session_state.get("without-request") != request:
        start_continuation("without", request)
    try:
        found = continuation("without")
    except GlassboxError as error:
        st.error(str(error), icon=":material/error:")
        return
    show_difference(answer, found.text, off)
    if settings.sampling.temperature > 0:
        st.caption(
            "Tokens are drawn at random at this temperature, so part of the difference is chance. At "
            "temperature 0 (under Answer in the sidebar) all of it is the passages'."
        )
    st.caption(
        f"{found.reused_tokens:,} of the prompt's {len(request.prompt_ids):,} tokens did not have to be read "
        "again: they stand before the first passage that is off."
    )


def passage_switch(number: int, document: str, text: str, prompt_ids: Sequence[int]) -> bool:
    """Draw a passage's switch with the beginning of its text; return whether it is on."""
    left, right = st.columns([1, 4], vertical_alignment="center")
    is_on = left.toggle(f"Passage {number}", value=True, key=f"passage-{number}-{hash(tuple(prompt_ids))}")
    with right:
        beginning = escape(" ".join(text[:160].split())) + "…" * (len(text) > 160)
        label = passage_label(number, mark_colour(number) if is_on else "transparent")
        show_text(
            f'<span style="opacity:{1 if is_on else 0.5}">{label} {escape(document)}: {beginning}</span>'
        )
    return is_on


def passage_label(number: int, colour: str) -> str:
    """Return a passage's number as HTML, on its colour."""
    return f'<b style="background:{colour};padding:2px 6px;border-radius:3px">[{number}]</b>'


def show_difference(answer: Answer, without: str, off: Sequence[int]) -> None:
    """Draw the original and the other answer with their differences marked."""
    before, after = "".join(answer_texts(answer.ids)).strip(), without.strip()
    named = ", ".join(map(str, off))
    titles = ("With all passages", f"Without {'passage' if len(off) == 1 else 'passages'} {named}")
    show_side_by_side(titles, word_differences(before, after))
    if before == after:
        st.success("Word for word the same: nothing that was switched off is needed for this answer.")
    else:
        st.caption(
            "Struck through: words that are gone. Blue: words that have come. Where two tokens are about as "
            "probable, a small push changes all that follows; how much less probable the original has become "
            "is told under “What it rests on”."
        )
