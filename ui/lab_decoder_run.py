"""A small decoder in training in a thread of its own: begun, paused, gone on with, saved and loaded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import streamlit as st

from engine.documents.document import Document
from engine.errors import InputError
from engine.generation.sampling import Sampling
from engine.generation.small import generate
from engine.layers.tracing import Array
from engine.models.parallel import single_threaded_blas
from engine.models.small_decoder import SmallDecoderConfig, forward
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.training.checkpoint import Checkpoint, read_checkpoint
from engine.training.loop import StepReport, Trainee, TrainingSettings, train
from engine.training.text_stream import Batch, even_windows, random_windows, split_tokens, write_tokens
from engine.training.vocabulary import (
    Kind,
    TextTokenizer,
    Vocabulary,
    learn_vocabulary,
    token_texts,
    tokenizer_of,
)
from ui.jobs import Job

KEY = "lab-decoder-run"
HELD_OUT_WINDOWS = 16
SNAPSHOTS = 20  # of a whole training
LOOKED_AT = 32  # tokens of the fixed text whose attention is drawn
NEAR = 20  # tokens among which a word may begin
PROMPT, WRITTEN = 12, 80  # tokens of a sample: given, and written on
SAMPLING = Sampling(temperature=0.8)


@dataclass(frozen=True)
class Choice:
    """What to train, and how; ``sizes`` are those of a `SmallDecoderConfig`, without its vocabulary.

    ``keep_unknown`` says that characters which the documents lack are read as U+FFFD, and not refused.
    """

    kind: Kind
    vocab_size: int
    sizes: tuple[tuple[str, object], ...]
    batch_size: int
    settings: TrainingSettings
    keep_unknown: bool = False


@dataclass(frozen=True)
class Snapshot:
    """What the model wrote and where it looked at one step: float16 ``(n_layers, n_heads, n, n)``."""

    step: int
    sample: str
    attention: Array


@dataclass
class Run:
    """A training: what learns, what from, and what it told; the job's thread adds to the last two.

    ``looked_at`` are the held-out tokens whose attention is drawn, ``folder`` holds the corpus's
    ``n_tokens``, of which a step reads ``step_tokens``.
    """

    checkpoint: Checkpoint
    tokenizer: TextTokenizer
    settings: TrainingSettings
    batches: Iterator[Batch]
    held_out: Batch
    looked_at: Array
    folder: TemporaryDirectory[str]
    n_tokens: int
    step_tokens: int
    reports: list[StepReport] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    job: Job[None] | None = None

    @property
    def trainee(self) -> Trainee:
        """The model, in training."""
        return self.checkpoint.trainee

    @property
    def running(self) -> bool:
        """Whether it learns right now."""
        return self.job is not None and not self.job.done

    @property
    def diverged(self) -> str | None:
        """Why training ended before its time, if it did."""
        return self.reports[-1].diverged if self.reports else None

    @property
    def finished(self) -> bool:
        """Whether all steps are made."""
        return self.trainee.step >= self.settings.n_steps


def current() -> Run | None:
    """Return this session's training, if there is one."""
    run: Run | None = st.session_state.get(KEY)
    return run


def begin(choice: Choice, documents: Sequence[Document], wordpiece: WordPieceTokenizer) -> Run:
    """Make a new model and its vocabulary, and keep them as this session's training.

    Raises
    ------
    GlassboxError
        The corpus is too short, or the sizes are of no model.
    """
    text = "\n\n".join(document.text for document in documents)
    vocabulary = learn_vocabulary(choice.kind, text, choice.vocab_size, wordpiece, choice.keep_unknown)
    config = SmallDecoderConfig(vocabulary.size, **dict(choice.sizes))  # type: ignore[arg-type]
    checkpoint = Checkpoint(Trainee.fresh(config, choice.settings.seed), vocabulary)
    return keep(checkpoint, choice, documents, wordpiece)


def restore(
    content: bytes, choice: Choice, documents: Sequence[Document], wordpiece: WordPieceTokenizer
) -> Run:
    """Make a checkpoint this session's training; where there is one, its sizes must be the same.

    Raises
    ------
    GlassboxError
        It is no checkpoint, of another model, or the corpus has a character that it does not know.
    """
    now = current()
    checkpoint = read_checkpoint(content, None if now is None else now.trainee.config)
    return keep(checkpoint, choice, documents, wordpiece)


def keep(
    checkpoint: Checkpoint, choice: Choice, documents: Sequence[Document], wordpiece: WordPieceTokenizer
) -> Run:
    """Write the corpus's tokens to a file and make a training of them, this session's."""
    tokenizer, config = tokenizer_of(checkpoint.vocabulary, wordpiece), checkpoint.trainee.config
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="glassbox-tokens-")
    tokens = write_tokens(
        (document.text + "\n\n" for document in documents if document.text),
        lambda text: known(tokenizer, checkpoint.vocabulary, text),
        config.vocab_size,
        Path(folder.name) / "tokens",
    )
    training, held_out = split_tokens(tokens, config.context)
    rng = np.random.default_rng([choice.settings.seed, checkpoint.trainee.step])
    run = Run(
        checkpoint,
        tokenizer,
        choice.settings,
        random_windows(training, choice.batch_size, config.context, rng),
        even_windows(held_out, HELD_OUT_WINDOWS, config.context),
        held_out_text(held_out, tokenizer, min(LOOKED_AT, config.context)),
        folder,
        len(tokens),
        choice.batch_size * config.context,
    )
    run.snapshots.append(snapshot(run))
    reset()
    st.session_state[KEY] = run
    return run


def known(tokenizer: TextTokenizer, vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the ids of a text; what the line ends between documents need is there in every vocabulary."""
    if vocabulary.kind == "characters" and "\n" not in vocabulary.tokens:
        text = text.replace("\n", " ") if " " in vocabulary.tokens else text.replace("\n", "")
    return tokenizer.encode(text).ids


def held_out_text(held_out: Array, tokenizer: TextTokenizer, n_tokens: int) -> Array:
    """Return some tokens of the held-out text, from the beginning of a word on where one is near."""
    first = np.asarray(held_out[: n_tokens + NEAR], np.int64)
    ends = [text[-1:].isspace() for text in token_texts(tokenizer, first[:-n_tokens].tolist())]
    start = ends.index(True) + 1 if True in ends else 0
    return first[start : start + n_tokens]


def resume(run: Run, settings: TrainingSettings) -> None:
    """Train on where the training is; what a training that diverged told of undone steps is forgotten."""
    run.settings, step = settings, run.trainee.step
    run.reports = [report for report in run.reports if report.step <= step]
    run.snapshots = [seen for seen in run.snapshots if seen.step <= step]

    def work(job: Job[None]) -> None:
        every = max(run.settings.n_steps // SNAPSHOTS, 1)
        with single_threaded_blas():
            for report in train(run.trainee, run.batches, run.held_out, run.settings):
                run.reports.append(report)
                if report.diverged is None and (report.step % every == 0 or run.finished):
                    run.snapshots.append(snapshot(run))
                if job.stopped:
                    return

    run.job = Job(work)


def pause(run: Run) -> None:
    """Stop after the step that is being made, and wait for it."""
    if run.job is not None:
        run.job.stop()
        run.job.result()


def reset() -> None:
    """Forget this session's training."""
    run = current()
    if run is not None and run.job is not None:
        run.job.stop()
    for key in (KEY, "lab-decoder-written", "lab-decoder-timing"):
        st.session_state.pop(key, None)


def snapshot(run: Run) -> Snapshot:
    """Look at the model as it is: a sample, and its attention on the fixed text."""
    trainee, told = run.trainee, []

    def keep_weights(name: str, value: Array) -> Array:
        if name.endswith("attention.weights"):
            told.append(value.astype(np.float16))
        return value

    forward(trainee.params, run.looked_at, trainee.config, keep_weights)
    prompt = run.looked_at[:PROMPT].tolist()
    steps = generate(trainee.params, trainee.config, prompt, WRITTEN, SAMPLING)
    written = [step.token_id for step in steps]
    return Snapshot(trainee.step, run.tokenizer.decode([*prompt, *written]), np.stack(told))


def texts(run: Run, ids: Sequence[int]) -> list[str]:
    """Text of each token, its white space made visible."""
    shown = {" ": "␣", "\n": "⏎", "\t": "⇥"}
    plain = token_texts(run.tokenizer, ids)
    return ["".join(shown.get(character, character) for character in text) for text in plain]


def prompt_ids(run: Run, prompt: str) -> list[int]:
    """Return the ids of a prompt.

    Raises
    ------
    InputError
        It is empty, or has a character that the vocabulary lacks.
    """
    ids = run.tokenizer.encode(prompt).ids
    if not ids:
        raise InputError("the prompt has no token: type at least one character")
    return ids
