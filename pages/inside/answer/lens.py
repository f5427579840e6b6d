"""The logit lens on both prompts: which token each layer would say next."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from engine.generation.decoder import Decoder
from engine.inspection.model.logit_lens import LogitLens, logit_lens
from engine.inspection.model.patching import PairRuns, PromptPair
from engine.layers.tracing import Array
from pages.inside.answer.fact_pair import NamedPair, spoken, token_name
from ui.colours import BLUE, ORANGE, paint
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.tables import show_csv, show_table
from ui.widgets import choice

LENS_POSITIONS = 8  # the last ones, of which each layer's prediction is shown


@st.cache_resource(max_entries=2, show_spinner="Looking through the logit lens…", scope="session")
def lenses(model: str, kv_bits: int, pair: PromptPair, _runs: PairRuns) -> tuple[LogitLens, LogitLens]:
    """Return the logit lens on the last positions of both runs, following the token that comes next."""
    n = min(max(LENS_POSITIONS, len(pair.answer)), len(_runs.ids))
    clean, corrupted = (
        logit_lens(run.states[:, -n:], _runs.decoder, 1, [*prompt, *pair.answer][-n:])
        for run, prompt in ((_runs.clean, pair.clean), (_runs.corrupted, pair.corrupted))
    )
    return clean, corrupted


def show_lens(named: NamedPair, runs: PairRuns) -> None:
    """Draw the next tokens that each layer predicts, and the answer's rank by layer."""
    decoder, pair = runs.decoder, named.pair
    clean, corrupted = lenses(decoder.name, decoder.kv_bits, pair, runs)
    at, words = -len(pair.answer), spoken(token_name(decoder, pair.answer[0]))
    st.markdown(
        f"**“{words}” is the most probable token {settled_words(clean, at)} {named.clean}, and "
        f"{settled_words(corrupted, at)} {named.corrupted}.**"
    )
    both = {
        "clean": (named.clean, clean, pair.clean),
        "corrupted": (named.corrupted, corrupted, pair.corrupted),
    }
    shown = choice("Shown", list(both), "origin-run", format_func=lambda name: both[name][0].capitalize())
    run, lens, prompt = both[shown]
    rows = lens_rows(lens, [*prompt, *pair.answer], decoder)
    layers = list(dict.fromkeys(row["after"] for row in rows))
    alt = f"The most probable next token of each layer, {run}"
    st.html(lens_html(rows, len(layers), token_name(decoder, pair.answer[0]), alt))
    show_csv(rows, "origin-lens", "logit-lens")
    st.caption(
        "The last layer is on top. After each layer a token's vector goes through the final norm and the "
        "unembedding, as if it were the last one: which token would come next? They are trained for the last "
        "layer only, so early layers may know more than they say."
    )
    st.markdown(f"**Rank of “{words}” among all tokens, by layer**")
    ranks = clean.target_ranks[:, at], corrupted.target_ranks[:, at]
    show_figure(
        rank_lines(*ranks, (named.clean, named.corrupted)),
        name="answer-rank-by-layer",
        arrays={"clean": ranks[0], "corrupted": ranks[1]},
        alt=f"Rank of the answer after each layer, {named.clean} and {named.corrupted}",
    )
    with st.expander("Numbers by layer", icon=":material/table:"):
        n = len(rows) // len(layers)
        show_table(
            [{name: row[name] for name in row if name not in ("read", "next")} for row in rows[n + at :: n]],
            f"The prediction of the answer by each layer, {run}",
            {
                "probability": st.column_config.NumberColumn(format="percent"),
                "probability of next": st.column_config.NumberColumn("of the answer", format="percent"),
                "rank of next": st.column_config.NumberColumn("rank of the answer"),
                "KL": st.column_config.NumberColumn(
                    "KL (nats)",
                    help="How far the layer's distribution is from the model's own: 0 in the last layer.",
                ),
            },
        )


def lens_rows(lens: LogitLens, ids: Sequence[int], decoder: Decoder) -> list[dict[str, Any]]:
    """Return a row for each layer and each of the last tokens read, of which ``ids`` has one more."""
    n_rows, n_read = lens.ids.shape[:2]
    names = [token_name(decoder, number) for number in ids[-1 - n_read :]]
    return [
        {
            "after": f"layer {row - 1}" if row else "embeddings",
            "read": names[place],
            "next": names[place + 1],
            "most probable": token_name(decoder, int(lens.ids[row, place, 0])),
            "probability": float(lens.probabilities[row, place, 0]),
            "probability of next": float(lens.target_probabilities[row, place]),
            "rank of next": int(lens.target_ranks[row, place]),
            "KL": float(lens.divergences[row, place]),
        }
        for row in range(n_rows)
        for place in range(n_read)
    ]


def settled_words(lens: LogitLens, place: int) -> str:
    """Say from which layer on the token followed is the most probable one."""
    row, n_rows = int(lens.settled()[place]), len(lens.ids)
    if row == n_rows:
        return "not even in the last layer"
    return f"from layer {row - 1} on" if row else "from the embeddings on"


def rank_lines(clean: Array, corrupted: Array, names: tuple[str, str]) -> go.Figure:
    """Lines of the answer's rank by layer in both runs, ``(n_layers + 1,)`` each; 1 is on top."""
    figure = go.Figure()
    layers = [-1, *range(len(clean) - 1)]
    for ranks, name, colour in zip((clean, corrupted), names, (BLUE, ORANGE), strict=True):
        add_line(figure, layers, ranks, name, colour, f"layer %{{x}}, {name}<br>rank %{{y:,}}")
    figure.update_xaxes(title="layer (−1: embeddings)")
    figure.update_yaxes(title="rank", type="log", dtick=1, autorange="reversed", tickformat=",")
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=300)


def lens_html(rows: Sequence[Mapping[str, Any]], n_layers: int, answer: str, alt: str) -> str:
    """The most probable next token of each layer, the last on top, after each token read, as an HTML table.

    Cells are darker the more probable their token is, and those with the answer are bold.
    """
    n_read = len(rows) // n_layers
    head = "".join(f'<th scope="col">{escape(row["read"])}</th>' for row in rows[:n_read])
    body = ""
    for first in reversed(range(0, len(rows), n_read)):
        cells = "".join(lens_cell(row, answer) for row in rows[first : first + n_read])
        body += f'<tr><th scope="row">{escape(rows[first]["after"])}</th>{cells}</tr>'
    return (
        f'<div class="gb-table from-end" role="region" aria-label="{escape(alt)}" tabindex="0"><table>'
        f'<caption>{escape(alt)}</caption><thead><tr><th scope="col">after</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def lens_cell(row: Mapping[str, Any], answer: str) -> str:
    """One cell of `lens_html`."""
    word, probability = escape(row["most probable"]), row["probability"]
    shown = f"<b>{word}</b>" if row["most probable"] == answer else word
    return (
        f'<td style="background:{paint(BLUE, probability)}" '
        f'title="{escape(row["after"])}, after {escape(row["read"])}: {word} {probability:.1%}">'
        f"{shown} <small>{probability:.0%}</small></td>"
    )
