"""A decoder trained from scratch on the chosen documents."""

from collections.abc import Sequence
from math import prod

import streamlit as st

from engine.documents.document import Document
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.wording import counted
from pages.learn.decoder.buttons import show_training_buttons
from pages.learn.decoder.live import show_progress
from pages.learn.decoder.session import Choice, TrainingSession, begin, current, restore, resume
from pages.learn.decoder.settings import POSITIONS, choose
from pages.learn.decoder.write import show_writing_on
from ui.documents import document_picker
from ui.models import load_encoder
from ui.text import escape_markdown, show_error

REDRAW_S = 2.0  # between two drawings of a training


def show_decoder_training(documents: Sequence[Document]) -> None:
    """Draw the settings, the buttons, the training's progress, and generation with the model."""
    st.write(
        "A small GPT learns to write like your documents, on this machine, in about a minute; all gradients "
        "are computed by hand-written code."
    )
    if not documents:
        st.info("There is nothing to learn from: choose at least one document in the sidebar.")
        return
    session = current()
    choice = choose(made=session is not None, running=session is not None and session.running)
    show_training_buttons(
        session,
        choice.settings,
        train=lambda: _begin(choice, documents),
        load=lambda content: restore(content, choice, documents, load_encoder().tokenizer),
    )
    if session is None:
        st.info(
            "Nothing is trained yet. **Train** starts from random weights; losses, samples and attention "
            "appear here as the model learns.",
            icon=":material/school:",
        )
        _show_plan(choice, documents)
        return
    _show_failure(session)
    _show_model(session)
    draw_live(session)
    show_writing_on(session)


def _begin(choice: Choice, documents: Sequence[Document]) -> None:
    with st.spinner("Learning the vocabulary and counting tokens…", show_time=True):
        session = begin(choice, documents, load_encoder().tokenizer)
    resume(session, choice.settings)


def _show_failure(session: TrainingSession) -> None:
    """Draw the reason why the training ended early, if it did."""
    if session.diverged:
        st.error(f"Training diverged: {escape_markdown(session.diverged)}.", icon=":material/trending_up:")
    elif session.job is not None and session.job.error:
        show_error(session.job.error)


def draw_live(session: TrainingSession) -> None:
    """Draw a training; while it runs, again every `REDRAW_S` seconds, and at its end rerun the page."""
    if not session.running:
        show_progress(session)
        return

    @st.fragment(run_every=REDRAW_S)
    def redraw() -> None:
        if not session.running:
            st.rerun()
        show_progress(session)

    redraw()


def _show_plan(choice: Choice, documents: Sequence[Document]) -> None:
    """Draw the sizes of the corpus and of the model that would be trained."""
    text = "".join(document.text for document in documents)
    characters = len(set(text))
    vocab_size = characters + choice.keep_unknown if choice.kind == "characters" else choice.vocab_size
    config = SmallDecoderConfig(max(vocab_size, 1), **choice.sizes)
    n_parameters = sum(map(prod, parameter_shapes(config).values()))
    st.caption(
        f"Corpus: {len(text):,} characters, {characters:,} different ones, in "
        f"{counted(len(documents), 'document')}, chosen in the sidebar. Model: {n_parameters:,} parameters, "
        f"trained in {choice.settings.n_steps:,} steps of {choice.batch_size * config.context:,} tokens."
    )


def _show_model(session: TrainingSession) -> None:
    config, names = session.state.config, {value: name for name, value in POSITIONS.items()}
    n_parameters = sum(array.size for array in session.state.params.values())
    norm = "before" if config.norm_first else "after"
    st.caption(
        f"{n_parameters:,} parameters: {config.n_layers} × {config.n_heads} heads, width "
        f"{config.d_model}, context {config.context}, {names[config.positions]} positions, normalised {norm} "
        f"each part. {session.n_tokens:,} tokens of {config.vocab_size:,} different ones; they are in a file "
        "and are read window by window."
    )


with st.sidebar:
    documents = document_picker()
show_decoder_training(documents)
