"""Vectors of chunks: few that are missing are embedded at once, many in the background, on request.

Each batch is kept in the cache as it is done, so that the work can be stopped and resumed anywhere. Sessions
that want the same vectors, as one does after a reload, share one job.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import Encoder
from engine.cores import n_cores
from engine.documents.document import Chunk
from engine.layers.tracing import Array
from engine.models.precision import is_slower
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index import Index
from engine.retrieval.vector_cache import MAX_BYTES, VectorCache, cached_encode_all
from engine.wording import counted, readable_time
from ui.jobs import Job, StoppedError, adopted_job, current_job, follow_progress, start_job
from ui.models import embedding_seconds, token_seconds_here
from ui.progress import counting
from ui.setting_values import set_values
from ui.text import show_error
from ui.widgets import SHORT_CPU_S

OFFER_S = 20.0  # of embedding, above which 8 bits are offered
JOB = "embedding"  # the name of the session's job, and the key of its box
AT_ONCE = "embed-at-once"  # in the session's state, the page that begins by itself: "ask", after an upload


@dataclass(frozen=True)
class Wanted:
    """Chunks whose vectors by some poolings are wanted, ``known`` being those that have them all."""

    chunks: Sequence[Chunk] = field(repr=False)
    encoder: Encoder
    poolings: tuple[str, ...]
    max_tokens: int
    cache: VectorCache
    vectors: Mapping[str, Array] = field(repr=False)  # by pooling ``(n_chunks, d_model)``, 0 where unknown
    known: NDArray[np.bool_] = field(repr=False)  # (n_chunks,)

    @property
    def texts(self) -> list[str]:
        """The texts of the chunks."""
        return [chunk.indexed for chunk in self.chunks]

    @property
    def missing(self) -> list[Chunk]:
        """The chunks without vectors, each text once."""
        return list(
            {chunk.indexed: chunk for row, chunk in enumerate(self.chunks) if not self.known[row]}.values()
        )

    @property
    def n_tokens(self) -> int:
        """Tokens that are read to embed the missing ones."""
        return sum(min(chunk.n_tokens, self.max_tokens) for chunk in self.missing)

    @property
    def is_short(self) -> bool:
        """Whether the rest may be embedded unasked."""
        return embedding_seconds(self.encoder, self.n_tokens) * n_cores() <= SHORT_CPU_S

    @property
    def key(self) -> str:
        """What the vectors depend on."""
        digest = sha256()
        for pooling in self.poolings:
            digest.update(repr(embedding_spec(self.encoder, pooling, self.max_tokens)).encode())
        for chunk in self.chunks:
            digest.update(sha256(chunk.indexed.encode("utf-8", "surrogatepass")).digest())
        return digest.hexdigest()

    def embed(self, on_progress: Callable[[int, int], None] | None = None) -> dict[str, Array]:
        """Embed what is missing, batch by batch; return all vectors, by pooling."""
        return cached_encode_all(
            self.texts, self.encoder, self.poolings, self.max_tokens, self.cache, on_progress
        )


class NotEmbeddedError(Exception):
    """A page needs vectors that take long to compute: what is wanted, and the index of what is known."""

    def __init__(self, wanted: Wanted, partial: Index | None = None) -> None:
        super().__init__(f"{counted(len(wanted.missing), 'chunk')} have no vector yet")
        self.wanted, self.partial = wanted, partial


def wanted_vectors(
    chunks: Sequence[Chunk], encoder: Encoder, poolings: Sequence[str], max_tokens: int, cache: VectorCache
) -> Wanted:
    """Look up the vectors of chunks that the cache has."""
    texts = encoder.prompts.before("document", [chunk.indexed for chunk in chunks])
    specs = {pooling: embedding_spec(encoder, pooling, max_tokens) for pooling in poolings}
    found = {pooling: cache.get_many(texts, spec) for pooling, spec in specs.items()}
    known = np.all([known for _, known in found.values()], axis=0)
    vectors = {pooling: own for pooling, (own, _) in found.items()}
    return Wanted(chunks, encoder, tuple(poolings), max_tokens, cache, vectors, known)


def vectors_now(wanted: Wanted) -> Mapping[str, Array]:
    """Return the vectors by pooling, a short rest embedded under a progress bar.

    Raises `NotEmbeddedError` where the rest is long: `show_embedding` draws the button that begins it, and
    how far it is.
    """
    if wanted.known.all():
        return wanted.vectors
    if not wanted.is_short:
        raise NotEmbeddedError(wanted)
    with counting("Embedding", "chunks") as show:
        return wanted.embed(show)


def show_embedding(wanted: Wanted, page: str) -> None:
    """Draw how far the work on vectors is, or the button that begins it with what it costs."""
    key = wanted.key
    job = current_job(JOB, key) or adopted_job(JOB, (id(wanted.cache), key))
    if job is None and st.session_state.get(AT_ONCE) == page:
        del st.session_state[AT_ONCE]
        start_embedding(wanted, page)
        job = current_job(JOB, key)
    seconds = wanted.n_tokens * token_seconds_here(wanted.encoder, wanted.missing)
    if job is not None and not job.done:
        stop_help = "Ends it within a second or two. What is done is kept, and it goes on from there."
        follow_progress(job, key=JOB, stop_help=stop_help)
        offer_8_bits(wanted, page, seconds)
        return
    if job is not None and job.error:
        show_error(f"{job.error}.")
    elif job is not None and not job.stopped:
        show_error(
            f"the vectors do not fit into the {MAX_BYTES // 10**6} MB that are kept: search fewer files"
        )
    n_known = int(wanted.known.sum())
    st.info(
        f"{n_known:,} of {counted(len(wanted.chunks), 'chunk')} have vectors. The others take about "
        f"{readable_time(seconds)} on this machine, in the background; you can go on meanwhile.",
        icon=":material/hourglass_empty:",
    )
    with st.container(horizontal=True):
        st.button(
            f"{'Go on' if n_known else 'Embed them'} · about {readable_time(seconds)}",
            key="embed",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start_embedding,
            args=(wanted, page),
        )
        offer_8_bits(wanted, page, seconds)


def offer_8_bits(wanted: Wanted, page: str, seconds: float) -> None:
    """Draw the button that embeds in 8 bits instead, where that takes less than the ``seconds`` left."""
    if wanted.encoder.precision != "float32" or seconds < OFFER_S or is_slower("int8"):
        return
    all_tokens = sum(min(chunk.n_tokens, wanted.max_tokens) for chunk in wanted.chunks)
    eighth = all_tokens * token_seconds_here(wanted.encoder.with_precision("int8"), wanted.missing)
    if eighth < seconds:
        st.button(
            f"In 8 bits · about {readable_time(eighth)}",
            key="embed-int8",
            icon=":material/bolt:",
            on_click=set_values,
            args=({"precision": "int8", AT_ONCE: page},),
            help="Sets the precision of the model, under “Chunks”, to 8 bits: slightly other vectors "
            "of all chunks.",
        )


def start_embedding(wanted: Wanted, page: str) -> None:
    """Begin to embed what is missing in the background."""
    wanted = replace(wanted, vectors={})  # which the cache has, too

    def work(job: Job[None]) -> None:
        def show(done: int, total: int) -> None:
            job.report(done, total, f"{done:,} of {total:,} chunks have vectors")
            if not job.take_turn():
                raise StoppedError

        with suppress(StoppedError):  # what is done is kept
            wanted.embed(show)

    start_job(JOB, work, (id(wanted.cache), wanted.key), request=wanted.key, page=page)
