"""The reader's answer: the scores of its tokens, what parts of the texts add, attention to the question."""

from collections.abc import Sequence
from math import isnan

import streamlit as st
from streamlit.column_config import NumberColumn

from engine.documents.sentences import sentence_spans
from engine.generation.answer import Answer
from engine.generation.reading import AnswerSpan, read_passages
from engine.inspection.model.reading import (
    WORD,
    AnswerAttention,
    Characters,
    PartEffect,
    answer_attention,
    answer_tokens,
    best_words,
    without_sentences,
    without_words,
)
from engine.models.reader import Reader
from engine.wording import beginning, readable_time, shortened
from ui.export import show_figure
from ui.figures import layer_head_map, token_map
from ui.reading import WORDS_SHOWN, reader_or_reason, show_scores, windows_of
from ui.similarity.figures import painted_parts
from ui.tables import show_table
from ui.text import Strong, sentence_markdown, show_text
from ui.widgets import chapters, choice, slider

SCORES, PARTS, ATTENTION = "Start and end", "Without each part", "Attention"
TO_QUESTION, TO_ANSWER = "Answer to question", "Question to answer"
QUICK_S = 2.0  # what takes longer waits for a button
ROWS, CELL = 8, 36  # of a table, and characters of a cell that stays on a line
LOGIT = NumberColumn(format="%+.2f")
COLUMNS = {
    "Start": LOGIT,
    "End": LOGIT,
    "Over no answer": NumberColumn(format="%+.2f", help="Start and end, less the scores of [CLS] there."),
    "In all": NumberColumn(
        format="%+.2f",
        help="Over no answer, less what the sentence of the words is behind the best sentence, weighted. The "
        "answer is the first by this.",
    ),
}


def show_reading(answer: Answer) -> None:
    """Draw the reader's answer from inside, by the passage that is picked."""
    if (reader := reader_or_reason()) is None:
        return
    question, hits = answer.question, answer.retrieved.hits
    spans = answer.spans or read_passages(answer.question, answer.retrieved.hits, reader, answer.evidence)
    if spans and (reason := reason_not_given(answer)):
        st.info(reason, icon=":material/info:")
    first = spans[0].place if spans else 0
    places = [first, *(place for place in range(len(hits)) if place != first)]
    place = choice(
        "Passage, by its rank",
        places,
        f"reading-passage-{question}-{len(places)}-{first}",
        "All that were read, the one with the best words first.",
        format_func=lambda n: (
            f"{n + 1} · {shortened(hits[n].chunk.document, 24)} · {beginning(hits[n].chunk.text, 60)}"
        ),
        as_list=True,
    )
    text = hits[place].chunk.text
    own = next((characters(span, answer) for span in spans if span.place == place), None)
    words = own or best_words(question, text, windows_of(question, text, reader))
    if words is None:
        st.info("No words of this passage can be an answer: it is blank, or holds only questions.")
        return
    chapter = chapters((SCORES, PARTS, ATTENTION), "reading-chapter")
    if chapter == SCORES:
        show_scores(question, text, words, reader)
        show_others(answer, spans, reader)
    elif chapter == PARTS:
        show_parts(question, text, words, reader, answer.timed.reader_s / len(hits))
    else:
        show_attention(question, text, words, reader)


def reason_not_given(answer: Answer) -> str:
    """Say why the reader's words are not given as the answer, empty where they are."""
    if answer.reading:
        return ""
    if not answer.is_english:
        reason = "The reader was trained on English, and question or passages are not"
    elif answer.judged.status == "refused":
        reason = "The answer was refused"
    elif answer.spans:
        reason = "A few words cannot answer a question such as this one"
    else:
        reason = "The question was answered without the reader"
    return f"{reason}: its best words, which are not shown as the answer, are these."


def characters(span: AnswerSpan, answer: Answer) -> Characters:
    """Return the place of words in their passage."""
    start = answer.retrieved.hits[span.place].chunk.start
    return span.start - start, span.end - start


def show_others(answer: Answer, spans: Sequence[AnswerSpan], reader: Reader) -> None:
    """List the best words of all passages with their logits."""
    rows = []
    for span in spans:
        windows = windows_of(answer.question, answer.retrieved.hits[span.place].chunk.text, reader)
        if found := answer_tokens(windows, characters(span, answer)):
            rows.append(
                {
                    "Words": beginning(span.text, CELL),
                    "Passage": span.place + 1,
                    "Start": found.start,
                    "End": found.end,
                    "Over no answer": found.score,
                    "In all": span.total,
                }
            )
    st.markdown("**The closest answers of all passages**")
    show_table(rows, "The closest answers, with the logits of start and end", COLUMNS)


def show_parts(question: str, text: str, words: Characters, reader: Reader, seconds: float) -> None:
    """Draw both texts, each part coloured by its effect; ``seconds`` is how long one passage takes."""
    st.write(
        "The reader reads the passage again without one word of the question, or without one sentence of its "
        "own. What the score of the answer falls by rested on that part."
    )
    estimate, asked = seconds * n_parts(question, text), (question, text, words)
    if estimate > QUICK_S and st.session_state.get("reading-parts") != asked:
        st.button(
            f"Read it again without each part, about {readable_time(estimate)}",
            icon=":material/content_cut:",
            on_click=lambda: st.session_state.update({"reading-parts": asked}),
        )
        return
    of_question, of_passage = effects_of(question, text, words, reader)
    effects = [*of_question, *of_passage]
    known = sorted(
        (each for each in effects if not isnan(each.drop)), key=lambda each: abs(each.drop), reverse=True
    )
    answer = beginning(text[slice(*words)], WORDS_SHOWN)
    if known:
        most = known[0]
        change = "falls" if most.drop >= 0 else "rises"
        part = beginning(most.text, WORDS_SHOWN)
        by = f"{change} by {abs(most.drop):.2f}, the most of all parts."
        st.markdown(sentence_markdown(Strong(f"Without “{part}” the score of “{answer}” {by}")))
    largest = abs(known[0].drop) if known else 1.0
    for label, source, parts in (("Question", question, of_question), ("Passage", text, of_passage)):
        st.markdown(f"**{label}**")
        drops = [(each.start, each.end, each.drop) for each in parts]
        show_text(painted_parts(source, drops, largest))
    st.caption(
        "Blue parts raise the score of the answer over no answer: without them it falls, the darker the "
        "further. Orange ones lower it. The answer's own sentence is underlined: without it there is only "
        "what the reader finds instead."
    )
    shown = [each for each in effects if isnan(each.drop)] + known[:ROWS]
    rows = [
        {
            "Left out": beginning(each.text, CELL),
            "Fall": each.drop,
            "Best words then": beginning(each.instead, CELL),
            "Over no answer": each.score,
        }
        for each in shown
    ]
    st.markdown("**What it reads then**")
    show_table(rows, "The best words without each part", {"Fall": LOGIT, "Over no answer": LOGIT})


def n_parts(question: str, text: str) -> int:
    """Return how often a passage is read to leave out each part."""
    return 2 + len(WORD.findall(question)) + len(sentence_spans(text))


@st.cache_data(max_entries=16, show_spinner="Reading again without each part…")
def effects_of(
    question: str, text: str, words: Characters, _reader: Reader
) -> tuple[list[PartEffect], list[PartEffect]]:
    """Leave out each word of the question and each sentence of the passage; cached."""
    return (without_words(_reader, question, text, words), without_sentences(_reader, question, text, words))


def show_attention(question: str, text: str, words: Characters, reader: Reader) -> None:
    """Draw the share of attention between answer and question in every head, and one head's weights."""
    found = attention_of(question, text, words, reader)
    if found is None or not found.question:
        st.info("None of these words is read.")
        return
    is_there = choice("Attention", (TO_QUESTION, TO_ANSWER), "reading-way") == TO_QUESTION
    there, back = found.shares
    shares, weights = (there, found.to_question) if is_there else (back, found.to_answer)
    n_layers, n_heads = shares.shape
    top_layer, top_head = divmod(int(shares.argmax()), n_heads)
    queries, keys = ("answer", "question") if is_there else ("question", "answer")
    show_figure(
        layer_head_map(shares, "share", ".0%"),
        name="reader-attention-shares",
        alt=f"Share of attention from the {queries}'s tokens to the {keys}'s, by layer and head",
    )
    st.caption(
        f"The share of their attention that the {queries}'s tokens give to the {keys}'s, on average. Most in "
        f"head {top_head} of layer {top_layer}: {shares.max():.0%}."
    )
    left, right = st.columns(2)
    reason = "Counted from 0, the first after the embeddings."
    layer = slider("Layer", range(n_layers), top_layer, "reading-layer", reason, place=left)
    head = slider(
        "Head", range(n_heads), top_head, "reading-head", "Heads attend to different tokens.", place=right
    )
    tokens = {"answer": found.answer, "question": found.question}
    show_figure(
        token_map(weights[layer, head], tokens[queries], tokens[keys], (queries, keys)),
        name=f"reader-layer{layer}-head{head}",
        alt=f"Attention of head {head} of layer {layer} from the {queries}'s tokens to the {keys}'s",
    )


@st.cache_data(max_entries=16, show_spinner=False)
def attention_of(question: str, text: str, words: Characters, _reader: Reader) -> AnswerAttention | None:
    """Return the attention between words and the question, in the window with the words; cached."""
    found = answer_tokens(windows_of(question, text, _reader), words)
    return answer_attention(_reader, found.window.window, words) if found else None
