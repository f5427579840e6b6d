"""Uploaded files of chunks with their vectors: the dialog that reads one, and the model that made it.

A file is searched by itself, as its vectors compare only with those of its model. It stays in the session; a
workspace leaves it out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import streamlit as st

from engine.documents.document import Chunk, Document
from engine.errors import GlassboxError, InputError
from engine.evaluation.embedding_server import FORM
from engine.evaluation.given_chunks import GivenDocument, given_documents
from engine.evaluation.library_model import load_model
from engine.installed import PROGRAM
from engine.layers.pooling import POOLINGS, pooling_label
from engine.layers.tracing import Array
from engine.models.embedding_head import MODEL_DEFAULT
from engine.models.prompts import PROMPT_USES
from engine.models.second_models import SECOND_MODELS
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import Index
from engine.retrieval.index_choice import EXACT_CHUNKS
from engine.retrieval.vector_files import read_index
from engine.retrieval.vector_rows import ARRAYS, COLUMNS, READERS
from engine.wording import counted, model_name
from ui.models import load_encoder
from ui.server_settings import ENCODER, check_source, limits
from ui.text import show_error


@dataclass(frozen=True)
class UploadedVectors:
    """A file of chunks with their vectors, the model that embeds questions, and the chunks' documents."""

    name: str
    index: Index = field(repr=False)
    model: Model
    # where the index is mapped, one that stands for all
    documents: tuple[GivenDocument, ...] = field(repr=False)
    source: str = ENCODER  # the name that its model is loaded by
    unrelated: Array | None = field(default=None, repr=False)  # as in `StoredIndex`

    @cached_property
    def chunks(self) -> dict[str, list[Chunk]]:
        """The chunks of each document, by its name; raises `InputError` where the index is mapped."""
        if self.reason_unread:
            raise InputError(self.reason_unread)
        found: dict[str, list[Chunk]] = {}
        for chunk in self.index.chunks:
            found.setdefault(chunk.document, []).append(chunk)
        return found

    @property
    def reason_unread(self) -> str:
        """Why a page that reads all chunks cannot be drawn, empty where it can."""
        if not self.index.is_mapped:
            return ""
        return (
            f"{self.name} has {counted(len(self.index.chunks), 'chunk')}, read where a search finds "
            "them, and this page would read all: use it on “Ask your documents”, or open a smaller index"
        )

    @property
    def words(self) -> str:
        """``notes.npz: 120 chunks and their vectors of 384 numbers by all-MiniLM-L6-v2, mean pooling``."""
        spec, slow = self.index.spec, ""
        if self.index.ann is None and len(self.index.chunks) > EXACT_CHUNKS:
            slow = (
                f". A search reads all of them: {PROGRAM} index with --index-kind ivf-sq8 makes a folder in "
                "which it takes milliseconds"
            )
        return (
            f"{self.name}: {counted(len(self.index.chunks), 'chunk')} and their vectors of {spec.d_model:,} "
            f"numbers by {model_name(spec.name)}, {pooling_label(spec.pooling)} pooling{slow}"
        )


def vector_files() -> dict[str, UploadedVectors]:
    """Return the files of vectors that the user brought in this session, by their names."""
    return st.session_state.setdefault("vector-files", {})


def uploaded_vectors(documents: Sequence[Document]) -> UploadedVectors | None:
    """Return the file of vectors whose documents these are, None for documents that the app cuts itself."""
    if not documents or not isinstance(first := documents[0], GivenDocument):
        return None
    return next((each for each in vector_files().values() if each.documents[0].digest == first.digest), None)


def search_model(documents: Sequence[Document]) -> Model:
    """Return the model that embeds questions about documents: the app's own, or that of uploaded vectors."""
    encoder, uploaded = load_encoder(), uploaded_vectors(documents)
    if uploaded is None:
        return encoder
    if (theirs := uploaded.model.as_encoder) is not None:
        second: dict[str, Any] = {kind: getattr(encoder, kind) for kind in SECOND_MODELS}
        return replace(theirs, **second)
    return uploaded.model


def searched_together(names: Sequence[str]) -> list[str]:
    """Return the names of files that are searched together: of vectors and others, the last wins."""
    own = vector_files()
    return [names[-1]] if names and names[-1] in own else [name for name in names if name not in own]


def upload_button() -> None:
    """Draw the button that opens the dialog."""
    if st.button(
        "Upload vectors",
        key="upload-vectors",
        icon=":material/deployed_code_update:",
        type="tertiary",
        help="A file of chunks with vectors that were made elsewhere, to search in place of documents.",
    ):
        show_upload()


@st.dialog("Upload vectors", width="medium")
def show_upload() -> None:
    """Draw the choice of a file and of the model that made it; read them, or say why they cannot be read."""
    st.write(
        "Search chunks that were embedded elsewhere. Vectors do not say how they were made, so the "
        "model has to be named: it embeds the questions, and one chunk to see that it is the right one."
    )
    file = st.file_uploader(
        "Chunks with vectors",
        type=[suffix.lstrip(".") for suffix in READERS],
        key="vectors-file",
        max_upload_size=limits().workspace_mb,
        help=f"Parquet with the columns {', '.join(COLUMNS)}, a row a chunk; or .npz as `{PROGRAM} embed` "
        f"writes it, with {', '.join(ARRAYS)}. Starts and ends count characters of the document.",
    )
    name = st.text_input(
        "Model that made them",
        ENCODER,
        key="vectors-model",
        help=f"A known name, a folder, a Hugging Face id, or a server of embeddings as {FORM}.",
    ).strip()
    key = st.text_input(
        "Key",
        type="password",
        key="vectors-key",
        help="Only if a server needs one. It is sent to this address only and forgotten with this session.",
    ).strip()
    left, right = st.columns(2)
    pooling = left.selectbox(
        "Pooling",
        [MODEL_DEFAULT, *(name for name in POOLINGS if name != MODEL_DEFAULT)],
        format_func=lambda name: "the model's own" if name == MODEL_DEFAULT else pooling_label(name),
        key="vectors-pooling",
    )
    prompts = right.selectbox(
        "Prompts of the model",
        list(PROMPT_USES),
        format_func=lambda name: PROMPT_USES[name].label,
        key="vectors-prompts",
        help="For models that were trained with prompts before questions or chunks.",
    )
    if not st.button("Search these", type="primary", key="vectors-read", icon=":material/search:"):
        return
    try:
        if file is None:
            raise InputError("no file is chosen: give chunks with vectors as .npz or .parquet")
        if not name:
            raise InputError(
                "no model is named: questions have to be embedded by the one that made the vectors"
            )
        with st.spinner("Reading the vectors, and embedding one chunk again…", show_time=True):
            model = named_model(name, key).with_prompts(prompts)
            read_vectors(file.name, file.getvalue(), model, pooling, name)
    except GlassboxError as error:
        show_error(error)
        return
    st.rerun()


def named_model(name: str, api_key: str = "") -> Model:
    """Load the model that made vectors; the app's own encoder is not loaded twice."""
    check_source(name)
    return load_encoder() if name == ENCODER else load_model(name, api_key=api_key)


def read_vectors(name: str, content: bytes, model: Model, pooling: str, source: str = ENCODER) -> None:
    """Search a file of vectors in place of documents; one that cannot be read changes nothing."""
    index, documents = given_documents(read_index(Path(name), model, pooling, content, limits().reading))
    vector_files()[name] = UploadedVectors(name, index, model, documents, source)
    st.session_state["searched"] = [name]


def reason_unavailable(uploaded: UploadedVectors, what: str) -> str:
    """Return why a page or a tab cannot be drawn for uploaded vectors, unescaped."""
    return (
        f"{what}, and {uploaded.name} brings only its chunks and one vector for each. Choose other documents "
        "under “Search in” in the sidebar."
    )
