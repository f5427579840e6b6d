"""Continuations of a prompt, and two answers side by side; the answer without some passages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.answer import Written
from engine.generation.passages import ids_without
from engine.generation.prompt import Prompt, Source
from engine.generation.sampling import Sampling
from engine.generation.sentences import token_texts
from engine.generation.thinking import without_thought
from engine.wording import beginning
from ui.asking import session_prefix_cache, show_writing
from ui.colours import ADDED, FAINT, REMOVED, source_colour
from ui.jobs import Job, current_job, start_job
from ui.models import load_decoder
from ui.settings import Settings
from ui.text import escape_html, passage_label, show_error, show_text

# Removed words are struck through as well, so that more than colour tells them apart.
GONE = f"background:{REMOVED};color:inherit;text-decoration:line-through 1px"
NEW = f"background:{ADDED};color:inherit;text-decoration:none;border-radius:3px"
NO_PASSAGES = "No passage fitted into the prompt: allow more prompt tokens under Answer in the sidebar."


def show_side_by_side(titles: tuple[str, str], texts: tuple[str, str]) -> None:
    """Draw two texts (as HTML) next to each other."""
    for column, title, html in zip(st.columns(2, gap="medium"), titles, texts, strict=True):
        with column, st.container(border=True):
            st.markdown(f"**{title}**")
            show_text(html or "<em>(nothing)</em>")


def word_differences(before: str, after: str) -> tuple[str, str]:
    """Return both texts as HTML, with the words marked that differ from the other."""
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
    """Cut a text into words, white space and punctuation."""
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def show_without(written: Written, settings: Settings) -> None:
    """Draw a switch for each passage, and the answer without the switched-off ones next to the original."""
    if not written.prompt.sources:
        st.info(NO_PASSAGES)
        return
    st.write(
        "Switch a passage off and the model answers again without it: the parts that change rested on it, "
        "the others come from elsewhere."
    )
    off = [source.number for source in written.prompt.sources if not passage_switch(source, written.prompt)]
    if not off:
        st.info("All passages are on: switch one off.", icon=":material/toggle_on:")
        return
    decoder = load_decoder()
    request = Request(
        tuple(ids_without(written.prompt, off, decoder)),
        (),
        min(settings.answer.max_new_tokens, max(1, decoder.max_tokens - len(written.prompt.ids))),
        settings.answer.sampling,
    )
    job = current_job("without", request) or start_continuation("without", request)
    try:
        found = continuation(job)
    except GlassboxError as error:
        show_error(error)
        return
    before = "".join(answer_texts(written.ids)).strip()
    after = without_thought("".join(answer_texts(found.ids))).strip()
    named = ", ".join(map(str, off))
    titles = ("With all passages", f"Without {'passage' if len(off) == 1 else 'passages'} {named}")
    show_side_by_side(titles, word_differences(before, after))
    if before == after:
        st.success("Word for word the same: this answer needs none of the passages switched off.")
    else:
        st.caption(
            "Struck through: removed words. Blue: new words. Where two tokens are about equally probable, a "
            "small change alters all that follows; “What it rests on” shows how much less probable the "
            "original has become."
        )
    if written.thought:
        st.caption("The answer without them is written without a thought.")
    if settings.answer.sampling.temperature > 0:
        st.caption(
            "Tokens are drawn at random at this temperature, so part of the difference is chance. At "
            "temperature 0 (under Answer in the sidebar) all of it comes from the passages."
        )
    st.caption(
        f"{found.reused_tokens:,} of the prompt's {len(request.prompt_ids):,} tokens did not have to be read "
        "again: they come before the first passage that is off."
    )


def passage_switch(source: Source, prompt: Prompt) -> bool:
    """Draw a passage's switch with the beginning of its text; return whether it is on."""
    left, right = st.columns([1, 4], vertical_alignment="center")
    number = source.number
    is_on = left.toggle(f"Passage {number}", value=True, key=f"passage-{number}-{hash(prompt.ids)}")
    with right:
        label = passage_label(number, source_colour(number) if is_on else "transparent")
        line = f"{label} {escape_html(source.document)}: {escape(beginning(source.text, 160))}"
        show_text(f'<span style="{"" if is_on else FAINT}">{line}</span>')
    return is_on


@dataclass(frozen=True)
class Request:
    """A prompt, the beginning of an answer, and the settings of its continuation."""

    prompt_ids: tuple[int, ...]
    begun_ids: tuple[int, ...]
    max_new_tokens: int
    sampling: Sampling


@dataclass(frozen=True)
class Continuation:
    """All tokens of an answer, those of the beginning included; ``reused_tokens`` were not read again."""

    ids: tuple[int, ...]
    reused_tokens: int


def answer_texts(ids: Sequence[int]) -> list[str]:
    """Return the text of each token of an answer, empty for the end token."""
    decoder = load_decoder()
    spoken = [number for number in ids if number not in decoder.end_ids]
    texts = iter(token_texts(spoken, decoder.tokenizer))
    return ["" if number in decoder.end_ids else next(texts) for number in ids]


def start_continuation(name: str, request: Request) -> Job[Continuation]:
    """Start a continuation under a name; stop the one running under the same name, if any."""
    decoder, cache = load_decoder(), session_prefix_cache()

    def work(job: Job[Continuation]) -> Continuation:
        ids = list(request.begun_ids)
        job.write("".join(token_texts(ids, decoder.tokenizer)))
        if not decoder.end_ids.intersection(ids[-1:]):
            steps = decoder.generate(
                [*request.prompt_ids, *ids],
                request.max_new_tokens,
                request.sampling,
                reuse=cache,
            )
            for step in steps:
                ids.append(step.token_id)
                job.write(step.text)
                if not job.take_turn():
                    break
        return Continuation(tuple(ids), cache.reused_tokens)

    return start_job(name, work, request=request)


def continuation(job: Job[Continuation]) -> Continuation:
    """Return a finished continuation, after drawing it while it grows."""
    if not job.done:
        place = st.empty()
        with place.container():
            show_writing(job, "Writing…", key="stop-continuation")
        place.empty()
    return job.result()
