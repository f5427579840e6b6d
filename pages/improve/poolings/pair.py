"""The choice of two texts whose similarity is explained."""

import streamlit as st

from engine import Encoder
from pages.improve.poolings.examples import EXAMPLES, MAX_CHARACTERS, show_cut_notes
from ui.widgets import check_typed, example_choice


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
