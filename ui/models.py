"""The models, loaded once for all sessions, with the progress of downloads.

The settings of the server name the default models (`ui.server_settings`). Each session may choose another
decoder and second models, which sessions that chose the same share.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock, Timer
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import streamlit as st

from engine import Decoder, Encoder
from engine.documents.document import Chunk
from engine.errors import ModelFileError, ModelUnavailableError
from engine.evaluation.sweep_cost import token_seconds
from engine.generation.listed_decoders import read_rate, weight_bytes
from engine.kernels.primitives import has_op_tape, prepare_compiled
from engine.layers.pooling import pooling_label
from engine.models.embedding_head import SIMILARITIES, Dense
from engine.models.reader import Reader, shipped_reader
from engine.models.second_models import SECOND_MODELS, SecondModel
from engine.retrieval.embedding_model import Model
from engine.weights.catalog import DEFAULT_ENCODER, KNOWN_MODELS
from engine.weights.fetch import Progress, is_cached, model_path
from engine.weights.transfer import Transfer
from engine.wording import counted, model_name
from ui.jobs import MACHINE, learn
from ui.server_settings import DECODER, ENCODER, SECOND, check_source, is_public
from ui.text import escape_markdown, joined

T = TypeVar("T")

REDRAW_S = 0.5  # between two states of a download's bar
WORK_PER_S = 15_000 * 6 * 384**2  # tokens by layers by squares of the width, of two cores
LONG = 8  # binary digits of the tokens of a chunk: 128 to 255
WRITTEN_TOKENS = 3_000  # that take as long as an answer: to load the model, read a prompt, write and check
READ_PER_S = 1_400 * 97e6  # tokens by bytes of weights, of two cores with SmolLM2
IDLE_S = 60  # after which a public server's decoder leaves the memory; it is back within a second
RETRY_S = 60  # after which a reader that could not be loaded is tried again
# Models that visitors chose, as long as a session uses them: none takes that of another session away.
_decoders: WeakValueDictionary[str, Decoder] = WeakValueDictionary()
_second: dict[str, WeakValueDictionary[str, SecondModel]] = {
    kind: WeakValueDictionary() for kind in SECOND_MODELS
}
_loading = Lock()
_leaving: Timer | None = None


def load_encoder() -> Encoder:
    """Load the encoder, with the session's second models if it has any."""
    names = zip(SECOND_MODELS, second_names(), strict=True)
    second: dict[str, Any] = {kind: second_named(kind, name) for kind, name in names if name}
    return replace(shared_encoder(), **second) if second else shared_encoder()


def second_name(kind: str) -> str:
    """Return the name, path or Hugging Face id of the session's model of a kind, empty if it has none."""
    return st.session_state.get(kind, SECOND[kind])


def second_names() -> tuple[str, ...]:
    """Return the names of the session's second models, in the order of `SECOND_MODELS`."""
    return tuple(map(second_name, SECOND_MODELS))


def choose_second(kind: str, name: str) -> None:
    """Load a model and make it the session's of its kind; where that fails, the previous one stays."""
    if name:
        check_source(name)
        second_named(kind, name)
    st.session_state[kind] = name


@st.cache_resource(max_entries=len(SECOND_MODELS), show_spinner=False, scope="session")
def second_named(kind: str, name: str) -> SecondModel:
    """Load a second model, downloading it the first time."""
    each = SECOND_MODELS[kind]
    with st.spinner(f"Loading the {each.label} {escape_markdown(name)}…"):
        return shared(_second[kind], name, lambda: each.load(name, on_progress=download_progress(name)))


def shared(models: WeakValueDictionary[str, T], name: str, load: Callable[[], T]) -> T:
    """Return the model of another session that uses one of this name, else load it."""
    with _loading:
        model = models.get(name)
        if model is None:
            models[name] = model = load()
        return model


@st.cache_resource(show_spinner=False)
def shared_encoder() -> Encoder:
    """Load the encoder, downloading it the first time."""
    with st.spinner(f"Loading the encoder {escape_markdown(ENCODER)}…"):
        encoder = Encoder.load(ENCODER, on_progress=download_progress(ENCODER))
    gc.collect()
    gc.freeze()  # collections of garbage need not visit the libraries each time
    return encoder


def load_reader() -> tuple[Reader | None, str]:
    """Return the session's reader; where it cannot be loaded None, and the reason."""
    own: Reader | None = st.session_state.get("own_reader")
    return (own, "") if own else shared_reader()


def use_reader(reader: Reader | None) -> None:
    """Make a reader that was trained in this session the session's, or go back to the shipped one."""
    st.session_state["own_reader"] = reader


@st.cache_resource(show_spinner=False, ttl=RETRY_S)
def shared_reader() -> tuple[Reader | None, str]:
    """Return the shipped reader; where it cannot be loaded None, and the reason, until it is tried again.

    It has the encoder's embeddings, or those of the default one, downloaded the first time.
    """
    try:
        encoder = shared_encoder()
        if encoder.name != DEFAULT_ENCODER:
            model_path(DEFAULT_ENCODER, download_progress(DEFAULT_ENCODER))
        return shipped_reader(encoder), ""
    except (ModelFileError, ModelUnavailableError) as error:
        return None, str(error)


def decoder_name() -> str:
    """Return the name, path or Hugging Face id of the session's decoder."""
    return st.session_state.get("decoder", DECODER)


def load_decoder() -> Decoder:
    """Load the session's decoder, downloading it the first time."""
    return decoder_named(decoder_name())


def choose_decoder(name: str) -> None:
    """Load a decoder and make it the session's; where that fails, the previous one stays."""
    check_source(name)
    decoder_named(name)
    st.session_state["decoder"] = name


def decoder_named(name: str) -> Decoder:
    """Load a decoder if it fits in; another than the server's own replaces the previous one."""
    if name != DECODER:
        return chosen_decoder(name)
    if is_public():
        let_go_later()
    return default_decoder(name)


def let_go_later() -> None:
    """Let the server's own decoder go once it was not used for `IDLE_S`; who works with it keeps it."""
    global _leaving
    if _leaving is not None:
        _leaving.cancel()
    _leaving = Timer(IDLE_S, default_decoder.clear)
    _leaving.daemon = True
    _leaving.start()


@st.cache_resource(max_entries=1, show_spinner=False, scope="session")
def chosen_decoder(name: str) -> Decoder:
    """Load a decoder that a visitor chose."""
    return shared(_decoders, name, lambda: read_decoder(name))


def read_decoder(name: str) -> Decoder:
    """Read a decoder, downloading it the first time."""
    compile_decoders()
    with st.spinner(f"Loading the decoder {escape_markdown(name)}…"):
        return Decoder.load(name, on_progress=download_progress(name))


@st.cache_resource(show_spinner="Compiling for this processor, once: half a minute or so…", show_time=True)
def compile_decoders() -> bool:
    """Return whether the operations of decoders could be compiled, which the first call on a machine does."""
    prepare_compiled().join()
    return has_op_tape()


@st.cache_resource(show_spinner=False)
def default_decoder(name: str) -> Decoder:
    """Load the server's own decoder."""
    return shared(_decoders, name, lambda: read_decoder(name))


@st.cache_data(max_entries=4, show_spinner="Timing the built-in model…")
def read_rate_here(name: str) -> float:
    """Bytes of weights that a decoder reads per second on this machine, by which others are estimated."""
    return read_rate(decoder_named(name))


def embedding_seconds(encoder: Encoder, n_tokens: int) -> float:
    """Return the seconds of reading tokens on the machine that estimates were measured on."""
    return n_tokens * encoder.config.n_layers * encoder.config.d_model**2 / WORK_PER_S


def writing_seconds() -> float:
    """Return the seconds of an answer in sentences on the machine that estimates were measured on.

    0 for a model whose size is not known before it is loaded.
    """
    if "decoder" in st.session_state:  # chosen, and loaded by now
        return reading_seconds(load_decoder(), WRITTEN_TOKENS)
    known = KNOWN_MODELS.get(DECODER)
    return known.size * WRITTEN_TOKENS / READ_PER_S if known else 0.0


def reading_seconds(decoder: Decoder, n_tokens: int) -> float:
    """Return the seconds in which a decoder reads tokens on the machine that estimates were measured on."""
    return n_tokens * weight_bytes(decoder) / READ_PER_S


def token_seconds_here(model: Model, chunks: Sequence[Chunk], max_tokens: int | None = None) -> float:
    """Return the seconds that a model takes for a token on this machine, timed once on some of the chunks."""
    size = round(sum(chunk.n_tokens for chunk in chunks) / max(len(chunks), 1)).bit_length()
    return timed_on(model.fingerprint, model.precision, size, model.token_limit(max_tokens), chunks, model)


@st.cache_data(max_entries=32, show_spinner="Timing the encoder…")
def timed_on(key: str, precision: str, size: int, most: int, _some: Sequence[Chunk], _model: Model) -> float:
    """Time a model in a precision, on chunks of a size, as short ones take longer a token; cached by all.

    The time of long chunks is that by which other work is foreseen.
    """
    seconds, encoder = token_seconds(_model, _some, most), _model.as_encoder
    if encoder is not None and precision == "float32" and size == LONG:
        learn(MACHINE, embedding_seconds(encoder, 1), seconds)
    return seconds


def download_progress(name: str) -> Progress | None:
    """Draw a progress bar for the download of a known model; return its update, None without a download."""
    if name not in KNOWN_MODELS or is_cached(name):
        return None
    size = KNOWN_MODELS[name].size / 1e6
    label = f"Downloading {escape_markdown(name)}"
    bar, transfer, drawn_at = st.progress(0.0, f"{label} ({size:.0f} MB), once…"), Transfer(), [0.0]

    def show(done: int, total: int) -> None:
        transfer(done, total)
        if done >= total:
            bar.empty()
        elif monotonic() - drawn_at[0] > REDRAW_S:
            drawn_at[0] = monotonic()
            bar.progress(transfer.share, f"{label}, once: {transfer.words}")

    return show


def model_words(encoder: Encoder) -> str:
    """Say which encoder is loaded and what it asks for: ``bge-small-en-v1.5: [CLS] pooling, …``."""
    head, prompts = encoder.head, encoder.prompts.in_search
    parts = [f"{joined([pooling_label(name) for name in head.poolings], 'and')} pooling"]
    if n_dense := sum(isinstance(step, Dense) for step in head.steps):
        parts.append(counted(n_dense, "dense layer"))
    if prompts:
        before = joined([{"query": "questions", "document": "documents"}[role] for role in prompts], "and")
        parts.append(f"{'a prompt' if len(prompts) == 1 else 'prompts'} before {before}")
    parts += [f"{encoder.max_tokens:,} tokens", f"{encoder.width():,} dimensions"]
    if encoder.similarity_fn_name != "cosine":
        parts.append(f"made for the {SIMILARITIES[encoder.similarity_fn_name].label}, searched by the cosine")
    return f"{model_name(encoder.name)}: {', '.join(parts)}"


def is_other_family(encoder: Encoder, work: str) -> bool:
    """Whether an encoder is of another family than BERT, which ``work`` is written for; say so then."""
    if encoder.model_type == "bert":
        return False
    st.info(
        f"{work} is written for BERT only, and {escape_markdown(model_name(encoder.name))} is of the family "
        f"{escape_markdown(encoder.model_type)}. Start the app on a model of BERT, such as the default one.",
        icon=":material/info:",
    )
    return True


def limits_of(encoder: Encoder) -> dict[int, str]:
    """Return the token limits worth comparing for an encoder, smallest first, each with its origin."""
    positions = encoder.config.max_positions
    limits = {min(128, positions): "a common size of chunks"}
    if encoder.name == DEFAULT_ENCODER:
        limits = {128: "the length it was trained at"}
    has_table = getattr(encoder.weights, "position_table", None) is not None
    limits[positions] = "the rows of its position table" if has_table else "the most that it can read"
    limits[encoder.max_tokens] = "what sentence-transformers reads"
    return dict(sorted(limits.items()))
