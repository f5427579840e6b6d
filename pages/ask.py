"""Ask the documents: retrieval and generation end to end, each step shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from engine.documents.budget import limit_warning
from engine.documents.document import Document
from engine.documents.splitters import MIN_CHUNK_TOKENS
from engine.errors import GlassboxError
from engine.generation.answering import DEFAULT_THRESHOLD, Answer, ask
from engine.layers.pooling import POOLINGS
from engine.retrieval.index import Index
from ui.corpus import document_picker, index_documents
from ui.figures import timing_figure, token_figure
from ui.frame import require_frame
from ui.models import load_decoder, load_encoder
from ui.text import in_context, mark_colour, show_text, text_html

EXAMPLES = (
    "What does the CarbFix project do with carbon dioxide?",
    "What is the price of insulin for seniors on Medicare?",
    "What happens to text beyond the token limit?",
    "How do I bake sourdough bread?",
)

# Characters shown around a passage, and around the passages of a whole document: a browser is slow
# with more.
PASSAGE_CONTEXT, DOCUMENT_CONTEXT = 240, 100_000


@dataclass(frozen=True)
class Settings:
    """What the sidebar sets."""

    chunk_tokens: int
    overlap: int
    pooling: str
    k: int
    threshold: float
    max_prompt_tokens: int
    max_new_tokens: int
    temperature: float


def settings_sidebar(max_positions: int) -> Settings:
    """Draw the settings, each with the reason to move it."""
    with st.expander("Chunks", icon=":material/content_cut:"):
        chunk_tokens = st.slider(
            "Chunk size (tokens)",
            MIN_CHUNK_TOKENS * 2,
            max_positions,
            min(128, max_positions),
            step=8,
            help="Documents are cut into pieces of this many tokens, and each piece becomes one vector. "
            "Small pieces are precise, large ones keep more context but blur it. The default encoder was "
            "trained on 128 tokens and reads 256.",
        )
        overlap = st.slider(
            "Overlap (tokens)",
            0,
            chunk_tokens // 2,
            min(16, chunk_tokens // 2),
            help="How much of a chunk is repeated in the next one, so that a sentence on the border "
            "is whole in one of them.",
        )
        pooling = st.selectbox(
            "Pooling",
            POOLINGS,
            help="How the vectors of a chunk's tokens become one: their mean, the vector of the first "
            "token ([CLS]), or BERT's pooler on top of that. This model was trained for the mean.",
        )
    with st.expander("Search", icon=":material/search:"):
        k = st.slider("Passages", 1, 10, 4, help="How many of the nearest chunks the decoder may be given.")
        threshold = st.slider(
            "Relevance threshold",
            -0.1,
            1.0,
            DEFAULT_THRESHOLD,
            step=0.01,
            help="The lowest cosine between question and passage that counts as relevant. When no passage "
            "reaches it, the app says so instead of answering.",
        )
    with st.expander("Answer", icon=":material/edit_note:"):
        max_prompt_tokens = st.slider(
            "Prompt budget (tokens)",
            128,
            4096,
            1024,
            step=64,
            help="Passages are added, best first, until the prompt has this many tokens.",
        )
        max_new_tokens = st.slider(
            "Longest answer (tokens)",
            16,
            512,
            128,
            step=16,
            help="Generation stops here if the model has not ended its answer.",
        )
        temperature = st.slider(
            "Temperature",
            0.0,
            1.5,
            0.0,
            step=0.1,
            help="0 always takes the most probable token; above it, tokens are drawn at random, "
            "the more freely the higher.",
        )
    return Settings(
        chunk_tokens, overlap, pooling, k, threshold, max_prompt_tokens, max_new_tokens, temperature
    )


def question_box() -> str | None:
    """Draw the example questions and the box; return a question that was just asked."""
    st.pills(
        "Try one",
        EXAMPLES,
        key="example",
        on_change=take_example,
        help="The last one is not answered by the bundled documents: the app should say so.",
    )
    with st.form("question-form", border=False):
        box, button = st.columns([5, 1], vertical_alignment="bottom")
        question = box.text_input(
            "Your question", key="question", placeholder="What do you want to know?", max_chars=2000
        )
        asked = button.form_submit_button("Ask", type="primary", width="stretch")
    if asked and not question.strip():
        st.warning("Type a question first, or pick one above.")
        return None
    return question if asked or st.session_state.pop("example_picked", False) else None


def take_example() -> None:
    """Copy a picked example into the box and have it asked."""
    if st.session_state["example"]:
        st.session_state["question"] = st.session_state["example"]
        st.session_state["example"] = None
        st.session_state["example_picked"] = True


def stream_answer(question: str, index: Index, settings: Settings) -> Answer:
    """Answer a question, showing the text as it comes."""
    with st.status("Searching and reading the passages…") as status:
        place = st.empty()
        written: list[str] = []

        def show(text: str) -> None:
            if not written:
                status.update(label="Writing the answer…", expanded=True)
            written.append(text)
            place.html(text_html(escape("".join(written)) + " ▌"))

        return ask(
            question,
            index,
            load_encoder(),
            load_decoder(),
            k=settings.k,
            threshold=settings.threshold,
            max_prompt_tokens=settings.max_prompt_tokens,
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            on_text=show,
        )


def show_answer(answer: Answer, documents: Sequence[Document]) -> None:
    """Draw an answer and everything it rests on."""
    st.subheader(escape_markdown(answer.question))
    if answer.prompt is None:
        show_nothing_found(answer)
        return
    show_text(escape(answer.text) or "(the model ended its answer at once)")
    if answer.finish_reason == "length":
        st.caption("Cut at the longest answer allowed; the limit is under Answer in the sidebar.")
    st.caption(
        f"Written by a small model ({load_decoder().name}) from {len(answer.sources)} passages: "
        "it makes mistakes, so check it against the sources."
    )
    sources, document, timing, prompt = st.tabs(["Sources", "In the documents", "Timing", "Exact prompt"])
    by_name = {document.name: document for document in documents if is_unchanged(document, answer)}
    with sources:
        show_sources(answer, by_name)
    with document:
        show_documents(answer, by_name)
    with timing:
        show_timing(answer)
    with prompt:
        show_prompt(answer)


def is_unchanged(document: Document, answer: Answer) -> bool:
    """Whether the document still says what the answer's sources quote of it."""
    return all(
        document.text[source.start : source.end] == source.text
        for source in answer.sources
        if source.document == document.name
    )


def show_nothing_found(answer: Answer) -> None:
    """Say that no passage is close enough, and how close the nearest come."""
    st.info(answer.text, icon=":material/search_off:")
    best = answer.hits[0].score
    st.caption(
        f"The nearest passage scores {best:.2f}, the threshold is {answer.threshold:.2f}. "
        "Ask in other words, add a document, or move the threshold under Search in the sidebar."
    )
    with st.expander("The nearest passages, too far to be used"):
        for hit in answer.hits:
            st.caption(f"{hit.score:.2f} · {escape_markdown(hit.chunk.document)}")
            show_text(escape(hit.chunk.text))


def show_sources(answer: Answer, documents: dict[str, Document]) -> None:
    """List the passages the decoder was given, each marked in its surroundings."""
    for source in answer.sources:
        with st.container(border=True):
            number = f'<b style="background:{mark_colour(source.number)};padding:2px 6px;border-radius:3px">'
            cut = " · cut to fit the prompt" if source.cut else ""
            show_text(
                f"{number}[{source.number}]</b> {escape(source.document)} · characters "
                f"{source.start}–{source.end} · score {source.score:.3f} · {source.n_tokens} tokens{cut}"
            )
            if source.document in documents:
                show_text(in_context(documents[source.document], [source], PASSAGE_CONTEXT))
            else:
                show_text(escape(source.text))
                st.caption("This document is no longer among those searched.")
    if left_out := answer.prompt.left_out if answer.prompt else ():
        st.caption(f"{len(left_out)} more relevant passages did not fit the prompt's budget.")
    st.caption(
        "The score is the cosine between the vectors of question and passage: 1 is the same direction."
    )


def show_documents(answer: Answer, documents: dict[str, Document]) -> None:
    """Show a whole document with its sources marked."""
    names = [name for name in documents if any(source.document == name for source in answer.sources)]
    if not names:
        st.caption("The documents of this answer are no longer among those searched.")
        return
    name = st.selectbox("Document", names, key="shown_document") or names[0]
    own = [source for source in answer.sources if source.document == name]
    st.caption(f"{len(own)} passages marked, of {len(documents[name].text):,} characters.")
    show_text(in_context(documents[name], own, DOCUMENT_CONTEXT), height=480)


def show_timing(answer: Answer) -> None:
    """Show how long each stage took."""
    timings = answer.timings
    columns = st.columns(2)
    columns[0].metric(
        "Prompt tokens per second",
        f"{timings.prompt_tokens_per_s:,.0f}" if timings.prompt_tokens_per_s else "–",
        help="The prompt is read in blocks, many tokens at once.",
    )
    columns[1].metric(
        "Answer tokens per second",
        f"{timings.answer_tokens_per_s:,.0f}" if timings.answer_tokens_per_s else "–",
        help="Answer tokens come one by one: each needs every weight of the model once.",
    )
    st.plotly_chart(timing_figure(timings), config={"displayModeBar": False}, alt="Seconds of each stage")


def show_prompt(answer: Answer) -> None:
    """Show the prompt to the letter, and where its tokens went."""
    prompt = answer.prompt
    if prompt is None:
        return
    parts = {
        "sources": prompt.source_tokens,
        "question": prompt.question_tokens,
        "instructions and template": len(prompt.ids) - prompt.source_tokens - prompt.question_tokens,
    }
    st.plotly_chart(
        token_figure(parts, prompt.max_tokens), config={"displayModeBar": False}, alt="Tokens of the prompt"
    )
    st.caption(
        f"{len(prompt.ids)} tokens in, {answer.timings.answer_tokens} tokens out. "
        "This is all the decoder sees: it knows the documents from here alone."
    )
    st.code(prompt.text, language=None, wrap_lines=True)


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(
        f"\\{character}" if character in r"\`*_{}[]()#+-.!|<>$~:&" else character for character in text
    )


def main() -> None:
    """Draw the page."""
    require_frame("pages/ask.py")
    st.title("Ask your documents")
    st.write(
        "A question finds the nearest passages, and a small language model answers from them. "
        "Everything on that way is open below: passages, scores, the exact prompt and the time of each step."
    )
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            settings = settings_sidebar(encoder.config.max_positions)
        if not documents:
            st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
            return
        index = index_documents(documents, encoder, settings.chunk_tokens, settings.overlap, settings.pooling)
        n_tokens = sum(chunk.n_tokens for chunk in index.chunks)
        st.caption(
            f"{len(documents)} documents · {len(index.chunks)} chunks · {n_tokens:,} tokens · "
            f"encoder {encoder.name}"
        )
        if warning := limit_warning(index.chunks, index.max_tokens):
            st.warning(warning, icon=":material/content_cut:")
        question = question_box()
        if question:
            place = st.empty()
            with place.container():
                st.session_state["answer"] = stream_answer(question, index, settings)
            place.empty()
        if "answer" in st.session_state:
            show_answer(st.session_state["answer"], documents)
        load_decoder()  # ready before the first question
    except GlassboxError as error:
        st.error(str(error), icon=":material/error:")


main()
