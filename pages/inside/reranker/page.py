"""Inside the cross-encoder: a pair's score, the words it rests on, and attention between the two texts."""

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st

from engine.inspection.model.reranking import ReadPair, WordEffect, read_pair, word_effects
from engine.models.reranker import Reranker
from ui.current import current_passage, follow, follow_question
from ui.documents import chosen_documents
from ui.export import show_figure
from ui.figures import heat_map, styled
from ui.models import load_encoder, reranker_name
from ui.progress import counting
from ui.reranker import reranker_picker
from ui.similarity.figures import colour_of
from ui.text import Strong, sentence_markdown, show_text
from ui.tokens import token_axis, token_labels
from ui.widgets import MOST_QUESTION, chapters, check_typed, slider

QUESTION = "What happens to text beyond the token limit?"
PASSAGE = "The encoder reads 256 tokens. What lies beyond is dropped without a word."
MAX_CHARACTERS = 5_000
WORDS, ATTENTION = "Without each word", "Attention between the texts"


def pair_boxes() -> tuple[str, str]:
    """Draw the boxes of the question and of the passage; return both."""
    key, passage = "reranker-passage", current_passage()
    texts = {document.name: document.text for document in chosen_documents()}
    if passage is not None and passage.document in texts:
        follow(key, passage, texts[passage.document][passage.start : passage.end])
    st.session_state.setdefault(key, PASSAGE)
    changed = follow_question("reranker-question", QUESTION)
    question = st.text_input("Question", key="reranker-question", persist_state="session", on_change=changed)
    text = st.text_area(
        "Passage",
        key=key,
        persist_state="session",
        height=100,
        help="The passage of the other pages, or any text. The model reads it with the question, up to its "
        "token limit.",
    )
    return check_typed(question, MOST_QUESTION), check_typed(text, MAX_CHARACTERS)


def finding(name: str, pair: ReadPair, effects: Sequence[WordEffect]) -> str:
    """Say in a sentence what the score is, and which word matters most."""
    words = f"{name} gives this pair {pair.score:.3f} (a logit of {pair.logit:+.2f})"
    if effects:
        most = max(effects, key=lambda each: abs(each.drop))
        change = "falls" if most.drop >= 0 else "rises"
        words += (
            f"; without “{most.word}” of the {most.side} the logit {change} by {abs(most.drop):.2f}, more "
            "than without any other word"
        )
    return sentence_markdown(Strong(f"{words}."))


@st.cache_data(max_entries=16, show_spinner=False)
def effects_of(name: str, question: str, passage: str, _reranker: Reranker) -> list[WordEffect]:
    """Leave out each word, with a progress bar; cached."""
    with counting("Leaving out words", "pairs read") as show:
        return word_effects(_reranker, question, passage, show)


def painted(text: str, effects: Sequence[WordEffect], largest: float) -> str:
    """Return a text as HTML, its words coloured by their effects: blue where they raise the score."""
    html, place = "", 0
    for each in effects:
        html += escape(text[place : each.start])
        style = colour_of(each.drop, largest or 1.0)
        html += f'<span title="{each.drop:+.3f}" style="{style}">{escape(each.word)}</span>'
        place = each.end
    return html + escape(text[place:])


def show_words(question: str, passage: str, effects: Sequence[WordEffect]) -> None:
    """Draw both texts, each word coloured by the fall of the logit without it."""
    largest = max((abs(each.drop) for each in effects), default=0.0)
    for side, text in (("question", question), ("passage", passage)):
        st.markdown(f"**{side.capitalize()}**")
        show_text(painted(text, [each for each in effects if each.side == side], largest), height=320)
    st.caption(
        "Blue words raise the score: without them it falls, the darker the further. Orange ones lower it. "
        "Each is left out by itself, with all others in place; what the token limit cuts off has no colour."
    )


def show_attention(pair: ReadPair, reranker: Reranker) -> None:
    """Draw what a head attends to in the passage, from each token of the question."""
    left, right = st.columns(2)
    last = reranker.config.n_layers - 1
    reason = "Counted from 0, the first after the embeddings."
    layer = slider("Layer", range(last + 1), last, "reranker-layer", reason, place=left)
    reason = "Heads attend to different tokens."
    head = slider("Head", range(reranker.config.n_heads), 0, "reranker-head", reason, place=right)
    weights, tokens = pair.attention(layer, head), pair.encoding.tokens
    asked, read = tokens[pair.question], tokens[pair.passage]
    rows, columns = token_labels(asked), token_labels(read)
    figure = heat_map(weights, rows, columns, "from %{y}<br>to %{x}<br>%{z:.4f}", ".2g", zmin=0)
    token_axis(figure.update_yaxes, len(rows), title="question")
    token_axis(figure.update_xaxes, len(columns), title="passage", tickangle=-60)
    show_figure(
        styled(figure, height=200 + 18 * len(rows)),
        name=f"reranker-layer{layer}-head{head}",
        arrays={"weights": weights, "question": np.array(asked), "passage": np.array(read)},
        alt=f"Attention of head {head} of layer {layer} from the question's tokens to the passage's",
    )
    shares = pair.trace[f"layers.{layer}.attention.weights"][:, pair.question, pair.passage].sum(axis=-1)
    st.caption(
        f"In this layer the question's tokens give the passage {shares.mean():.0%} of their attention, on "
        f"average over all heads ({shares[head].mean():.0%} in this one). An encoder that embeds each text "
        "by itself gives none: that is what reading both together adds."
    )


def main() -> None:
    """Draw the page."""
    with st.sidebar:
        reranker_picker()
    reranker = load_encoder().reranker
    if reranker is None:
        st.info(
            "No cross-encoder is loaded. Give a folder or a Hugging Face id under “Cross-encoder” in the "
            "sidebar, such as cross-encoder/ms-marco-MiniLM-L6-v2. It is then one of the retrievers, too.",
            icon=":material/compare_arrows:",
        )
        return
    result = st.container()
    question, passage = pair_boxes()
    if not question.strip() or not passage.strip():
        st.info("Type a question and a passage to see how they are read together.")
        return
    pair = read_pair(reranker, question, passage)
    n_whole = len(reranker.tokenizer.encode_pair(question, passage))
    if n_whole > len(pair.encoding):
        st.warning(
            f"Only {len(pair.encoding):,} of {n_whole:,} tokens are read, the limit of the model.",
            icon=":material/content_cut:",
        )
    effects = effects_of(reranker_name(), question, passage, reranker)
    result.markdown(finding(reranker_name(), pair, effects))
    if chapters((WORDS, ATTENTION), "reranker-chapter") == WORDS:
        show_words(question, passage, effects)
    else:
        show_attention(pair, reranker)


main()
