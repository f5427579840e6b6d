"""Inside the reranker: a pair's score, the words it rests on, attention between the texts; or the reader."""

from collections.abc import Sequence

import streamlit as st
from streamlit.column_config import NumberColumn

from engine.inspection.model.reading import best_words
from engine.inspection.model.reranking import ReadPair, WordEffect, read_pair, word_effects
from engine.models.reader import Reader
from engine.models.reranker import Reranker
from engine.retrieval.index import Hit
from engine.wording import beginning, counted
from ui.asking import last_answer
from ui.export import show_figure
from ui.figures import token_map
from ui.models import load_encoder, second_name
from ui.pair_boxes import pair_boxes
from ui.progress import counting
from ui.reading import reader_or_reason, show_scores, windows_of
from ui.second_models import default_button, second_model_picker, show_load_error
from ui.similarity.figures import painted_parts
from ui.tables import show_table
from ui.text import Strong, escape_markdown, sentence_markdown, show_text
from ui.widgets import chapters, choice, slider

WORDS, ATTENTION = "Without each word", "Attention between the texts"


def headline(name: str, pair: ReadPair, effects: Sequence[WordEffect]) -> str:
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


def show_words(question: str, passage: str, effects: Sequence[WordEffect]) -> None:
    """Draw both texts, each word coloured by the fall of the logit without it."""
    largest = max((abs(each.drop) for each in effects), default=0.0)
    for side, text in (("question", question), ("passage", passage)):
        st.markdown(f"**{side.capitalize()}**")
        drops = [(each.start, each.end, each.drop) for each in effects if each.side == side]
        show_text(painted_parts(text, drops, largest), height=320)
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
    show_figure(
        token_map(weights, asked, read, ("question", "passage")),
        name=f"reranker-layer{layer}-head{head}",
        alt=f"Attention of head {head} of layer {layer} from the question's tokens to the passage's",
    )
    shares = pair.trace[f"layers.{layer}.attention.weights"][:, pair.question, pair.passage].sum(axis=-1)
    st.caption(
        f"In this layer the question's tokens give the passage {shares.mean():.0%} of their attention, on "
        f"average over all heads ({shares[head].mean():.0%} in this one). An encoder that embeds each text "
        "by itself gives none: that is what reading both together adds."
    )


def show_reader() -> None:
    """Draw the reader as the reranker of the last search, or without one of a pair that is typed."""
    st.caption(
        "No cross-encoder is loaded, so this is the reader, which is always here: a passage's score is that "
        "of its best words over no answer. To load one, give a folder or a Hugging Face id under "
        "“Cross-encoder” in the sidebar, such as cross-encoder/ms-marco-MiniLM-L6-v2. Both are retrievers, "
        "too."
    )
    default_button("reranker", "page")
    show_load_error("reranker")
    if (reader := reader_or_reason()) is None:
        return
    answer = last_answer()
    if answer and answer.retrieved.hits:
        question, passage = answer.question, ranked_passage(answer.question, answer.retrieved.hits, reader)
    else:
        question, passage = pair_boxes("reranker")
        if not question.strip():
            st.info("Type a question and a passage to see how they are read together.")
            return
    words = best_words(question, passage, windows_of(question, passage, reader))
    if words is None:
        st.info("No words of this passage can be an answer: it is blank, or holds only questions.")
        return
    show_scores(question, passage, words, reader)


def ranked_passage(question: str, hits: Sequence[Hit], reader: Reader) -> str:
    """Draw the passages of a search in the reader's order; return the one that is picked, first the best."""
    st.header(escape_markdown(question))
    scores = scores_of(question, tuple(hit.chunk.text for hit in hits), reader)
    order = sorted(range(len(hits)), key=lambda place: -scores[place])
    rows = [
        {
            "After": after,
            "Before": before + 1,
            "Reader's score": scores[before],
            "Document": hits[before].chunk.document,
            "Passage": beginning(hits[before].chunk.text, 70),
        }
        for after, before in enumerate(order, start=1)
    ]
    st.markdown(sentence_markdown(Strong(moved_words(order))))
    show_table(rows, "Passages in the reader's order", {"Reader's score": NumberColumn(format="%+.2f")})
    place = choice(
        "Passage",
        order,
        f"reranker-reader-{question}-{len(order)}-{order[0]}",
        format_func=lambda each: f"{order.index(each) + 1} · {beginning(hits[each].chunk.text, 60)}",
        as_list=True,
    )
    return hits[place].chunk.text


def moved_words(order: Sequence[int]) -> str:
    """Say how the order of a search changes; ``order`` are the former places, from 0, in the new one."""
    n_moved = sum(before != after for after, before in enumerate(order))
    if not n_moved:
        return "The reader leaves the passages in the order in which the search found them."
    first = "the first stays" if order[0] == 0 else f"the first was number {order[0] + 1} of the search"
    return f"The reader moves {n_moved} of {counted(len(order), 'passage')}: {first}."


@st.cache_data(max_entries=16, show_spinner="Reading the passages…")
def scores_of(question: str, passages: tuple[str, ...], _reader: Reader) -> list[float]:
    """Score passages by their best words over no answer; cached."""
    return _reader.score(question, passages).tolist()


def main() -> None:
    """Draw the page."""
    with st.sidebar:
        second_model_picker("reranker")
    reranker = load_encoder().reranker
    if reranker is None:
        show_reader()
        return
    result = st.container()
    question, passage = pair_boxes("reranker")
    if not question.strip() or not passage.strip():
        st.info("Type a question and a passage to see how they are read together.")
        return
    pair = read_pair(reranker, question, passage)
    n_whole = len(reranker.read(question, passage, is_whole=True))
    if n_whole > len(pair.encoding):
        st.warning(
            f"Only {len(pair.encoding):,} of {n_whole:,} tokens are read, the limit of the model.",
            icon=":material/content_cut:",
        )
    effects = effects_of(second_name("reranker"), question, passage, reranker)
    result.markdown(headline(second_name("reranker"), pair, effects))
    if chapters((WORDS, ATTENTION), "reranker-chapter") == WORDS:
        show_words(question, passage, effects)
    else:
        show_attention(pair, reranker)


main()
