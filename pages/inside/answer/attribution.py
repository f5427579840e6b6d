"""The passages that each sentence of an answer rests on: attention and leave-one-out."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from engine.generation.answer import Written
from engine.generation.attribution import (
    DROP_WITHOUT_ANY,
    DROP_WITHOUT_ONE,
    OTHER_COLUMNS,
    AttentionShares,
    LeaveOneOut,
    Support,
    attention_to_passages,
    leave_one_out,
    support,
)
from engine.generation.passages import without_thinking
from engine.generation.prompt import Prompt
from engine.generation.sentences import Sentence, sentences_of
from engine.layers.tracing import Array
from engine.weights.fetch import Progress
from engine.wording import beginning
from pages.inside.answer.figures import sentence_map
from ui.asking import session_prefix_cache
from ui.background import in_background
from ui.colours import BLUE, FAINT, VERMILION, source_colour
from ui.export import show_figure
from ui.models import load_decoder, reading_seconds
from ui.text import escape_html, passage_label, show_text
from ui.widgets import choice, show_metrics, slider

MIN_PAIRS, FEW_PAIRS = 4, 12  # to correlate at all, and without a warning
READINGS = 4  # of a whole prompt, about: one without a late passage takes the beginning from the one before
ALL, ONE_LAYER, ONE_HEAD = "All layers and heads", "One layer", "One head"
BADGE = "padding:0 6px;border-radius:4px;font-weight:600;font-size:0.85em;white-space:nowrap"
UNSUPPORTED = f"{BADGE};border:2px solid {VERMILION}"


@dataclass(frozen=True)
class Attribution:
    """What an answer rests on: attention, and the log-probability without each passage."""

    prompt: Prompt  # the answer's, without the thought
    ids: tuple[int, ...]  # the answer's tokens but for the end
    sentences: tuple[Sentence, ...]
    attention: AttentionShares
    left_out: LeaveOneOut


def attribution_of(written: Written) -> Attribution | None:
    """Measure what an answer rests on; draw why not and return None where it has no words."""
    decoder, prompt = load_decoder(), written.prompt
    ids = tuple(number for number in written.ids if number not in decoder.end_ids)
    if not ids:
        st.info("The answer has no words, so no passage can support it.")
        return None
    if written.thought_ids:
        prompt = without_thinking(prompt, decoder)

    def read(on_progress: Progress) -> Attribution:
        left_out = leave_one_out(decoder, prompt, ids, on_progress)
        attention = attention_to_passages(decoder, prompt, ids, cache)
        return Attribution(prompt, ids, sentences_of(ids, decoder.tokenizer), attention, left_out)

    cache = session_prefix_cache()
    seconds = reading_seconds(decoder, READINGS * len(prompt.ids) + len(ids))
    key = (decoder.name, prompt.ids, ids)
    return in_background("attribution", "Read it without passages", key, seconds, "inside/answer", read)


def show_attribution(written: Written) -> None:
    """Draw the passages that each sentence rests on, and how far attention agrees."""
    if not written.prompt.sources:
        st.info("No passage fitted into the prompt: allow more prompt tokens under Answer in the sidebar.")
        return
    st.write(
        "The model reads its own answer again with one passage taken out of the prompt. A sentence that "
        "becomes less probable rested on that passage."
    )
    if written.thought_ids:
        st.caption("It is read without its thought, which may repeat the passages.")
    found = attribution_of(written)
    if found is None:
        return
    supports = support(found.left_out, found.sentences)
    show_sentences(found.sentences, supports)
    show_passages(written, supports)
    show_maps(written, found)
    show_limits()


def show_sentences(sentences: Sequence[Sentence], supports: Sequence[Support]) -> None:
    """Draw the answer's sentences, each with the passages it rests on."""
    st.markdown("**Each sentence and what it rests on**")
    lines = [
        f"<b>S{number}</b> {escape(sentence.text.strip())} {badges(found)}"
        for number, (sentence, found) in enumerate(zip(sentences, supports, strict=True), start=1)
    ]
    show_text("\n".join(lines))
    if not all(found.is_supported for found in supports):
        st.warning(
            "A sentence marked “rests on no passage” is about as probable without the passages: the model "
            "took it from memory, from the wording of the question, or made it up. Check it elsewhere.",
            icon=":material/report:",
        )


def badges(found: Support) -> str:
    """Return HTML marks of the passages that a sentence rests on."""
    if found.passages:
        return " ".join(
            f'<span style="{BADGE};background:{source_colour(number)}">[{number}]</span>'
            for number in found.passages
        )
    if found.together:
        return f'<span style="{BADGE};border:2px solid {BLUE}">several passages together</span>'
    return f'<span style="{UNSUPPORTED}">rests on no passage</span>'


def show_passages(written: Written, supports: Sequence[Support]) -> None:
    """List the passages, with a mark on those that no sentence needs."""
    st.markdown("**Each passage and what rests on it**")
    jointly = any(found.together and not found.passages for found in supports)
    lines = []
    for source in written.prompt.sources:
        resting = [f"<b>S{n}</b>" for n, found in enumerate(supports, 1) if source.number in found.passages]
        colour = source_colour(source.number) if resting else "transparent"
        unused = "not needed on its own" if jointly else "nothing rests on it"
        mark = " ".join(resting) or f'<span style="{BADGE};border:1px dashed currentColor">{unused}</span>'
        place = f"{escape_html(source.document)}: {escape(beginning(source.text, 100))}"
        label = passage_label(source.number, colour)
        lines.append(f'{label} {mark} <span style="{FAINT}">{place}</span>')
    show_text("\n".join(lines))
    if jointly:
        st.caption(
            "A sentence that rests on several passages together can do without any one of them (two may say "
            "the same), but not without all."
        )


def show_maps(written: Written, found: Attribution) -> None:
    """Draw both measures side by side, and their correlation."""
    n_passages = len(written.prompt.sources)
    passages = [f"[{source.number}]" for source in written.prompt.sources]
    columns = [*passages, "all"] if n_passages > 1 else passages  # without the only one, none is left
    rows = [f"S{number}" for number in range(1, len(found.sentences) + 1)]
    drops = found.left_out.drops(found.sentences)  # (n_sentences, n_passages + 1)
    st.markdown("**Where it looks, and what it needs**")
    layer, head = attention_choice(*found.attention.shares.shape[:2])
    shares = found.attention.by_sentence(found.sentences, layer, head)
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("Attention: share of each passage")
        show_figure(
            sentence_map(shares[:, :n_passages], rows, passages, are_shares=True),
            name="attention-to-passages",
            alt="Share of attention from each sentence to each passage",
        )
        elsewhere = shares[:, n_passages:].mean(axis=0)
        parts = ", ".join(f"{part:.0%} {name}" for part, name in zip(elsewhere, OTHER_COLUMNS, strict=True))
        st.caption(f"The rest goes elsewhere: {parts}.")
    with right:
        st.caption("Leaving it out: fall of log-probability, nats per token")
        show_figure(
            sentence_map(drops[:, : len(columns)], rows, columns, are_shares=False),
            name="drops-without-passages",
            alt="Fall of each sentence's log-probability without each passage",
        )
        st.caption(
            "1 nat per token makes every token 2.7 times less probable. Below 0: more probable without it. "
            "“all”: none of the passages left."
        )
    show_correlation(shares[:, :n_passages], drops[:, :-1])


def attention_choice(n_layers: int, n_heads: int) -> tuple[int | None, int | None]:
    """Draw the choice of layer and head; return both, None for all."""
    reason = "The mean over all of them, or a single one: heads differ a lot in where they look."
    which = choice("Attention of", (ALL, ONE_LAYER, ONE_HEAD), "attention-of", reason)
    if which == ALL:
        return None, None
    left, right = st.columns(2)
    layers, reason = range(n_layers), "Counted from 0, the first after the embeddings."
    layer = slider("Layer", layers, n_layers // 2, f"attributed-layer-{n_layers}", reason, place=left)
    if which == ONE_LAYER:
        return layer, None
    reason = "Heads attend to different tokens."
    return layer, slider("Head", range(n_heads), 0, f"attributed-head-{n_heads}", reason, place=right)


def show_correlation(shares: Array, drops: Array) -> None:
    """Draw the correlation of the two measures."""
    from scipy.stats import pearsonr, spearmanr  # slow to import

    both = shares.ravel(), drops.ravel()
    if drops.size < MIN_PAIRS or any(np.ptp(values) == 0 for values in both):
        st.info(
            f"Pairs of sentence and passage: {drops.size}. To correlate takes {MIN_PAIRS} that differ.",
            icon=":material/query_stats:",
        )
    else:
        ranks, values = (f"{found(*both).statistic:+.2f}" for found in (spearmanr, pearsonr))
        reason = "Of the ranks: whether more attention goes with a larger fall, in any proportion."
        proportion = "Of the values: whether they grow in proportion."
        show_metrics({"Spearman": (ranks, None, reason), "Pearson": (values, None, proportion)})
        few = "; so few agree or disagree by chance" if drops.size < FEW_PAIRS else ""
        st.caption(f"Over {drops.size} pairs of sentence and passage; 1 is full agreement, 0 none{few}.")
    st.caption(
        "Attention is no explanation by itself: it says where the model looks, and much of that changes "
        "nothing in what it writes (Jain & Wallace 2019). Leaving a passage out shows its effect on the "
        "answer."
    )


def show_limits() -> None:
    """Explain the marks and the source of their thresholds."""
    with st.expander("How the marks are set", icon=":material/rule:"):
        st.write(
            f"A sentence rests on a passage if taking that passage out costs it {DROP_WITHOUT_ONE} nats "
            "per token or more, and on several together if taking all of them out costs "
            f"{DROP_WITHOUT_ANY} or more. The passage is removed with its label; the others keep their "
            "numbers, and the answer stays unchanged."
        )
        st.write(
            "The limits were set with the default decoder on the bundled documents. Of 34 sentences "
            "written from passages about the question, 29 reach one of them, and most of the other 5 are "
            "made up. Of 54 written from passages about something else, 35 reach neither, "
            "and most others borrow words from those passages; nine in ten of such passages cost a "
            "sentence less than 0.07 nats per token. Words that only repeat the question are probable "
            "without any passage and thin the measure out."
        )
