"""Inside the models: every tensor of a forward pass, attention, and one token's vector in each layer."""

from collections.abc import Mapping
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
import streamlit as st

from engine.inspection.model.model_view import ModelView
from engine.layers.tracing import Array
from engine.trace import trace_bytes
from engine.verify import has_official
from engine.wording import model_name
from pages.inside.chunk.attention import show_attention, show_layers, show_way
from pages.inside.chunk.model_pass import Input, Model, View, run_model
from pages.inside.chunk.pipeline import show_pipeline
from ui.corpus import split_documents
from ui.current import current_passage, document_choice, follow_chunk
from ui.documents import NoDocumentError
from ui.look_inside import CHUNK, PAIR, TYPED
from ui.models import decoder_name, limits_of, load_decoder, load_encoder
from ui.settings import chunks_sidebar
from ui.text import escape_markdown, show_text
from ui.tokens import special_words
from ui.widgets import check_typed, download, example_choice, kept, more_options, show_tabs, slider

EXAMPLES = (
    "The bank raised its interest rates.",
    "She sat on the bank of the river.",
    "Open-source LLMs rock.",
    "Naïve 東京 🙂 don't",
)
MAX_CHARACTERS = 20_000
# Most decoders could read thousands of tokens; larger maps than this are too much for a browser.
DECODER_TOKENS = 512


def npz(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the content of an .npz file."""
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decoder_limit() -> int:
    """Return how many tokens of a text the decoder reads here."""
    return min(DECODER_TOKENS, load_decoder().max_tokens)


def page_input() -> Input:
    """Draw the choice of the model and of the input, with its boxes; return the input."""
    encoder = load_encoder()
    names = {"encoder": f"Encoder · {model_name(encoder.name)}", "decoder": f"Decoder · {decoder_name()}"}
    read = "only those before it" if encoder.is_causal else "all others"
    with st.sidebar:
        model: Model = st.radio(
            "Model",
            ("encoder", "decoder"),
            format_func=lambda model: escape_markdown(names[model]),
            help=f"The encoder turns texts into vectors for search, and each token sees {read}. The decoder "
            "writes answers, and each token sees only those before it.",
            **kept("inside-model"),
        )
        sources = [TYPED, CHUNK, *([PAIR] if model == "encoder" else [])]
        key = f"source-{model}"
        st.session_state.setdefault(key, CHUNK if current_passage() else TYPED)
        source = st.radio("Input", sources, **kept(key))
    if source == CHUNK:
        return chunk_input(model)
    with st.sidebar:
        if model == "encoder":
            limits = limits_of(encoder)
            max_tokens = st.radio(
                "Tokens read",
                list(limits),
                index=list(limits).index(encoder.max_tokens),
                format_func=lambda limit: f"{limit} · {limits[limit]}",
                help="Text beyond this many tokens, special tokens included, never reaches the model.",
                **kept("inside-limit"),
            )
        else:
            max_tokens = decoder_limit()
    if source == PAIR:
        left, right = st.columns(2)
        first = left.text_area("First text", "How do cats sleep?", height=80)
        second = right.text_area("Second text", "A feline rests curled up.", height=80)
        for text in (first, second):
            check_typed(text, MAX_CHARACTERS)
        return Input(model, first, second, max_tokens)
    example_choice(EXAMPLES, "text-example", lambda text: st.session_state.update({"inside-text": text}))
    st.session_state.setdefault("inside-text", EXAMPLES[0])
    text = st.text_area(
        "Text", **kept("inside-text"), height=80, help="Leave the box, or press Ctrl+Enter, to run the model."
    )
    return Input(model, check_typed(text, MAX_CHARACTERS), None, max_tokens)


def chunk_input(model: Model) -> Input:
    """Draw the choice of a chunk of the chosen documents, cut under the settings of the app."""
    encoder = load_encoder()
    documents, cut = chunks_sidebar(encoder)
    if not documents:
        raise NoDocumentError
    left, right = st.columns([3, 1])
    document = document_choice(documents, "inside-document", place=left)
    [chunks] = split_documents([document], cut)
    if not chunks:
        raise NoDocumentError("This document has no text to read. Choose another.")
    key, label = "inside-chunk", f"Chunk (of {len(chunks)})"
    changed = follow_chunk(key, document.name, chunks)
    number = right.number_input(label, 1, len(chunks), key=key, on_change=changed)
    text = chunks[number - 1].text
    with st.expander("Text of the chunk"):
        show_text(escape(text), height=200)
    if model == "decoder":
        return Input(model, text, None, decoder_limit())
    prompt = cut.encoder(encoder).prompts.of("document")
    if prompt:
        st.caption(
            f"As in a search, the model reads its prompt “{escape_markdown(prompt)}” before the chunk."
        )
    return Input(model, prompt + text, None, cut.max_tokens)


def view_choice(model: Model) -> View:
    """Draw the choice of a layer and a head, and behind “More options” the switches of the views."""
    if model == "encoder":
        encoder = load_encoder()
        config: Any = encoder.config
        special, is_causal = special_words(encoder.tokenizer), encoder.is_causal
        is_comparable = has_official(encoder)
    else:
        config, special, is_causal = load_decoder().config, "the first token", True
        is_comparable = False
    left, right, more = st.columns([2, 2, 1], vertical_alignment="bottom")
    reason = "Counted from 0, the first after the embeddings."
    layer = slider("Layer", range(config.n_layers), 0, f"layer-{model}", reason, place=left)
    reason = "Heads attend to different tokens."
    head = slider("Head", range(config.n_heads), 0, f"head-{model}", reason, place=right)
    with more, more_options():
        with_special = st.toggle(
            "Special tokens" if model == "encoder" else "First token",
            value=True,
            **kept(f"special-{model}"),
            help=f"Much attention goes to {escape_markdown(special)}. Off, the rest is shown, scaled to 1.",
        )
        is_compared = is_comparable and st.toggle(
            "Compare every stage with the official model",
            **kept("compare"),
            help="Runs sentence-transformers on the same input, side by side, and shows the differences "
            "under “Pipeline”. For each text it runs for some 10 seconds in a process of its own, whose "
            "600 MB of memory are given back.",
        )
    return View(layer, head, special, not with_special, is_causal, is_compared)


def show_size(given: Input, seen: ModelView, layer: int) -> None:
    """Draw the sizes of the input and its trace, and a download of the layer shown."""
    n_tokens = len(seen.encoding)
    model = load_encoder() if given.model == "encoder" else load_decoder()
    whole = trace_bytes(model.trace_shapes(n_tokens), ["*"], np.dtype(np.float32))
    kept = sum(array.nbytes for array in seen.trace.values())
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(
        f"{n_tokens} tokens · every tensor of this pass: {whole / 1e6:,.0f} MB · kept for this page: "
        f"layer {layer} whole and the others' outputs, {kept / 1e6:,.1f} MB"
    )
    download(
        f"Download (.npz, {kept / 1e6:,.1f} MB)",
        lambda: npz(dict(seen.trace)),
        f"trace-layer{layer}.npz",
        type="tertiary",
        place=right,
    )


def main() -> None:
    """Draw the page."""
    given = page_input()
    model = given.model
    if not given.text.strip():
        st.info("Type a text, or take a chunk of the documents.")
        return
    view = view_choice(model)
    name = load_encoder().name if model == "encoder" else decoder_name()
    seen = run_model(given, name, view.layer, view.without_special)
    if seen.n_whole > len(seen.encoding):
        st.warning(
            f"Only the first {len(seen.encoding)} of {seen.n_whole:,} tokens are read: the rest never "
            "reaches the model.",
            icon=":material/content_cut:",
        )
    views = {
        "Pipeline": lambda: show_pipeline(given, seen, view),
        "Attention": lambda: show_attention(seen, view),
        "Across layers": lambda: show_layers(seen, view),
        "A token's way": lambda: show_way(given, seen),
    }
    show_tabs(views, "inside-tab")
    show_size(given, seen, view.layer)


main()
