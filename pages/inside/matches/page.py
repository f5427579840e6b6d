"""Words and tokens that match: what a learned sparse model adds to two texts, and late interaction."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn

from engine import Encoder
from engine.inspection.model.matches import (
    ExpandedText,
    SharedWord,
    TokenMatches,
    expanded_text,
    shared_words,
    token_matches,
)
from engine.layers.tracing import Array
from engine.models.multi_vector import PlacedToken
from engine.models.sparse_encoder import SparseEncoder
from engine.wording import counted, model_name
from ui.export import show_figure
from ui.figures import token_map
from ui.models import load_encoder
from ui.pair_boxes import pair_boxes
from ui.second_models import default_button, second_model_picker, show_load_error
from ui.similarity.figures import painted_parts
from ui.tables import show_table
from ui.text import Strong, escape_markdown, sentence_markdown, show_text
from ui.widgets import show_tabs

WORDS, TOKENS = "Words: learned sparse", "Tokens: late interaction"
MOST_WORDS = 30  # in a table
WEIGHT = NumberColumn(format="%.2f")


def show_words(model: SparseEncoder, question: str, passage: str) -> None:
    """Draw the words that carry the match, and those that each text was expanded by."""
    asked, read = expanded_text(model, question, "query"), expanded_text(model, passage, "document")
    shared = shared_words(asked, read)
    st.markdown(sentence_markdown(Strong(words_finding(shared))))
    n_words = counted(model.transformer.config.vocab_size, "word")
    st.caption(
        f"The model gives each of {n_words} of its vocabulary a weight, at each token by what might stand "
        "there; most are 0. The score is the sum, over the words of both texts, of the products."
    )
    by_token = [np.zeros(len(asked.tokens)), np.zeros(len(read.tokens))]
    for each in shared:
        by_token[0][each.question.token] += each.adds
        by_token[1][each.passage.token] += each.adds
    show_both(((question, asked.tokens, by_token[0]), (passage, read.tokens, by_token[1])))
    st.caption("The darker a token, the more the words add to the score that come from it.")
    if shared:
        rows = [
            {
                "Word": each.question.word,
                "Adds": each.adds,
                "In the question": each.question.weight,
                "In the passage": each.passage.weight,
                "Stands in": each.place,
            }
            for each in shared[:MOST_WORDS]
        ]
        columns = dict.fromkeys(("Adds", "In the question", "In the passage"), WEIGHT)
        show_table(rows, f"Words that carry the match{of_all(len(shared))}", columns)
    st.subheader("What each text was expanded by")
    for place, title, text in zip(st.columns(2), ("Question", "Passage"), (asked, read), strict=True):
        with place:
            show_expansion(title, text)


def words_finding(shared: Sequence[SharedWord]) -> str:
    """Say in a sentence which word carries most, and how many stand in neither text."""
    if not shared:
        return "The two texts share no word, not even one that the model added: the score is 0."
    score, most = sum(each.adds for each in shared), shared[0]
    n_added = sum(each.place != "question and passage" for each in shared)
    return (
        f"“{most.question.word}” carries {most.adds / score:.0%} of the score of {score:.1f}, which "
        f"{counted(len(shared), 'word')} in common add up to; {n_added} of them the model added to one text "
        "or to both."
    )


def show_expansion(title: str, text: ExpandedText) -> None:
    """Draw the words of one text."""
    n_own = sum(each.stands_in_text for each in text.words)
    st.markdown(f"**{title}**")
    st.caption(f"{counted(len(text.words), 'word')}, {n_own} of which stand in the text.")
    rows = [
        {
            "Word": each.word,
            "Weight": each.weight,
            "From the token": text.tokens[each.token].token,
            "Added": "" if each.stands_in_text else "yes",
        }
        for each in text.words[:MOST_WORDS]
    ]
    if rows:
        show_table(rows, f"{title}: words{of_all(len(text.words))}", {"Weight": WEIGHT})


def of_all(n_words: int) -> str:
    """Say that a table holds the first of more words."""
    return f", the first {MOST_WORDS} of {n_words}" if n_words > MOST_WORDS else ""


def show_tokens(found: TokenMatches, question: str, passage: str) -> None:
    """Draw the best match of each of the question's tokens, on both texts and as a map of all pairs."""
    best, cosines = found.best, found.cosines.max(axis=1)
    st.markdown(sentence_markdown(Strong(tokens_finding(found))))
    from_passage = np.bincount(best, np.maximum(cosines, 0), minlength=len(found.passage))
    show_both(((question, found.question, cosines), (passage, found.passage, from_passage)))
    st.caption(
        "Of the question, a token is the darker the better its best match; of the passage, the more it adds "
        "as the best match of the question's tokens."
    )
    names = [token.token for token in found.question], [token.token for token in found.passage]
    show_figure(
        token_map(found.cosines, *names, ("question", "passage")),
        name="token-matches",
        alt="Cosine of each token of the question with each of the passage",
    )
    rows = [
        {"Question": token.token, "Best match": found.passage[place].token, "Cosine": cosine}
        for token, place, cosine in zip(found.question, best.tolist(), cosines.tolist(), strict=True)
    ]
    show_table(rows, "The best match of each token of the question", {"Cosine": WEIGHT})


def tokens_finding(found: TokenMatches) -> str:
    """Say in a sentence what the score is made of."""
    added = sum(token.start == token.end for token in found.question)
    return (
        f"The {counted(len(found.question), 'token')} of the question find matches of {found.score:.2f} "
        f"together, {found.score / len(found.question):.2f} on average; {added} of them stand for no "
        "characters of it, such as [CLS] and the [MASK] that fill it up."
    )


def show_both(texts: Sequence[tuple[str, Sequence[PlacedToken], Array]]) -> None:
    """Draw question and passage, each token coloured by its value ``(n_tokens,)``."""
    for title, (text, tokens, values) in zip(("Question", "Passage"), texts, strict=True):
        st.markdown(f"**{title}**")
        pairs = zip(tokens, values.tolist(), strict=True)
        parts = [(token.start, token.end, value) for token, value in pairs if token.start < token.end]
        show_text(painted_parts(text, parts, max((value for *_, value in parts), default=0.0)), height=320)


def show_words_tab(encoder: Encoder, question: str, passage: str) -> None:
    """Draw the match by the learned sparse model, or the button that loads one."""
    if encoder.sparse is not None:
        st.caption(f"By {escape_markdown(model_name(encoder.sparse.name))}.")
        show_words(encoder.sparse, question, passage)
        return
    st.info(
        "No learned sparse model is loaded. With one, this page shows the words that it adds to a question "
        "and a passage, and those that carry their match; it is a retriever, too."
    )
    default_button("sparse", "page")
    show_load_error("sparse")


def show_tokens_tab(encoder: Encoder, question: str, passage: str) -> None:
    """Draw the match by the late-interaction model, or else by the encoder's own token vectors."""
    if encoder.multi_vector is not None:
        st.caption(f"By {escape_markdown(model_name(encoder.multi_vector.name))}.")
    else:
        st.caption(
            "No late-interaction model is loaded, so these are the token vectors of the encoder, by which "
            "the retriever MaxSim reorders. To load one, give a folder or a Hugging Face id in the sidebar, "
            "such as colbert-ir/colbertv2.0."
        )
    show_tokens(token_matches(encoder.multi_vector or encoder, question, passage), question, passage)


def main() -> None:
    """Draw the page."""
    with st.sidebar:
        second_model_picker("sparse", "multi_vector")
    encoder = load_encoder()
    question, passage = pair_boxes("matches")
    if not question.strip() or not passage.strip():
        st.info("Type a question and a passage to see what of them matches.")
        return
    tabs = {
        WORDS: partial(show_words_tab, encoder, question, passage),
        TOKENS: partial(show_tokens_tab, encoder, question, passage),
    }
    show_tabs(tabs, "matches-tab")


main()
