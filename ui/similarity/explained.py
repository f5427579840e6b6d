"""The similarity of two texts explained: the contribution of each pair of their tokens."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import Encoder
from engine.errors import GlassboxError
from engine.inspection.pooling.similarity_decomposition import (
    Decomposition,
    TextUnit,
    TokenizedText,
    UnitLevel,
    decompose_similarity,
    dimensions_won,
    sum_by_unit,
    text_units,
)
from engine.layers.pooling import POOLINGS, pooling_label
from engine.layers.tracing import Array
from engine.retrieval.maxsim import MAXSIM
from ui.export import show_figure
from ui.similarity.figures import NUMBER, TEXT_HEIGHT, contribution_map, numbered, painted, won_bars
from ui.tables import show_table
from ui.text import escape_markdown, show_text
from ui.tokens import LABELLED_TOKENS
from ui.widgets import choice, show_metrics

WHAT_MAXSIM = (
    "No pooling: each token of the first text is matched with the most similar token of the second, and the "
    "cosines of the matches are averaged. It is not symmetric: the first text is the question."
)
LEVELS: tuple[UnitLevel, ...] = ("tokens", "words", "sentences")
MOST_PAIRS = 10
BOTH_TEXTS, PAIRS = CHAPTERS = ("Both texts", "Pair by pair")


def label(strategy: str) -> str:
    """Label of a pooling strategy or of MaxSim."""
    return "MaxSim (ColBERT)" if strategy == MAXSIM else pooling_label(strategy)


def show_explained(
    encoder: Encoder, max_tokens: int, first: str, second: str, key: str, chapter: str
) -> None:
    """Draw the contributions of tokens to the similarity of two texts, a question and a passage.

    The encoder has IDF weights where IDF pooling is to be offered; ``key`` begins the widgets' keys, and
    ``chapter`` is one of `CHAPTERS`.
    """
    if not first.strip() or not second.strip():
        st.info("Give two texts to see their similarity explained.", icon=":material/compare_arrows:")
        return
    options = [*(strategy for strategy in encoder.poolings if strategy != "pooler"), MAXSIM]
    strategy = choice(
        "Similarity by",
        options,
        f"{key}-strategy",
        "How the tokens' vectors become one number. What is not linear, such as the tanh of BERT's pooler, "
        "is missing: tokens have no shares in it.",
        format_func=label,
        as_list=True,
    )
    st.caption(escape_markdown(WHAT_MAXSIM if strategy == MAXSIM else POOLINGS[strategy].help))
    try:
        found = decompose_similarity(encoder, first, second, strategy, max_tokens)
    except GlassboxError as error:
        st.warning(escape_markdown(str(error)))
        return
    longer = max(len(found.first.encoding), len(found.second.encoding))
    default: UnitLevel = "tokens" if longer <= LABELLED_TOKENS else "words"
    reason = "Contributions of sub-words add up to those of words, and these to those of sentences."
    level = choice("Show", LEVELS, f"{key}-level-{default}", reason, default, str.capitalize)
    rows, columns = text_units(found.first, level), text_units(found.second, level)
    if chapter == BOTH_TEXTS:
        show_sum(found)
        show_painted(found, rows, columns)
        return
    show_map(found, rows, columns, level, key)
    if strategy == MAXSIM:
        show_matches(found)
    else:
        show_pairs(found, rows, columns)
    if found.winners is not None:
        show_won(found.winners, rows, columns, key)


def show_sum(found: Decomposition) -> None:
    """Draw the similarity, and the part of it between words."""
    words, others = ~found.first.special, ~found.second.special
    between_words = float(found.matrix[np.ix_(words, others)].sum())
    name = "MaxSim" if found.strategy == MAXSIM else "Cosine"
    show_metrics(
        {
            name: (f"{found.score:.4f}", None, "Computed from the vectors, not from the sum."),
            "Words with words": (
                f"{between_words:+.4f}",
                None,
                "The sum over pairs without a special token.",
            ),
            "With special tokens": (
                f"{found.matrix.sum() - between_words:+.4f}",
                None,
                "The sum over pairs with a special token, such as [CLS] or [SEP], on one side or both. They "
                "stand for no word: their vectors summarise the whole text.",
            ),
        }
    )
    n_first, n_second = found.matrix.shape
    st.caption(
        f"{n_first} × {n_second} pairs of tokens add up to {found.matrix.sum():.6f}. {name} of the vectors: "
        f"{found.score:.6f}; the difference is {abs(found.matrix.sum() - found.score):.1g}, by rounding."
    )
    for read, side in ((found.first, "first"), (found.second, "second")):
        if read.tokens_truncated:
            st.caption(
                f"Tokens of the {side} text beyond the limit of {len(read.encoding):,}: "
                f"{read.tokens_truncated:,}. They do not count, and are struck through below."
            )


def show_painted(found: Decomposition, rows: Sequence[TextUnit], columns: Sequence[TextUnit]) -> None:
    """Draw both texts coloured by contribution, with a table of the shares of special tokens."""
    first, second = found.matrix.sum(axis=1), found.matrix.sum(axis=0)  # (n_first,), (n_second,)
    left, right = st.columns(2, gap="medium")
    for place, title, read, units, by_token in (
        (left, "First text", found.first, rows, first),
        (right, "Second text", found.second, columns, second),
    ):
        with place:
            st.markdown(f"**{title}**")
            show_text(painted(read, units, unit_sums(by_token, units), "share"), height=TEXT_HEIGHT)
    table = [
        {"Share of": "First text", **special_shares(found.first, first)},
        {"Share of": "Second text", **special_shares(found.second, second)},
    ]
    st.caption(
        "Blue adds to the similarity, orange subtracts from it; stronger colours mean more, on a separate "
        "scale for each text. Point at a part for its number."
    )
    shares = [name for name in table[0] | table[1] if name != "Share of"]
    show_table(
        table,
        "Share of the words and of the special tokens of each text; each row adds up to the similarity",
        dict.fromkeys(shares, NUMBER),
    )


def special_shares(read: TokenizedText, by_token: Array) -> dict[str, float]:
    """Return the shares of a text's words and of each special token, and their sum."""
    special = read.special
    shares = {"Words": float(by_token[~special].sum())}
    for number in np.flatnonzero(special):
        token = read.encoding.tokens[number]
        shares[token] = shares.get(token, 0.0) + float(by_token[number])
    return {**shares, "All": float(by_token.sum())}


def unit_sums(by_token: Array, of_text: Sequence[TextUnit]) -> Array:
    """Sum values of tokens over units: ``(n_tokens,) -> (n_units,)``."""
    return np.add.reduceat(by_token, [each.first for each in of_text])


def show_map(
    found: Decomposition, rows: Sequence[TextUnit], columns: Sequence[TextUnit], level: UnitLevel, key: str
) -> None:
    """Draw the contributions of all pairs."""
    st.markdown(f"**{level.capitalize()} by {level}**")
    st.caption("The first text goes down, the second across; the sum over the map is the similarity.")
    matrix = sum_by_unit(found.matrix, rows, columns)
    show_figure(
        contribution_map(matrix, rows, columns),
        name=f"{key}-contributions",
        alt=f"Contribution of each pair of {level} to the similarity, which is their sum",
    )


def show_pairs(found: Decomposition, rows: Sequence[TextUnit], columns: Sequence[TextUnit]) -> None:
    """Draw the pairs with the largest contributions, positive or negative."""
    matrix = sum_by_unit(found.matrix, rows, columns)
    largest = np.argsort(-np.abs(matrix), axis=None, kind="stable")[:MOST_PAIRS]
    st.markdown("**The pairs that count most**")
    show_table(
        [
            {
                "First text": numbered(row, rows[row].label),
                "Second text": numbered(column, columns[column].label),
                "Contribution": matrix[row, column],
            }
            for row, column in zip(*np.unravel_index(largest, matrix.shape), strict=True)
            if matrix[row, column]
        ],
        "The pairs with the largest contributions",
        {"Contribution": NUMBER},
    )


def show_matches(found: Decomposition) -> None:
    """Draw, for each token of the first text, its best match."""
    best = np.abs(found.matrix).argmax(axis=1)  # (n_first,); the only nonzero value of a row is its match
    st.markdown("**Each token's best match**")
    show_table(
        [
            {
                "First text": numbered(row, token),
                "Second text": numbered(match, found.second.encoding.tokens[match]),
                "Cosine": found.matrix[row, match] * len(best),
            }
            for row, (token, match) in enumerate(zip(found.first.encoding.tokens, best.tolist(), strict=True))
        ],
        "The tokens of the first text, each with the token of the second that is most similar",
        {"Cosine": NUMBER},
    )
    st.caption(f"MaxSim is the mean of these {len(best)} cosines; ColBERT's own score is their sum.")


def show_won(
    winners: tuple[Array, Array], rows: Sequence[TextUnit], columns: Sequence[TextUnit], key: str
) -> None:
    """Draw how many dimensions of max pooling each part of the texts wins."""
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
                alt=f"Dimensions that each part of the {side} text won",
            )
    st.caption(
        "A dimension of the pooled vector is the value of one token, the one with the largest; grey bars are "
        "special tokens. A dimension's product goes to the pair of tokens that won it."
    )
