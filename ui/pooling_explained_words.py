"""What each word of a text is worth to a similarity: its own share, and the fall without it."""

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.occlusion import Occlusion, Side, occlusion
from engine.inspection.similarity import Contributions
from engine.retrieval.maxsim import MAXSIM
from engine.retrieval.vector_kind import VectorKind
from ui.export import show_figure
from ui.pooling_explained_figures import NUMBER, TEXT_HEIGHT, numbered, occlusion_figure, painted
from ui.text import show_text

SIDES: dict[Side, str] = {"second": "the second text", "first": "the first text"}
MOST_WORDS = 10


def show_left_out(encoder: Encoder, max_tokens: int, found: Contributions, key: str) -> None:
    """Draw what is lost without each word, beside the words' own shares."""
    if not st.toggle(
        "Leave out each word",
        key=f"{key}-leave-out",
        persist_state="session",
        help="Encodes the text again without each of its words, once a word. A token's vector has read all "
        "other tokens, so a word is worth more, or less, than its own vector's share.",
    ):
        return
    side: Side = st.segmented_control(
        "Words of",
        list(SIDES),
        default="second",
        required=True,
        format_func=SIDES.__getitem__,
        key=f"{key}-side",
        persist_state="session",
        help="The text whose words are left out; the other stays as it is.",
    )
    pooling = "mean" if found.strategy == MAXSIM else found.strategy
    kind = VectorKind.of(encoder, pooling, max_tokens)
    texts = found.first.text, found.second.text
    left_out = words_left_out(texts, found.strategy, side, kind, encoder, found)
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
            "fall": left_out.falls,
        },
        alt="Each word's own share of the similarity, and the fall of the similarity without it",
    )
    show_disagreements(left_out)


@st.cache_resource(max_entries=8, show_spinner=False, scope="session")
def words_left_out(
    texts: tuple[str, str],
    strategy: str,
    side: Side,
    kind: VectorKind,
    _encoder: Encoder,
    _found: Contributions,
) -> Occlusion:
    """Leave out each word once for two texts, a strategy and a side, with progress."""
    bar = st.progress(0.0, "Leaving out words…")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"Leaving out words: {done:,} of {total:,} texts encoded")

    try:
        return occlusion(_encoder, _found, side, show)
    finally:
        bar.empty()


def show_agreement(left_out: Occlusion) -> None:
    """Say how far own shares and falls agree."""
    if left_out.agreement is None:
        same = "all words have the same share" if np.ptp(left_out.shares) == 0 else "there are too few words"
        st.info(f"No rank correlation of the two views: {same}.", icon=":material/query_stats:")
        return
    st.metric(
        "Rank correlation of the two views",
        f"{left_out.agreement.spearman:+.2f}",
        help="Spearman's: 1 where both put the words in the same order, 0 where they have nothing to do with "
        "each other, -1 where one is the other turned round.",
        width="content",
    )
    st.caption(
        f"Over {len(left_out.words)} words. The share is exact for the vectors as they are; what is lost "
        "without a word also counts what it gave to the vectors of all others, [CLS] and [SEP] included."
    )


def show_both_paintings(found: Contributions, left_out: Occlusion, side: Side) -> None:
    """Draw the text by either view."""
    read = found.first if side == "first" else found.second
    for column, values, title, name in zip(
        st.columns(2, gap="medium"),
        (left_out.shares, left_out.falls),
        ("By its own share", "By the fall without it"),
        ("share", "fall"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            show_text(painted(read, left_out.words, values, name), height=TEXT_HEIGHT)


def show_disagreements(left_out: Occlusion) -> None:
    """Draw the words that the two views put at the most different ranks."""
    differences = left_out.rank_differences
    by_share, by_fall = left_out.ranks
    st.markdown("**Where the two views part**")
    st.dataframe(
        [
            {
                "Word": numbered(number + 1, left_out.words[number].label),
                "Rank by share": by_share[number],
                "Rank by fall": by_fall[number],
                "Own share": left_out.shares[number],
                "Fall without it": left_out.falls[number],
            }
            for number in np.argsort(-np.abs(differences), kind="stable")[:MOST_WORDS].tolist()
        ],
        hide_index=True,
        column_config={"Own share": NUMBER, "Fall without it": NUMBER},
        alt="The words with the largest difference of ranks",
    )
