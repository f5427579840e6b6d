"""Training of a small decoder in a background thread: started, paused, resumed, saved and loaded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
import streamlit as st

from engine.documents.document import Document
from engine.errors import InputError
from engine.generation.sampling import Sampling
from engine.generation.small import generate
from engine.layers.tracing import Array
from engine.models.parallel import single_threaded_blas
from engine.models.small_decoder import SmallDecoderConfig, forward
from engine.training.language.small_decoder_checkpoint import Checkpoint, checkpoint_of, read_checkpoint
from engine.training.language.small_decoder_loop import TrainingSettings, TrainingState, UpdateReport, train
from engine.training.language.text_stream import (
    Batch,
    even_windows,
    random_windows,
    split_tokens,
    write_tokens,
)
from engine.training.language.vocabulary import Kind, Tokenizer, Vocabulary, learn_vocabulary, token_texts
from ui.data_folder import model_file, write_model
from ui.jobs import Job, drop_job, start_job
from ui.server_settings import read_upload
from ui.tokens import visible_blanks

KEY = "lab-decoder-run"
KEPT_NAME, KEEP_S = "small-decoder", 5.0  # the kept checkpoint, and seconds between two
FLOPS = 9e10  # of a training, on the machine that estimates were measured on
HELD_OUT_WINDOWS = 16
SNAPSHOTS = 20  # in a whole training
LOOKED_AT = 32  # tokens of the fixed text whose attention is drawn
TOKENS_TO_WORD = 20  # tokens searched for the beginning of a word
PROMPT, WRITTEN = 12, 80  # tokens of a sample: given, and generated
SAMPLING = Sampling(temperature=0.8, seed=0)


@dataclass(frozen=True)
class Choice:
    """Settings of a model and its training; ``sizes`` are those of a `SmallDecoderConfig` but ``vocab_size``.

    With ``keep_unknown``, characters that the documents lack are read as U+FFFD instead of being an error.
    """

    kind: Kind
    vocab_size: int
    sizes: dict[str, Any]
    batch_size: int
    settings: TrainingSettings
    keep_unknown: bool


@dataclass(frozen=True)
class Snapshot:
    """A sample of text and the attention, float16 ``(n_layers, n_heads, n, n)``, after one update."""

    update: int
    sample: str
    attention: Array


@dataclass
class TrainingSession:
    """A training with its data and its results."""

    checkpoint: Checkpoint
    tokenizer: Tokenizer
    settings: TrainingSettings
    batches: Iterator[Batch]
    held_out: Batch
    looked_at: Array  # the held-out tokens whose attention is drawn
    folder: TemporaryDirectory[str]  # of the file of the corpus's tokens
    n_tokens: int  # of the corpus
    step_tokens: int  # that a step reads of them
    # the job's thread appends to them, and to the snapshots
    reports: list[UpdateReport] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    job: Job[None] | None = None  # of the steps, None before the first one
    deleted: bool = False

    @property
    def state(self) -> TrainingState:
        """The state of the training."""
        return self.checkpoint.state

    @property
    def running(self) -> bool:
        """Whether the job is running, also while it is pausing."""
        return self.job is not None and not self.job.done

    @property
    def pausing(self) -> bool:
        """Whether the job was asked to stop and has not ended yet."""
        return self.job is not None and not self.job.done and self.job.stopped

    @property
    def diverged(self) -> str | None:
        """The reason why training diverged, if it did."""
        return self.reports[-1].diverged if self.reports else None

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.state.n_updates >= self.settings.n_steps

    def pause(self) -> None:
        """Stop after the current step, and wait for it."""
        if self.job is not None:
            self.job.stop()
            self.job.wait()  # returns at the end, since the job writes no text

    def keep(self, file: Path | None) -> None:
        """Write the checkpoint into a file, if the session's work is kept."""
        if not self.deleted and (problem := write_model(file, self.checkpoint.to_bytes)):
            raise InputError(f"the model {problem}")


def current() -> TrainingSession | None:
    """Return the browser session's training, if there is one."""
    return st.session_state.get(KEY)


def begin(choice: Choice, documents: Sequence[Document]) -> TrainingSession:
    """Create a model and its vocabulary, and store them as the browser session's training."""
    text = "\n\n".join(document.text for document in documents)
    vocabulary = learn_vocabulary(choice.kind, text, choice.vocab_size, choice.keep_unknown)
    config = SmallDecoderConfig(vocabulary.size, **choice.sizes)
    checkpoint = Checkpoint(TrainingState.fresh(config, choice.settings.seed), vocabulary)
    return store(checkpoint, choice, documents)


def restore(content: bytes, choice: Choice, documents: Sequence[Document]) -> TrainingSession:
    """Replace the browser session's training by a checkpoint, which must have the same sizes."""
    now = current()
    parts = read_upload(read_checkpoint, "the checkpoint", content)
    checkpoint = checkpoint_of(*parts, None if now is None else now.state.config)
    try:
        return store(checkpoint, choice, documents)
    except InputError as error:
        raise InputError(
            f"the checkpoint cannot continue on the chosen documents ({error}): choose those that it was "
            "trained on"
        ) from error


def store(checkpoint: Checkpoint, choice: Choice, documents: Sequence[Document]) -> TrainingSession:
    """Write the corpus's tokens to a file, and store a training on them for the browser session."""
    tokenizer, config = checkpoint.vocabulary.tokenizer(), checkpoint.state.config
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="glassbox-tokens-")
    tokens = write_tokens(
        (document.text + "\n\n" for document in documents if document.text),
        lambda text: corpus_ids(tokenizer, checkpoint.vocabulary, text),
        config.vocab_size,
        Path(folder.name) / "tokens",
    )
    training, held_out = split_tokens(tokens, config.context)
    rng = np.random.default_rng([choice.settings.seed, checkpoint.state.n_updates])
    # The first held-out tokens, from the beginning of a word if one is near.
    n_tokens = min(LOOKED_AT, config.context)
    first = np.asarray(held_out[: n_tokens + TOKENS_TO_WORD], np.int64)
    ends = [text[-1:].isspace() for text in token_texts(tokenizer, first[:-n_tokens].tolist())]
    start = ends.index(True) + 1 if True in ends else 0
    session = TrainingSession(
        checkpoint,
        tokenizer,
        choice.settings,
        random_windows(training, choice.batch_size, config.context, rng),
        even_windows(held_out, HELD_OUT_WINDOWS, config.context),
        first[start : start + n_tokens],
        folder,
        len(tokens),
        choice.batch_size * config.context,
    )
    session.snapshots.append(snapshot(session))
    reset()
    st.session_state[KEY] = session
    return session


def corpus_ids(tokenizer: Tokenizer, vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the ids of a text; line breaks that the vocabulary lacks become spaces or are left out."""
    if vocabulary.kind == "characters" and "\n" not in vocabulary.tokens:
        text = text.replace("\n", " ") if " " in vocabulary.tokens else text.replace("\n", "")
    return tokenizer.encode(text).ids


def resume(session: TrainingSession, settings: TrainingSettings) -> None:
    """Resume the training in a new job, without the steps that divergence undid; keep checkpoints."""
    session.settings, step = settings, session.state.n_updates
    session.reports = [report for report in session.reports if report.update <= step]
    session.snapshots = [seen for seen in session.snapshots if seen.update <= step]
    file = model_file(KEPT_NAME)

    def work(job: Job[None]) -> None:
        every, kept_at = max(settings.n_steps // SNAPSHOTS, 1), monotonic()
        try:
            with single_threaded_blas():
                for report in train(session.state, session.batches, session.held_out, settings):
                    session.reports.append(report)
                    if report.diverged is None and (report.update % every == 0 or session.finished):
                        session.snapshots.append(snapshot(session))
                    job.report(session.state.n_updates, settings.n_steps, "")
                    if monotonic() - kept_at > KEEP_S:
                        session.keep(file)
                        kept_at = monotonic()
                    if not job.take_turn():
                        return
        finally:
            session.keep(file)

    n_parameters = sum(array.size for array in session.state.params.values())
    n_tokens = (settings.n_steps - step) * session.step_tokens
    cost = "training", training_seconds(n_parameters, n_tokens)
    session.job = start_job("training", work, page="learn/decoder", cost=cost)


def training_seconds(n_parameters: int, n_tokens: int) -> float:
    """Return the seconds of a training on the machine that estimates were measured on."""
    return 6 * n_parameters * n_tokens / FLOPS


def delete(session: TrainingSession) -> None:
    """Delete a training and its kept checkpoint."""
    session.deleted = True
    reset()
    if (file := model_file(KEPT_NAME)) is not None:
        file.unlink(missing_ok=True)


def reset() -> None:
    """Delete the browser session's training."""
    drop_job("training")
    for key in (KEY, "lab-decoder-written"):
        st.session_state.pop(key, None)


def snapshot(session: TrainingSession) -> Snapshot:
    """Return a sample of the current model's text, and its attention on the fixed text."""
    state, weights = session.state, []

    def keep_weights(name: str, value: Array) -> Array:
        if name.endswith("attention.weights"):
            weights.append(value.astype(np.float16))
        return value

    forward(state.params, session.looked_at, state.config, keep_weights)
    prompt = session.looked_at[:PROMPT].tolist()
    steps = generate(state.params, state.config, prompt, WRITTEN, SAMPLING)
    written = [step.token_id for step in steps]
    return Snapshot(state.n_updates, session.tokenizer.decode([*prompt, *written]), np.stack(weights))


def texts(session: TrainingSession, ids: Sequence[int]) -> list[str]:
    """Return the text of each token, with visible white space."""
    return [visible_blanks(text) for text in token_texts(session.tokenizer, ids)]
