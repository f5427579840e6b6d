"""Pooling compared: the effect of each pooling on a text, a pair of texts, and a search."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from engine import Encoder
from pages.improve.poolings.examples import EXAMPLES, MAX_CHARACTERS, show_cut_notes
from pages.improve.poolings.pooled_chunks import PooledChunks, encoder_with_idf, pooled_chunks
from pages.improve.poolings.search import show_search
from pages.improve.poolings.sentences import show_sentences
from pages.improve.poolings.tokens import show_tokens
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.settings import chunks_sidebar
from ui.similarity.explained import CHAPTERS, show_explained
from ui.widgets import chapters, check_typed, example_choice, kept, show_tabs


def show_two_texts(encoder: Encoder, max_tokens: int) -> None:
    """Draw a pair of texts, and their similarity explained."""
    if pair := choose_pair(encoder, max_tokens):
        chapter = chapters(CHAPTERS, "pair-chapter")
        show_explained(encoder, max_tokens, *pair, "pair", chapter)


def choose_pair(encoder: Encoder, max_tokens: int) -> tuple[str, str] | None:
    """Draw the boxes of two texts; return the texts, or None if one is blank."""
    show_examples()
    left, right = st.columns(2)
    first, second = (
        column.text_area(
            label,
            **kept(f"pooling-pair-{number}"),
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


def show_question(pooled: PooledChunks) -> None:
    """Draw a search under every strategy, and the similarity of one passage explained."""
    if found := show_search(pooled):
        chapter = chapters(CHAPTERS, "passage-chapter")
        show_explained(pooled.encoder, pooled.max_tokens, *found, "passage", chapter)


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    documents, cut = chunks_sidebar(encoder)

    def draw_texts(show: Callable[[Encoder, int], None]) -> None:
        """Draw a view of texts, with the IDF weights of the documents, where there are any."""
        weighted = encoder_with_idf(documents, encoder, cut) if documents else None
        show(weighted or cut.encoder(encoder), cut.max_tokens)

    def draw_question() -> None:
        if not documents:
            raise NoDocumentError
        if weighted := encoder_with_idf(documents, encoder, cut):
            show_question(pooled_chunks(documents, weighted, cut))

    views: dict[str, Callable[[], None]] = {
        "Sentences": partial(draw_texts, show_sentences),
        "A pair explained": partial(draw_texts, show_two_texts),
        "Your question": draw_question,
        "Tokens": partial(draw_texts, show_tokens),
    }
    show_tabs(views, "pooling-tab")


main()
