"""Where the answer comes from: heads, layers and positions that carry a fact from a passage to the answer."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import streamlit as st

from engine.errors import GlassboxError
from engine.generation.answer import Written
from engine.inspection.model.patching import (
    MIN_GAP,
    PairRuns,
    Part,
    PromptPair,
    expected_seconds,
    patch_each_head,
    patch_heads,
    patch_positions,
    read_pair,
    strongest,
)
from engine.layers.tracing import Array
from engine.wording import readable_time
from pages.inside.answer.fact_pair import (
    NamedPair,
    answer_words,
    own_pair,
    pair_of_answer,
    spoken,
    token_name,
)
from pages.inside.answer.figures import effect_map
from pages.inside.answer.lens import show_lens
from ui.export import show_figure
from ui.jobs import Job, current_job, follow_progress, session_jobs, start_job
from ui.models import load_decoder
from ui.tables import show_table
from ui.text import escape_plotly, show_error
from ui.widgets import chapters, choice

THIS, OWN = "This answer", "Two prompts"
HEADS, PLACES, LENS = "Which heads", "Which layers and positions", "What each layer would say"
PARTS: dict[str, Part] = {
    "Residual stream": "residual",
    "Attention output": "attention",
    "Feed-forward output": "ffn",
}
PAGE = "inside/answer"
MAX_POSITIONS = 24  # the last ones of both prompts
TOGETHER = 5  # heads that are patched together, too
What = Literal["heads"] | Part


def positions_of(pair: PromptPair) -> int:
    """Return how many of a pair's last positions are compared."""
    return min(max(MAX_POSITIONS, len(pair.answer)), pair.n_aligned)


@dataclass(frozen=True)
class Reading:
    """Both runs of a pair, and the seconds that measuring all heads or all positions takes."""

    runs: PairRuns
    seconds_heads: float
    seconds_positions: float


@st.cache_resource(max_entries=2, show_spinner="Reading both prompts…", scope="session")
def reading(model: str, kv_bits: int, pair: PromptPair) -> Reading:
    """Run both prompts of a pair; cached for the session."""
    decoder, n_answer = load_decoder(), len(pair.answer)
    runs = read_pair(decoder, pair, positions_of(pair))
    n_heads, n_positions = runs.n_layers * decoder.config.n_heads, runs.n_layers * len(runs.ids)
    return Reading(
        runs, expected_seconds(runs, n_answer, n_heads), expected_seconds(runs, len(runs.ids), n_positions)
    )


def show_origin(written: Written | None) -> None:
    """Draw which heads, layers and positions carry a fact to an answer, or to one of two prompts."""
    st.write(
        "The model reads two prompts that differ in a fact. One piece of what it computes for the first is "
        "put in place of the same piece for the second: the more of the answer's probability comes back, the "
        "more of the fact goes through that piece."
    )
    compared = OWN
    if written is not None and written.prompt.sources:
        compared = choice("Compare", (THIS, OWN), "origin-of")
    try:
        named = own_pair() if written is None or compared == OWN else pair_of_answer(written)
        if named is not None:
            show_pair(named)
    except GlassboxError as error:
        show_error(error)


def show_pair(named: NamedPair) -> None:
    """Draw how probable the answer is after both prompts, and what carries the difference."""
    decoder, pair = load_decoder(), named.pair
    read = reading(decoder.name, decoder.kv_bits, pair)
    words = answer_words(decoder, pair)
    columns = st.columns(3)
    for column, prompt, log_p in (
        (columns[0], named.clean, read.runs.log_p_clean),
        (columns[1], named.corrupted, read.runs.log_p_corrupted),
    ):
        column.metric(f"“{words}” {prompt}", f"{np.exp(log_p):.1%}")
    columns[2].metric(
        "Difference",
        f"{read.runs.gap:+.2f} nats",
        help="Of the log-probabilities. A patch that restores all of it moves 100%.",
    )
    st.caption(alignment_words(pair))
    opened = chapters((HEADS, PLACES, LENS), "origin-chapter")
    if opened == LENS:
        show_lens(named, read.runs)
    elif read.runs.gap < MIN_GAP:
        st.info(
            f"“{words}” is not clearly more probable {named.clean} than {named.corrupted}: it takes "
            f"{MIN_GAP} nats. Choose another answer or other passages.",
            icon=":material/balance:",
        )
    elif opened == HEADS:
        show_heads(named, read)
    else:
        show_positions(named, read)


def alignment_words(pair: PromptPair) -> str:
    """Say how the tokens of both prompts are aligned."""
    n = positions_of(pair)
    if len(pair.clean) == len(pair.corrupted):
        return (
            f"Both prompts have {len(pair.clean):,} tokens: each is compared with the one at its place, the "
            f"last {n} of them."
        )
    return (
        f"The prompts have {len(pair.clean):,} and {len(pair.corrupted):,} tokens, so they are aligned from "
        f"the end: the last {n} that are the same in both are compared. The passage itself has no "
        "counterpart."
    )


@dataclass(frozen=True)
class Measured:
    """Effects of all patches, NaN for those left out, and of the strongest heads patched together."""

    effects: Array
    together: float = 0.0


def measured(named: NamedPair, what: What, n_patches: int, seconds: float) -> Measured | None:
    """Return the effects of patches; until they are measured, draw the button or the progress."""
    decoder, name = load_decoder(), f"patches-{what}"
    request = (decoder.name, decoder.kv_bits, named.pair)
    measure = partial(start_measuring, name, named.pair, what, request)
    job: Job[Measured] | None = current_job(name, request)
    if job is None:
        st.button(
            f"Measure {n_patches:,} patches, about {readable_time(seconds)}",
            key=f"origin-measure-{what}",
            type="primary",
            icon=":material/science:",
            on_click=measure,
            help="It goes on while you are on other pages.",
        )
        return None
    if not job.done:
        follow_progress(job, "origin", "Ends the measurement; what is done is shown.")
        return None
    found = job.result()
    if n_missing := int(np.isnan(found.effects).sum()):
        st.warning(f"Stopped: {n_missing:,} of {found.effects.size:,} patches were not measured.")
        st.button("Measure all again", key="origin-again", on_click=measure)
    return found if n_missing < found.effects.size else None


def start_measuring(name: str, pair: PromptPair, what: What, request: object) -> None:
    """Patch all heads or positions of a pair in a job; stop the one that is running, if any."""
    for other in session_jobs().values():
        if other.page == PAGE:
            other.stop()
    decoder = load_decoder()

    def work(job: Job[Measured]) -> Measured:
        job.words = "Reading both prompts…"

        def go_on(done: int, total: int) -> bool:
            job.report(done, total, f"{done:,} of {total:,} patches")
            return job.take_turn()

        if what != "heads":
            runs = read_pair(decoder, pair, positions_of(pair))
            return Measured(runs.effects(patch_positions(runs, what, go_on)))
        runs = read_pair(decoder, pair, len(pair.answer))
        effects = runs.effects(patch_each_head(runs, go_on))
        together = patch_heads(runs, strongest(effects, TOGETHER))
        return Measured(effects, float(runs.effects(np.array(together))))

    start_job(name, work, request=request, page=PAGE)


def gap_words(named: NamedPair, runs: PairRuns) -> str:
    """Say by how much the answer is more probable after the first prompt."""
    words = answer_words(runs.decoder, named.pair)
    return f"the {runs.gap:.1f} nats by which “{words}” is more probable {named.clean} than {named.corrupted}"


def show_heads(named: NamedPair, read: Reading) -> None:
    """Draw the effect of each head, patched where the answer is predicted."""
    runs, n_heads = read.runs, read.runs.decoder.config.n_heads
    found = measured(named, "heads", runs.n_layers * n_heads, read.seconds_heads)
    if found is None:
        return
    best = strongest(found.effects, 10)
    layer, head = best[0]
    st.markdown(
        f"**Layer {layer}, head {head} moves {found.effects[layer, head]:.0%} of {gap_words(named, runs)}; "
        f"the {TOGETHER} strongest heads, patched together, {found.together:.0%}.{against(found.effects)}**"
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        rows = [f"layer {number}" for number in range(runs.n_layers)]
        show_figure(
            effect_map(found.effects, rows, [str(number) for number in range(n_heads)], "head"),
            name="effect-of-heads",
            arrays={"effect": found.effects},
            alt=f"Effect of each head of each layer; the largest is that of layer {layer}, head {head}",
        )
    with right:
        show_table(
            [
                {
                    "layer": row,
                    "head": column,
                    "share": float(found.effects[row, column]),
                    "nats": float(found.effects[row, column] * runs.gap),
                }
                for row, column in best
            ],
            "The strongest heads",
            {"share": st.column_config.NumberColumn(format="percent")},
        )
    st.caption(
        "Each head's output is replaced where the answer is predicted, before heads are mixed; blue moves "
        "the answer towards the first prompt, red away from it. Heads work together and make up for each "
        "other, so shares need not add up to 100%."
    )


def against(effects: Array) -> str:
    """Name the head that works most against the others, if one does clearly."""
    [(layer, head)] = strongest(-effects, 1)
    effect = effects[layer, head]
    return f" Layer {layer}, head {head} works against them ({effect:.0%})." if effect < -0.1 else ""


def show_positions(named: NamedPair, read: Reading) -> None:
    """Draw the effect of each layer at each position."""
    runs = read.runs
    kind = choice("Patched", list(PARTS), "origin-part", "The piece that is replaced at one position.")
    part = PARTS[kind]
    n_rows = runs.n_layers + (part == "residual")
    found = measured(named, part, n_rows * len(runs.ids), read.seconds_positions)
    if found is None:
        return
    names = [f"layer {number}" for number in range(runs.n_layers)]
    rows = ["embeddings", *names] if part == "residual" else names
    # The last ones that the model reads of the first prompt and the answer.
    read_ids = [*named.pair.clean, *named.pair.answer[:-1]][-len(runs.ids) :]
    tokens = [token_name(runs.decoder, number) for number in read_ids]
    st.markdown(f"**{headline(found.effects, rows, [spoken(token) for token in tokens], kind)}**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        labels = [f"{place} {escape_plotly(token)}" for place, token in enumerate(tokens)]
        show_figure(
            effect_map(found.effects, rows, labels, "token"),
            name=f"effect-of-{part}",
            arrays={"tokens": np.array(tokens), "effect": found.effects},
            alt=f"{kind}: effect of each layer at each token",
        )
    with right:
        places = np.nanargmax(np.where(np.isnan(found.effects), -np.inf, found.effects), axis=1)
        show_table(
            [
                {
                    "after" if part == "residual" else "in": name,
                    "strongest at": f"{place} {tokens[place]}",
                    "share": float(found.effects[row, place]),
                }
                for row, (name, place) in enumerate(zip(rows, places.tolist(), strict=True))
            ],
            "The strongest position of each layer",
            {"share": st.column_config.NumberColumn(format="percent")},
        )
    st.caption(
        f"Share of {gap_words(named, runs)} that comes back when one cell is patched. Only attention moves "
        "anything from one position to another."
    )


def headline(effects: Array, rows: list[str], tokens: list[str], kind: str) -> str:
    """Say where a patch has the largest effect; of the residual stream, where the fact lies by layers."""
    known = np.where(np.isnan(effects), -np.inf, effects)
    place, half = known.argmax(axis=1), known.max(axis=1) >= 0.5
    if PARTS[kind] != "residual" or not half.any():
        [(row, column)] = strongest(effects, 1)
        return (
            f"{kind}: the most is moved by {rows[row]} at “{tokens[column]}”, {effects[row, column]:.0%} of "
            "the difference."
        )
    end = int(place[half][-1])
    away = np.flatnonzero(half & (place != end))
    arrived = next(row for row in np.flatnonzero(half) if row > (away[-1] if len(away) else -1))
    words = f"from {rows[arrived]} on it is at “{tokens[end]}” ({effects[arrived, end]:.0%})."
    if not len(away):
        return f"At first no token that is compared holds the fact; {words}"
    return f"Up to {rows[away[-1]]} the fact is at “{tokens[place[away[-1]]]}”; {words}"
