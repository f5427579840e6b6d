"""What a tuning changed, in words, and the tuned model kept between sessions with these words in it."""

import zipfile
from collections.abc import Callable

import streamlit as st

from engine.errors import ModelFileError
from engine.evaluation.significance import Comparison
from engine.training.search.cross_validation import MAIN, is_better, is_worse
from engine.training.search.tuned_model import CARD, tuned_zip
from engine.training.search.tuning import Tuned
from ui.data_folder import model_file
from ui.text import p_words

KEPT_NAME = "tuned"  # of the model of the last tuning


def outcome(tuned: Tuned) -> str:
    """Return the effect of tuning on new questions in words, and which model is kept."""
    found = tuned.question_metrics[0]
    numbers = (
        f"{MAIN} of questions that were not trained on goes from {found.before.mean():.3f} to "
        f"{found.after.mean():.3f} ({interval(found.comparison)})"
    )
    if tuned.keep:
        return f"**It helps beyond noise.** {numbers}."
    if is_better(found.comparison):
        return f"**It helps on new questions, and harms on new documents: the original is kept.** {numbers}."
    if is_worse(found.comparison):
        return f"**It harms: the original is kept.** {numbers}."
    return f"**No gain beyond noise: the original is kept.** {numbers}."


def document_outcome(tuned: Tuned) -> str:
    """Return the effect of tuning on documents left out of training, in words."""
    if not tuned.document_metrics:
        return "Whether it helps on new documents is unknown: all questions are about the same ones."
    found = tuned.document_metrics[0].comparison
    numbers = f"({interval(found)})"
    if is_better(found):
        return f"It helps on documents that training never saw, too {numbers}."
    if is_worse(found):
        return f"On documents that training never saw, it harms {numbers}."
    return (
        f"On documents that training never saw, it makes no difference beyond noise {numbers}: tune again "
        "when documents are added."
    )


def interval(found: Comparison) -> str:
    """Return a difference with its interval and p-value, in words."""
    ends = f"95 % interval {found.low:+.3f} to {found.high:+.3f}"
    return f"{found.difference:+.3f}, {ends}, {p_words(found.p_value)}"


def model_zip(tuned: Tuned) -> bytes:
    """Return the tuned model as a .zip file, with its outcome as its card."""
    return tuned_zip(tuned.encoder, tuned.adapter, f"{outcome(tuned)} {document_outcome(tuned)}")


def show_kept() -> None:
    """Draw the outcome of the last tuning of an earlier session, and the download of its model, if kept."""
    file = model_file(KEPT_NAME, ".zip")
    if file is None or not file.is_file():
        return
    try:
        with zipfile.ZipFile(file) as archive:
            card = archive.read(CARD).decode()
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ModelFileError(f"the model kept in {file} cannot be read ({error}): train again") from error
    with st.container(border=True):
        st.caption("The last tuning, kept on this computer:")
        st.write(card)
        show_download(file.read_bytes)


def show_download(read: Callable[[], bytes], is_better: bool = False) -> None:
    """Draw the download of a tuned model, whose .zip file is read when it is asked for."""
    st.download_button(
        "Download the tuned model (.zip)",
        read,
        file_name="tuned-model.zip",
        mime="application/zip",
        icon=":material/download:",
        key="tuning-download",
        on_click="ignore",
        type="primary" if is_better else "secondary",
        help="A folder that sentence-transformers loads, with the adapter for question vectors beside it if "
        "that is what was trained; about 90 MB.",
    )
