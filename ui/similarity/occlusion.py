"""The effect of each word on a similarity: its own share, and the fall of the similarity without it."""

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.pooling.occlusion import Occlusion, Side, occlusion
from engine.inspection.pooling.similarity_decomposition import Decomposition
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.maxsim import MAXSIM
from ui.export import show_figure
from ui.progress import counting
from ui.similarity.figures import NUMBER, TEXT_HEIGHT, numbered, occlusion_figure, painted
from ui.tables import show_table
from ui.text import show_text
from ui.widgets import choice

SIDES: dict[Side, str] = {"second": "the second text", "first": "the first text"}
MOST_WORDS = 10


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
    show_both_paintings(found, left_out, side)
    show_figure(
        occlusion_figure(left_out),
        name=f"{key}-left-out",
        arrays={
            "word": np.array([word.label for word in left_out.words]),
            "share": left_out.shares,
            "fall": left_out.drops,
        },
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
    st.metric(
        "Rank correlation of the two views",
        f"{left_out.agreement.spearman:+.2f}",
        help="Spearman's: 1 if both put the words in the same order, 0 if they are unrelated, -1 if one "
        "order is the reverse of the other.",
        width="content",
    )
    st.caption(
        f"Over {len(left_out.words)} words. The share is exact for these vectors; the fall without a word "
        "also counts its influence on the vectors of all others, special tokens included."
    )


def show_both_paintings(found: Decomposition, left_out: Occlusion, side: Side) -> None:
    """Draw the text coloured by both views."""
    read = found.first if side == "first" else found.second
    for column, values, title, name in zip(
        st.columns(2, gap="medium"),
        (left_out.shares, left_out.drops),
        ("By its own share", "By the fall without it"),
        ("share", "fall"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            show_text(painted(read, left_out.words, values, name), height=TEXT_HEIGHT)


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
