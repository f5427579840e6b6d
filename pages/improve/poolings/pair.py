"""The similarity of two texts under every pooling."""

import numpy as np
import streamlit as st

from engine import Encoder
from engine.layers.pooling import pooling_label
from engine.retrieval.maxsim import maxsim_scores
from pages.improve.poolings.examples import EXAMPLES, MAX_CHARACTERS, show_cut_notes
from pages.improve.poolings.sentences import cosines_of, show_weightless
from pages.improve.poolings.similarity_figures import pair_bars
from ui.export import show_figure
from ui.text import escape_markdown
from ui.widgets import check_typed, example_choice

FORWARD, BACK = "MaxSim, 1 looked up in 2", "MaxSim, 2 looked up in 1"
UNRELATED = tuple(example.sentences[0] for example in EXAMPLES.values())


def choose_pair(encoder: Encoder, max_tokens: int) -> tuple[str, str] | None:
    """Draw the boxes of two texts; return the texts, or None if one is blank."""
    show_examples()
    left, right = st.columns(2)
    first, second = (
        column.text_area(
            label,
            key=f"pooling-pair-{number}",
            persist_state="session",
            height=80,
            help="Leave the box, or press Ctrl + Enter, to compare.",
        )
        for number, (column, label) in enumerate(((left, "First text"), (right, "Second text")))
    )
    for text in (first, second):
        check_typed(text, MAX_CHARACTERS)
    if not first.strip() or not second.strip():
        st.info("Write a text in both boxes to compare them.", icon=":material/notes:")
        return None
    show_cut_notes([first, second], encoder, max_tokens, "Text")
    return first, second


def show_examples() -> None:
    """Draw the choice of an example, which fills the boxes."""
    pairs = {
        f"{name}: {kind}": (example.sentences[0], example.sentences[other])
        for name, example in EXAMPLES.items()
        for kind, other in (("alike", 1), ("unlike", 2))
    }

    def load(name: str) -> None:
        st.session_state.update({f"pooling-pair-{number}": text for number, text in enumerate(pairs[name])})

    if "pooling-pair-0" not in st.session_state:
        load(next(iter(pairs)))
    example_choice(
        list(pairs),
        "pooling-pair-example",
        load,
        "Try a pair",
        "Fills both boxes. “Alike” and “unlike” describe the meaning, not the result of a model.",
        as_list=True,
    )


def show_bars(first: str, second: str, encoder: Encoder, max_tokens: int) -> None:
    """Draw the cosine of two texts under each strategy, and the mean of unrelated sentences."""
    if first == second:
        st.info("The two texts are the same, so their cosine is 1 under every strategy.")
    show_weightless([first, second], encoder, max_tokens, "text")
    cosines, unrelated = similarities_of_pair((first, second), encoder, max_tokens)
    above = {label: cosine - unrelated[label] for label, cosine in cosines.items()}
    best, least = max(above, key=above.__getitem__), min(above, key=above.__getitem__)
    st.markdown(
        f"Each strategy has its own level, so compare with the diamond, the mean over pairs of "
        f"{len(UNRELATED)} sentences on different subjects. These two lie farthest above it under "
        f"**{escape_markdown(best)}** ({above[best]:+.2f}), least under **{escape_markdown(least)}** "
        f"({above[least]:+.2f})."
    )
    show_figure(
        pair_bars(cosines, unrelated, (FORWARD, BACK)),
        "pooling-pair",
        "Cosine of the two texts under each strategy. "
        + "; ".join(f"{label}: {cosine:.3f}" for label, cosine in cosines.items()),
    )
    st.caption(
        "MaxSim pools nothing: every token of one text takes its best match among those of the other, and "
        "the cosines are averaged. Which text is looked up in which makes a difference."
    )


def similarities_of_pair(
    texts: tuple[str, str], encoder: Encoder, max_tokens: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the cosine of two texts, and the mean of unrelated sentences, by the strategies' labels."""
    own, others = (cosines_of(each, encoder, max_tokens) for each in (texts, UNRELATED))
    cosines = {pooling_label(strategy): float(own[strategy][0, 1]) for strategy in encoder.poolings}
    unrelated = {pooling_label(strategy): off_diagonal(others[strategy]) for strategy in encoder.poolings}
    matches = maxsim_scores(texts, texts, encoder, max_tokens)
    cosines |= {FORWARD: float(matches[0, 1]), BACK: float(matches[1, 0])}
    level = off_diagonal(maxsim_scores(UNRELATED, UNRELATED, encoder, max_tokens))
    return cosines, unrelated | {FORWARD: level, BACK: level}


def off_diagonal(scores: np.ndarray) -> float:
    """Mean of a square matrix without its diagonal."""
    return float(scores[~np.eye(len(scores), dtype=bool)].mean())
