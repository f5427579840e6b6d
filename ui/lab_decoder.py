"""A decoder trained from scratch, on the documents that are chosen, while one watches."""

from collections.abc import Callable, Sequence
from math import prod

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.training.checkpoint import checkpoint_bytes
from ui.answer import escape_markdown
from ui.lab_decoder_live import show_live
from ui.lab_decoder_run import Choice, Run, begin, current, pause, reset, restore, resume
from ui.lab_decoder_settings import POSITIONS, choose
from ui.lab_decoder_write import show_writing_on
from ui.models import load_encoder

ERROR = "lab-decoder-error"


def show_decoder_training(documents: Sequence[Document]) -> None:
    """Draw the choice of a model, its training as it goes, and what can be done with it."""
    st.write(
        "A small GPT learns to write like your documents: every gradient is worked out by hand, on this "
        "machine, in about a minute."
    )
    if not documents:
        st.info("There is nothing to learn from: choose at least one document in the sidebar.")
        return
    run = current()
    choice = choose(made=run is not None, running=run is not None and run.running)
    _show_controls(run, choice, documents)
    if run is None:
        st.info(
            "Nothing is trained yet. **Train** begins with random weights; losses, samples and attention "
            "appear here as the model learns.",
            icon=":material/school:",
        )
        _show_plan(choice, documents)
        return
    _show_what_went_wrong(run)
    _show_model(run)
    show_live(run)
    show_writing_on(run)


def _show_controls(run: Run | None, choice: Choice, documents: Sequence[Document]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="lab-decoder-controls"):
        if run is None:
            reason = "Make a model of these settings, and begin to train it."
            if st.button(
                "Train", key="lab-decoder-train", icon=":material/play_arrow:", type="primary", help=reason
            ):
                _guarded(lambda: _begin(choice, documents))
                st.rerun()
        else:
            _show_run_buttons(run, choice)
        learns = run is not None and run.running
        with st.popover("Load a checkpoint", icon=":material/upload:", disabled=learns):
            _show_upload(choice, documents)
    if error := st.session_state.pop(ERROR, None):
        st.error(escape_markdown(error), icon=":material/error:")


def _show_run_buttons(run: Run, choice: Choice) -> None:
    if run.running:
        st.button(
            "Pause",
            key="lab-decoder-pause",
            icon=":material/pause:",
            on_click=_guarded,
            args=(lambda: pause(run),),
            help="Stop after this step; nothing is lost.",
        )
    else:
        _show_paused_buttons(run, choice)
    st.button(
        "Reset",
        key="lab-decoder-reset",
        icon=":material/restart_alt:",
        on_click=reset,
        help="Forget this model, to choose another.",
    )


def _show_paused_buttons(run: Run, choice: Choice) -> None:
    st.button(
        "Resume",
        key="lab-decoder-resume",
        icon=":material/play_arrow:",
        type="primary",
        disabled=run.trainee.step >= choice.settings.n_steps,
        on_click=resume,
        args=(run, choice.settings),
        help="Go on from here, with the steps and the learning rate chosen now under “Sizes and pace”. Where "
        "all steps are made, choose more of them first.",
    )
    st.download_button(
        "Checkpoint",
        lambda: checkpoint_bytes(run.checkpoint),
        file_name=f"small-decoder-step-{run.trainee.step}.safetensors",
        mime="application/octet-stream",
        key="lab-decoder-download",
        icon=":material/download:",
        on_click="ignore",
        help="Weights, what the optimiser remembers, sizes, vocabulary and step, in one file.",
    )


def _show_upload(choice: Choice, documents: Sequence[Document]) -> None:
    file = st.file_uploader(
        "Checkpoint",
        type="safetensors",
        key="lab-decoder-file",
        help="A file saved here. Its sizes and vocabulary come with it; where a model is there already, they "
        "must be the same.",
    )
    reason = "Go on from this checkpoint."
    pressed = st.button("Load", key="lab-decoder-load", disabled=file is None, help=reason)
    if pressed and file is not None:
        try:
            with st.spinner("Reading the checkpoint…", show_time=True):
                restore(file.getvalue(), choice, documents, load_encoder().tokenizer)
        except GlassboxError as error:  # told where it was given, as the box hides what is below
            st.error(escape_markdown(str(error)), icon=":material/error:")
            return
        st.rerun()


def _begin(choice: Choice, documents: Sequence[Document]) -> None:
    with st.spinner("Learning the vocabulary and counting tokens…", show_time=True):
        run = begin(choice, documents, load_encoder().tokenizer)
    resume(run, choice.settings)


def _guarded(act: Callable[[], object]) -> None:
    """Do something, and keep what went wrong for the page to show."""
    try:
        act()
    except GlassboxError as error:
        st.session_state[ERROR] = str(error)


def _show_what_went_wrong(run: Run) -> None:
    """Say why the training ended before its time, if it did."""
    if run.diverged:
        st.error(f"Training diverged: {escape_markdown(run.diverged)}.", icon=":material/trending_up:")
    elif run.job is not None and run.job.done:
        try:
            run.job.result()
        except GlassboxError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")


def _show_plan(choice: Choice, documents: Sequence[Document]) -> None:
    """Say what would be trained, and on what."""
    text = "".join(document.text for document in documents)
    characters = len(set(text))
    vocab_size = characters + choice.keep_unknown if choice.kind == "characters" else choice.vocab_size
    config = SmallDecoderConfig(max(vocab_size, 1), **dict(choice.sizes))  # type: ignore[arg-type]
    n_parameters = sum(map(prod, parameter_shapes(config).values()))
    st.caption(
        f"To learn from: {len(text):,} characters, {characters:,} different ones, of {len(documents):,} "
        f"documents, which the sidebar chooses. To be learnt: {n_parameters:,} parameters, in "
        f"{choice.settings.n_steps:,} steps of {choice.batch_size * config.context:,} tokens."
    )


def _show_model(run: Run) -> None:
    config, names = run.trainee.config, {value: name for name, value in POSITIONS.items()}
    n_parameters = sum(array.size for array in run.trainee.params.values())
    norm = "before" if config.norm_first else "after"
    st.caption(
        f"{n_parameters:,} parameters: {config.n_layers} × {config.n_heads} heads, width "
        f"{config.d_model}, context {config.context}, {names[config.positions]} positions, normalised {norm} "
        f"each part. {run.n_tokens:,} tokens of {config.vocab_size:,} different ones; they lie in a file and "
        "are read window by window."
    )
