"""Pooling compared: the effect of each pooling on a text, a pair of texts, and a search."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from engine import Encoder
from engine.documents.document import Document
from pages.improve.poolings.mistakes import show_mistakes
from pages.improve.poolings.pair import choose_pair, show_bars
from pages.improve.poolings.pooled_chunks import PooledChunks, chunks_and_encoder, pooled_chunks
from pages.improve.poolings.search import show_search
from pages.improve.poolings.sentences import show_sentences
from pages.improve.poolings.sts import show_sts
from pages.improve.poolings.tokens import show_tokens
from ui.chunk_settings import Cut
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.settings import chunks_sidebar
from ui.similarity.explained import CHAPTERS, show_explained
from ui.widgets import chapters, show_tabs

EVERY_POOLING = "Under every pooling"


def show_two_texts(encoder: Encoder, max_tokens: int) -> None:
    """Draw a pair of texts under every strategy, and their similarity explained."""
    if (pair := choose_pair(encoder, max_tokens)) is None:
        return
    chapter = chapters((EVERY_POOLING, *CHAPTERS), "pair-chapter")
    if chapter == EVERY_POOLING:
        show_bars(*pair, encoder, max_tokens)
    else:
        show_explained(encoder, max_tokens, *pair, "pair", chapter)


def show_question(pooled: PooledChunks) -> None:
    """Draw a search under every strategy, and the similarity of one passage explained."""
    if found := show_search(pooled):
        chapter = chapters(CHAPTERS, "passage-chapter")
        show_explained(pooled.encoder, pooled.max_tokens, *found, "passage", chapter)


OF_TEXTS: dict[str, Callable[[Encoder, int], None]] = {
    "Sentences": show_sentences,
    "A pair explained": show_two_texts,
    "Tokens": show_tokens,
    "Scored pairs": show_sts,
}
OF_DOCUMENTS: dict[str, Callable[[PooledChunks], None]] = {
    "Your question": show_question,
    "Mistakes": show_mistakes,
}
VIEWS = ("Sentences", "A pair explained", "Your question", "Tokens", "Mistakes", "Scored pairs")


def show_view(view: str, documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw one view; those of texts take the IDF weights of the documents, where there are any."""
    if view in OF_TEXTS:
        weighted = chunks_and_encoder(documents, encoder, cut)[1] if documents else encoder
        OF_TEXTS[view](weighted, cut.max_tokens)
    elif documents:
        without = replace(cut, prompts="none") if view == "Mistakes" else cut  # its texts have no prompts
        OF_DOCUMENTS[view](pooled_chunks(documents, encoder, without))
    else:
        raise NoDocumentError


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    documents, cut = chunks_sidebar(encoder)
    show_tabs({view: partial(show_view, view, documents, encoder, cut) for view in VIEWS}, "pooling-tab")


main()
