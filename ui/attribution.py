"""What each sentence of an answer rests on: attention beside what leaving a passage out does."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from engine.generation.answering import Answer
from engine.generation.attribution import (
    FALL_WITHOUT_ANY,
    FALL_WITHOUT_ONE,
    OTHER_COLUMNS,
    AttentionShares,
    LeaveOneOut,
    Support,
    attention_to_passages,
    leave_one_out,
    support,
)
from engine.generation.correlation import MIN_PAIRS, correlation
from engine.generation.prompt import Prompt
from engine.generation.sentences import Sentence, sentences_of
from engine.layers.tracing import Array
from ui.asking import session_prefix_cache
from ui.export import show_figure
from ui.generate_compare import NO_PASSAGES, passage_label
from ui.generate_figures import fall_map, share_map
from ui.models import load_decoder
from ui.text import mark_colour, show_text

FEW_PAIRS = 12
ALL, ONE_LAYER, ONE_HEAD = "All layers and heads", "One layer", "One head"
BADGE = "padding:0 6px;border-radius:4px;font-weight:600;font-size:0.85em;white-space:nowrap"
UNSUPPORTED = f"{BADGE};border:2px solid #D55E00"


@dataclass(frozen=True)
class Attribution:
    """Both measures of one answer, and its sentences."""

    sentences: tuple[Sentence, ...]
    attention: AttentionShares
    left_out: LeaveOneOut


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def attribution(
    model: str, _prompt: Prompt, prompt_ids: tuple[int, ...], ids: tuple[int, ...]
) -> Attribution:
    """Measure what an answer rests on, under a progress bar; kept for the next run of the page."""
    decoder = load_decoder()
    bar = st.progress(0.0, "Reading the answer again, watching attention…")
    try:
        attention = attention_to_passages(decoder, _prompt, ids, session_prefix_cache())

        def show(done: int, total: int) -> None:
            bar.progress(
                done / total, f"Reading the answer again without passages: {done} of {total} readings"
            )

        left_out = leave_one_out(decoder, _prompt, ids, on_progress=show)
        return Attribution(sentences_of(ids, decoder.tokenizer), attention, left_out)
    finally:
        bar.empty()


def show_attribution(answer: Answer) -> None:
    """Draw what the sentences rest on, and how far attention tells the same."""
    assert answer.prompt is not None
    decoder = load_decoder()
    ids = tuple(number for number in answer.ids if number not in decoder.end_ids)
    if not ids:
        st.info("The answer has no words, so there is nothing that could rest on a passage.")
        return
    if not answer.sources:
        st.info(NO_PASSAGES)
        return
    st.write(
        "The model reads its own answer again with one passage taken out of the prompt. Where a sentence "
        "becomes less probable, it rested on that passage."
    )
    found = attribution(decoder.name, answer.prompt, answer.prompt.ids, ids)
    verdicts = support(found.left_out, found.sentences)
    show_sentences(found.sentences, verdicts)
    show_passages(answer, verdicts)
    show_maps(answer, found)
    show_limits()


def show_sentences(sentences: Sequence[Sentence], verdicts: Sequence[Support]) -> None:
    """Draw the answer's sentences, each with the passages it rests on."""
    st.markdown("**Each sentence and what it rests on**")
    lines = [
        f"<b>S{number}</b> {escape(sentence.text.strip())} {badges(verdict)}"
        for number, (sentence, verdict) in enumerate(zip(sentences, verdicts, strict=True), start=1)
    ]
    show_text("\n".join(lines))
    if not all(verdict.is_supported for verdict in verdicts):
        st.warning(
            "A sentence marked “rests on no passage” is about as probable without the passages: the model "
            "says it from memory, from the wording of the question, or makes it up. Check it elsewhere.",
            icon=":material/report:",
        )


def badges(verdict: Support) -> str:
    """Return marks for what a sentence rests on."""
    if verdict.passages:
        return " ".join(
            f'<span style="{BADGE};background:{mark_colour(number)}">[{number}]</span>'
            for number in verdict.passages
        )
    if verdict.together:
        return f'<span style="{BADGE};border:2px solid #0072B2">several passages together</span>'
    return f'<span style="{UNSUPPORTED}">rests on no passage</span>'


def show_passages(answer: Answer, verdicts: Sequence[Support]) -> None:
    """List the passages, those marked that no sentence needs."""
    st.markdown("**Each passage and what rests on it**")
    jointly = any(verdict.together and not verdict.passages for verdict in verdicts)
    lines = []
    for source in answer.sources:
        resting = [
            f"<b>S{n}</b>" for n, verdict in enumerate(verdicts, start=1) if source.number in verdict.passages
        ]
        colour = mark_colour(source.number) if resting else "transparent"
        unused = "not needed on its own" if jointly else "nothing rests on it"
        mark = " ".join(resting) or f'<span style="{BADGE};border:1px dashed currentColor">{unused}</span>'
        beginning = escape(" ".join(source.text[:100].split())) + "…" * (len(source.text) > 100)
        place = f'<span style="opacity:0.75">{escape(source.document)}: {beginning}</span>'
        lines.append(f"{passage_label(source.number, colour)} {mark} {place}")
    show_text("\n".join(lines))
    if jointly:
        st.caption(
            "Where a sentence rests on several passages together, any one of them can be missing, as where "
            "two say the same, but not all of them."
        )


def show_maps(answer: Answer, found: Attribution) -> None:
    """Draw both measures side by side, and their correlation."""
    n_passages = len(answer.sources)
    passages = [f"[{source.number}]" for source in answer.sources]
    rows = [f"S{number}" for number in range(1, len(found.sentences) + 1)]
    n_tokens = np.array([[sentence.n_tokens] for sentence in found.sentences])
    falls = found.left_out.falls(found.sentences) / n_tokens  # (n_sentences, n_passages)
    without_any = found.left_out.falls_without_any(found.sentences)[:, None] / n_tokens
    st.markdown("**Where it looks, and what it needs**")
    layer, head = attention_choice(*found.attention.shares.shape[:2])
    shares = found.attention.by_sentence(found.sentences, layer, head)
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("Attention: share of each passage")
        show_figure(
            share_map(shares[:, :n_passages], rows, passages),
            name="attention-to-passages",
            arrays={"share": shares, "by_layer_and_head": found.attention.shares},
            alt="Share of attention from each sentence to each passage",
        )
        elsewhere = shares[:, n_passages:].mean(axis=0)
        parts = ", ".join(f"{part:.0%} {name}" for part, name in zip(elsewhere, OTHER_COLUMNS, strict=True))
        st.caption(f"The rest goes elsewhere: {parts}.")
    with right:
        st.caption("Leaving it out: fall of log-probability, nats per token")
        show_figure(
            fall_map(np.hstack([falls, without_any]), rows, [*passages, "all"]),
            name="falls-without-passages",
            arrays={"fall_per_token": falls, "without_any": without_any[:, 0], **by_token(found.left_out)},
            alt="Fall of each sentence's log-probability without each passage",
        )
        st.caption(
            "1 nat per token makes every token 2.7 times less probable. Below 0: more probable without it. "
            "“all”: none of the passages left."
        )
    show_correlation(shares[:, :n_passages], falls)


def by_token(left_out: LeaveOneOut) -> dict[str, Array]:
    """Return the log-probabilities of every token, for those who take the numbers away."""
    return {
        "log_probability": left_out.complete,
        "log_probability_without": left_out.without,
        "log_probability_without_any": left_out.without_any,
    }


def attention_choice(n_layers: int, n_heads: int) -> tuple[int | None, int | None]:
    """Draw whose attention is shown; return layer and head, None for all."""
    which = st.segmented_control(
        "Attention of",
        (ALL, ONE_LAYER, ONE_HEAD),
        default=ALL,
        required=True,
        key="attention-of",
        persist_state="session",
        help="The mean over all of them, or a single one: heads differ a lot in where they look.",
    )
    if which == ALL:
        return None, None
    left, right = st.columns(2)
    layer = left.slider("Layer", 0, n_layers - 1, n_layers // 2, key=f"attributed-layer-{n_layers}")
    if which == ONE_LAYER:
        return layer, None
    return layer, right.slider("Head", 0, n_heads - 1, 0, key=f"attributed-head-{n_heads}")


def show_correlation(shares: Array, falls: Array) -> None:
    """Say how far the two measures agree."""
    agreement = correlation(shares, falls)
    if agreement is None:
        st.info(
            f"{falls.size} pairs of sentence and passage are too few to correlate: it takes {MIN_PAIRS} "
            "that differ.",
            icon=":material/query_stats:",
        )
    else:
        ranks, values = st.columns(2)
        ranks.metric(
            "Spearman",
            f"{agreement.spearman:+.2f}",
            help="Correlation of the ranks: whether more attention goes with a larger fall, in any "
            "proportion.",
        )
        values.metric(
            "Pearson",
            f"{agreement.pearson:+.2f}",
            help="Correlation of the values: whether they grow in proportion.",
        )
        few = "; so few agree or disagree by chance alone" if falls.size < FEW_PAIRS else ""
        st.caption(f"Over {falls.size} pairs of sentence and passage; 1 is full agreement, 0 none{few}.")
    st.caption(
        "Attention alone is not an explanation: it says where the model looks, and much of that changes "
        "nothing in what it writes (Jain & Wallace 2019). What leaving out shows is what the answer owes "
        "to a passage."
    )


def show_limits() -> None:
    """Say what the marks mean, and where the thresholds come from."""
    with st.expander("How the marks are set", icon=":material/rule:"):
        st.write(
            f"A sentence rests on a passage where taking that passage out costs it {FALL_WITHOUT_ONE} nats "
            "per token or more, and on several together where taking all of them out costs "
            f"{FALL_WITHOUT_ANY} or more. The passage goes with its label; the others keep their numbers, "
            "and the answer stays as it is."
        )
        st.write(
            "The limits were set with the default decoder on the bundled documents. Of 34 sentences "
            "written from passages about the question, 29 reach one of them, and most of the other 5 are "
            "made up. Of 54 written from passages about something else, 35 reach neither, "
            "and most others borrow words from those passages; nine in ten of such passages cost a "
            "sentence less than 0.07 nats per token. Words that only repeat the question are probable "
            "without any passage and thin the measure out."
        )
