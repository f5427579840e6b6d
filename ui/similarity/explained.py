"""The similarity of two texts explained: the contribution of each pair of their tokens."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import Encoder
from engine.errors import GlassboxError
from engine.inspection.pooling.occlusion import Occlusion, Side, occlusion
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
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.maxsim import MAXSIM
from ui.export import show_figure
from ui.progress import counting
from ui.similarity.figures import (
    NUMBER,
    TEXT_HEIGHT,
    contribution_map,
    numbered,
    occlusion_figure,
    painted,
    won_bars,
)
from ui.tables import show_table
from ui.text import escape_markdown, show_text
from ui.tokens import LABELLED_TOKENS
from ui.widgets import choice, show_metrics

WHAT_MAXSIM = (
    "No pooling: each token of the first text is matched with the most similar token of the second, and the "
    "cosines of the matches are averaged. It is not symmetric: the first text is the question."
)
LEVELS: tuple[UnitLevel, ...] = ("tokens", "words", "sentences")
SIDES: dict[Side, str] = {"second": "the second text", "first": "the first text"}
MOST_PAIRS, MOST_WORDS = 10, 10
BOTH_TEXTS, PAIRS, WITHOUT_WORDS = CHAPTERS = ("Both texts", "Pair by pair", "Without each word")


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
    if chapter == WITHOUT_WORDS:
        show_left_out(encoder, max_tokens, found, key)
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
                f"The {side} text is cut: its last {read.tokens_truncated:,} tokens are beyond the limit of "
                f"{len(read.encoding):,} and do not count. They are struck through below."
            )


def show_painted(found: Decomposition, rows: Sequence[TextUnit], columns: Sequence[TextUnit]) -> None:
    """Draw both texts coloured by contribution, with a table of the shares of special tokens."""
    first, second = found.matrix.sum(axis=1), found.matrix.sum(axis=0)  # (n_first,), (n_second,)
    show_paintings(
        ("First text", found.first, rows, unit_sums(first, rows), "share"),
        ("Second text", found.second, columns, unit_sums(second, columns), "share"),
    )
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


def show_paintings(*paintings: tuple[str, TokenizedText, Sequence[TextUnit], Array, str]) -> None:
    """Draw two texts side by side, each with its title, and the arguments of `painted`."""
    for column, (title, read, units, values, name) in zip(
        st.columns(2, gap="medium"), paintings, strict=True
    ):
        with column:
            st.markdown(f"**{title}**")
            show_text(painted(read, units, values, name), height=TEXT_HEIGHT)


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


def show_left_out(encoder: Encoder, max_tokens: int, found: Decomposition, key: str) -> None:
    """Draw the fall of the similarity without each word, and the words' own shares."""
    side = choice(
        "Words of",
        list(SIDES),
        f"{key}-side",
        "The text whose words are left out; the other is unchanged. It is encoded again without each "
        "of its words: a token's vector depends on all other tokens, so the effect of a word is more, or "
        "less, than its own vector's share.",
        format_func=SIDES.__getitem__,
    )
    pooling = "mean" if found.strategy == MAXSIM else found.strategy
    spec = embedding_spec(encoder, pooling, max_tokens)
    left_out = words_left_out(found, side, spec, encoder)
    if not left_out.words:
        st.info("This text has no words to leave out.")
        return
    show_agreement(left_out)
    read, words = found.first if side == "first" else found.second, left_out.words
    show_paintings(
        ("By its own share", read, words, left_out.shares, "share"),
        ("By the fall without it", read, words, left_out.drops, "fall"),
    )
    show_figure(
        occlusion_figure(left_out),
        name=f"{key}-left-out",
        alt="Each word's own share of the similarity, and the fall of the similarity without it",
    )
    show_disagreements(left_out)


@st.cache_resource(
    max_entries=8,
    show_spinner=False,
    scope="session",
    hash_funcs={Decomposition: lambda found: (found.first.text, found.second.text, found.strategy)},
)
def words_left_out(found: Decomposition, side: Side, spec: EmbeddingSpec, _encoder: Encoder) -> Occlusion:
    """Leave out each word of one text, with a progress bar; ``spec`` is that of the encoder."""
    with counting("Leaving out words", "texts encoded") as show:
        return occlusion(_encoder, found, side, show)


def show_agreement(left_out: Occlusion) -> None:
    """Draw the rank correlation of own shares and falls."""
    if left_out.agreement is None:
        same = "all words have the same share" if np.ptp(left_out.shares) == 0 else "there are too few words"
        st.info(f"No rank correlation of the two views: {same}.", icon=":material/query_stats:")
        return
    reason = (
        "Spearman's: 1 if both put the words in the same order, 0 if they are unrelated, -1 if one order is "
        "the reverse of the other."
    )
    show_metrics({"Rank correlation of the two views": (f"{left_out.agreement.spearman:+.2f}", None, reason)})
    st.caption(
        f"Over {len(left_out.words)} words. The share is exact for these vectors; the fall without a word "
        "also counts its influence on the vectors of all others, special tokens included."
    )


def show_disagreements(left_out: Occlusion) -> None:
    """Draw the words whose ranks differ most between the two views."""
    differences = left_out.rank_differences
    by_share, by_fall = left_out.ranks
    st.markdown("**Where the two views differ**")
    show_table(
        [
            {
                "Word": numbered(number + 1, left_out.words[number].label),
                "Rank by share": by_share[number],
                "Rank by fall": by_fall[number],
                "Own share": left_out.shares[number],
                "Fall without it": left_out.drops[number],
            }
            for number in np.argsort(-np.abs(differences), kind="stable")[:MOST_WORDS].tolist()
        ],
        "The words with the largest difference of ranks",
        {"Own share": NUMBER, "Fall without it": NUMBER},
    )
