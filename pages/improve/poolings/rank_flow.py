"""How passages change places from pooling to pooling."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk
from engine.inspection.pooling.pooling_search import PoolingRankings
from engine.layers.tracing import Array
from ui.colours import CATEGORIES, GREY, ink
from ui.figures import chunk_hover, styled

# Labels that fit over a column where five share 390 pixels.
SHORT = {
    "cls": "[CLS]",
    "weightedmean": "later<br>tokens",
    "lasttoken": "last<br>token",
    "idf": "IDF",
    "attention": "atten-<br>tion",
    "last4": "last 4<br>layers",
    "first_last": "first +<br>last",
    "maxsim": "Max-<br>Sim",
}
SYMBOLS = ("circle", "square", "diamond")
LEVEL_LABELS = 6  # more than these are written upright
CAMERA = 32  # pixels above the labels, for the button that saves a picture
LANE_STEP = 0.45  # distance in ranks between two passages below the first k
HOVER_CHARACTERS = 160


def rank_flow(compared: PoolingRankings, chunks: Sequence[Chunk]) -> go.Figure:
    """A line of ranks over the strategies for each passage, from 1; those below the first k share a lane."""
    places, lowest = flow_places(compared)
    names = [in_line(strategy) for strategy in compared.strategies]
    figure = go.Figure()
    for line, row in enumerate(compared.rows):
        figure.add_trace(flow_line(compared, line, places[:, line], chunks[row], names))
    has_lane = not compared.found.all()
    ranks = list(range(1, compared.k + 1))
    if has_lane:
        figure.add_hrect(
            y0=compared.k + 0.55, y1=lowest + 0.4, fillcolor=GREY, opacity=0.16, line_width=0, layer="below"
        )
    figure.update_yaxes(
        title="rank",
        tickvals=ranks + [(compared.k + lowest + 0.95) / 2] * has_lane,  # the middle of the lane
        ticktext=[str(rank) for rank in ranks] + [f"below<br>{compared.k}"] * has_lane,
        range=[lowest + 0.45, 0.4],
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    strategy_axis(figure, compared.strategies, range=[-0.35, len(names) - 0.65], zeroline=False)
    figure.update_layout(hoverlabel={"align": "left"}, hovermode="closest", showlegend=False)
    top = CAMERA + (40 if len(names) <= LEVEL_LABELS else 90)
    return styled(figure, height=int(top + 50 + 30 * lowest)).update_layout(margin_t=top)


def flow_places(compared: PoolingRankings) -> tuple[Array, float]:
    """Return where each passage is drawn, ``(n_strategies, n_rows)``, and the lowest place of all.

    A place is the rank or, below the first k, a position in the lane, in the order of the ranks.
    """
    below = ~compared.found
    order = np.argsort(np.argsort(np.where(below, compared.ranks, 0), axis=1), axis=1)
    n_found = compared.found.sum(axis=1, keepdims=True)
    lane = compared.k + 1 + LANE_STEP * (order - n_found)
    places = np.where(below, lane, compared.ranks)
    return places, float(places.max())


def flow_line(
    compared: PoolingRankings, line: int, places: Array, chunk: Chunk, names: Sequence[str]
) -> go.Scatter:
    """The line of one passage: its number where it is found, a small mark in the lane."""
    found, colour = compared.found[:, line], colour_of(line)
    symbol = SYMBOLS[line // len(CATEGORIES) % len(SYMBOLS)]
    about = chunk_hover(chunk, HOVER_CHARACTERS, None)
    return go.Scatter(
        x=list(range(len(names))),
        y=places,
        mode="lines+markers+text",
        name=f"passage {line + 1}",
        line={"color": colour, "width": 2},
        marker={
            "symbol": symbol,
            "color": colour,
            "opacity": 1,  # marks of several sizes are translucent otherwise
            "size": np.where(found, 22, 7),
            "line": {"width": 1, "color": GREY},
        },
        text=[str(line + 1) if here else "" for here in found],
        textfont={"size": 12, "color": ink(colour)},
        hovertext=[
            f"<b>Passage {line + 1}</b> under {name}: rank {rank:,}, score {score:.3f}<br>{about}"
            for name, rank, score in zip(
                names, compared.ranks[:, line], compared.scores[:, line], strict=True
            )
        ],
        hoverinfo="text",
        cliponaxis=False,
    )


def colour_of(line: int) -> str:
    """Return the colour of a passage, counted from 0; after three rounds of colours all are grey."""
    return CATEGORIES[line % len(CATEGORIES)] if line < len(CATEGORIES) * len(SYMBOLS) else GREY


def in_line(strategy: str) -> str:
    """Return a strategy's short name without line breaks."""
    return SHORT.get(strategy, strategy).replace("-<br>", "").replace("<br>", " ")


def strategy_axis(figure: go.Figure, strategies: Sequence[str], **settings: object) -> None:
    """Label the columns with the strategies: on several lines where they are few, else upright."""
    few = len(strategies) <= LEVEL_LABELS
    names = [SHORT.get(strategy, strategy) if few else in_line(strategy) for strategy in strategies]
    angle = 0 if few else -90
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        tickangle=angle,
        side="top",
        fixedrange=True,
        **settings,
    )
