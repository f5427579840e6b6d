"""The similarity of two texts taken apart: what each pair of their tokens adds to it."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import Encoder
from engine.errors import GlassboxError
from engine.inspection.similarity import (
    Contributions,
    Level,
    ReadText,
    Unit,
    contributions,
    dimensions_won,
    rolled_up,
    units,
)
from engine.layers.tracing import Array
from engine.retrieval.maxsim import MAXSIM
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.maps import LABELLED_TOKENS
from ui.pooling_explained_figures import NUMBER, TEXT_HEIGHT, contribution_map, numbered, painted, won_bars
from ui.pooling_explained_words import show_left_out
from ui.poolings import LABELS, WHAT
from ui.text import show_text

NAMES = LABELS | {MAXSIM: "MaxSim (ColBERT)"}
WHAT_MAXSIM = (
    "No pooling: each token of the first text is matched with the most similar token of the second, and the "
    "cosines of the matches are averaged. It is not symmetric: the first text is the question."
)
LEVELS: tuple[Level, ...] = ("tokens", "words", "sentences")
MOST_PAIRS = 10


def show_explained(encoder: Encoder, max_tokens: int, first: str, second: str, key: str) -> None:
    """Draw what the similarity of two texts is made of.

    Parameters
    ----------
    encoder
        The encoder, with the words' weights where IDF pooling is to be offered.
    max_tokens
        Tokens read of each text.
    first, second
        The texts, as a question and a passage.
    key
        Sets the widgets apart from those of another pair on the page.
    """
    if not first.strip() or not second.strip():
        st.info("Give two texts to see what their similarity is made of.", icon=":material/compare_arrows:")
        return
    strategy = strategy_choice(encoder, key)
    try:
        found = contributions(encoder, first, second, strategy, max_tokens)
    except GlassboxError as error:
        st.warning(escape_markdown(str(error)))
        return
    level = level_choice(found, key)
    rows, columns = units(found.first, level), units(found.second, level)
    show_sum(found)
    show_painted(found, rows, columns)
    show_map(found, rows, columns, level, key)
    if strategy == MAXSIM:
        show_matches(found)
    else:
        show_pairs(found, rows, columns)
    if found.winners is not None:
        show_won(found.winners, rows, columns, key)
    show_left_out(encoder, max_tokens, found, key)


def strategy_choice(encoder: Encoder, key: str) -> str:
    """Draw the choice of how the similarity is made; return the strategy."""
    options = [*(strategy for strategy in encoder.poolings if strategy != "pooler"), MAXSIM]
    strategy = st.selectbox(
        "Similarity by",
        options,
        format_func=NAMES.__getitem__,
        key=f"{key}-strategy",
        persist_state="session",
        help="How the tokens' vectors become one number. BERT's pooler is missing: it bends the sum by a "
        "tanh, so no token has a share of its own.",
    )
    st.caption(escape_markdown(WHAT_MAXSIM if strategy == MAXSIM else WHAT[strategy]))
    return strategy


def level_choice(found: Contributions, key: str) -> Level:
    """Draw the choice of what is shown as one: short texts by tokens, longer ones by words at first."""
    longer = max(len(found.first.encoding), len(found.second.encoding))
    default: Level = "tokens" if longer <= LABELLED_TOKENS else "words"
    level: Level = st.segmented_control(
        "Show",
        LEVELS,
        default=default,
        required=True,
        format_func=str.capitalize,
        key=f"{key}-level-{default}",
        persist_state="session",
        help="Contributions of sub-words add up to those of words, and these to those of sentences.",
    )
    return level


def show_sum(found: Contributions) -> None:
    """Draw the similarity, and how much of it is between words."""
    words, others = ~found.first.special, ~found.second.special
    between_words = float(found.matrix[np.ix_(words, others)].sum())
    name = "MaxSim" if found.strategy == MAXSIM else "Cosine"
    with st.container(horizontal=True):
        st.metric(
            name, f"{found.score:.4f}", help="Computed from the vectors, not from the sum.", width="content"
        )
        st.metric(
            "Words with words",
            f"{between_words:+.4f}",
            help="The sum over pairs in which both tokens are of the texts.",
            width="content",
        )
        st.metric(
            "With [CLS] or [SEP]",
            f"{found.matrix.sum() - between_words:+.4f}",
            help="The sum over pairs with a special token on one side or both. They stand for no word: "
            "what their vectors hold they gathered from the whole text.",
            width="content",
        )
    n_first, n_second = found.matrix.shape
    st.caption(
        f"{n_first} × {n_second} pairs of tokens add up to {found.matrix.sum():.6f}. {name} of the vectors: "
        f"{found.score:.6f}; the difference is {abs(found.matrix.sum() - found.score):.1g}, by rounding."
    )
    for read, side in ((found.first, "first"), (found.second, "second")):
        if read.tokens_lost:
            st.caption(
                f"The {side} text is cut: its last {read.tokens_lost:,} tokens are beyond the limit of "
                f"{len(read.encoding):,} and have no part in this. They are grey below."
            )


def show_painted(found: Contributions, rows: Sequence[Unit], columns: Sequence[Unit]) -> None:
    """Draw both texts by what each part contributes, with the shares of special tokens as numbers."""
    by_token = found.matrix.sum(axis=1), found.matrix.sum(axis=0)  # (n_first,), (n_second,)
    table = []
    for column, read, of_text, values, title in zip(
        st.columns(2, gap="medium"),
        (found.first, found.second),
        (rows, columns),
        by_token,
        ("First text", "Second text"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            show_text(painted(read, of_text, unit_sums(values, of_text), "share"), height=TEXT_HEIGHT)
        table.append({"Share of": title, **special_shares(read, values)})
    st.caption(
        "Blue adds to the similarity, orange takes from it; the stronger the colour the more, on a scale of "
        "its own for each text. Point at a part for its number."
    )
    shares = [name for name in table[0] | table[1] if name != "Share of"]
    st.dataframe(
        table,
        hide_index=True,
        column_config=dict.fromkeys(shares, NUMBER),
        alt="Share of the words and of the special tokens of each text; each row adds up to the similarity",
    )


def special_shares(read: ReadText, by_token: Array) -> dict[str, float]:
    """Return the shares of a text's words, of each of its special tokens, and of all: they add up."""
    special = read.special
    shares = {"Words": float(by_token[~special].sum())}
    for number in np.flatnonzero(special):
        token = read.encoding.tokens[number]
        shares[token] = shares.get(token, 0.0) + float(by_token[number])
    return {**shares, "All": float(by_token.sum())}


def unit_sums(by_token: Array, of_text: Sequence[Unit]) -> Array:
    """Sum what tokens have over units: ``(n_tokens,) -> (n_units,)``."""
    return np.add.reduceat(by_token, [each.first for each in of_text])


def show_map(
    found: Contributions, rows: Sequence[Unit], columns: Sequence[Unit], level: Level, key: str
) -> None:
    """Draw the contributions of all pairs."""
    st.markdown(f"**{level.capitalize()} by {level}**")
    st.caption("The first text goes down, the second across; the sum over the map is the similarity.")
    matrix = rolled_up(found.matrix, rows, columns)
    show_figure(
        contribution_map(matrix, rows, columns),
        name=f"{key}-contributions",
        arrays={
            "contribution": matrix,
            "first": np.array([row.label for row in rows]),
            "second": np.array([column.label for column in columns]),
            "score": np.array(found.score),
        },
        alt=f"Contribution of each pair of {level} to the similarity, which is their sum",
    )


def show_pairs(found: Contributions, rows: Sequence[Unit], columns: Sequence[Unit]) -> None:
    """Draw the pairs that contribute most, either way."""
    matrix = rolled_up(found.matrix, rows, columns)
    largest = np.argsort(-np.abs(matrix), axis=None, kind="stable")[:MOST_PAIRS]
    st.markdown("**The pairs that count most**")
    st.dataframe(
        [
            {
                "First text": numbered(row, rows[row].label),
                "Second text": numbered(column, columns[column].label),
                "Contribution": matrix[row, column],
            }
            for row, column in zip(*np.unravel_index(largest, matrix.shape), strict=True)
            if matrix[row, column]
        ],
        hide_index=True,
        column_config={"Contribution": NUMBER},
        alt="The pairs with the largest contributions",
    )


def show_matches(found: Contributions) -> None:
    """Draw, for each token of the first text, its best match."""
    best = np.abs(found.matrix).argmax(axis=1)  # (n_first,); a row holds its match alone
    st.markdown("**Each token's best match**")
    st.dataframe(
        [
            {
                "First text": numbered(row, token),
                "Second text": numbered(match, found.second.encoding.tokens[match]),
                "Cosine": found.matrix[row, match] * len(best),
            }
            for row, (token, match) in enumerate(zip(found.first.encoding.tokens, best.tolist(), strict=True))
        ],
        hide_index=True,
        column_config={"Cosine": NUMBER},
        alt="The tokens of the first text, each with the token of the second that is most similar",
    )
    st.caption(f"MaxSim is the mean of these {len(best)} cosines; ColBERT's own score is their sum.")


def show_won(winners: tuple[Array, Array], rows: Sequence[Unit], columns: Sequence[Unit], key: str) -> None:
    """Draw who won the dimensions of max pooling."""
    st.markdown("**Dimensions won**")
    for column, won, of_text, side in zip(
        st.columns(2, gap="medium"), winners, (rows, columns), ("first", "second"), strict=True
    ):
        n_won = dimensions_won(won, of_text)
        with column:
            st.caption(f"Of the {side} text, out of {len(won)}")
            show_figure(
                won_bars(n_won, of_text),
                name=f"{key}-won-{side}",
                arrays={"dimensions_won": n_won, "winner": won},
                alt=f"Dimensions that each part of the {side} text won",
            )
    st.caption(
        "A dimension of the pooled vector is the value of one token, the one with the largest; grey bars are "
        "special tokens. A dimension's product goes to the pair of tokens that won it."
    )
