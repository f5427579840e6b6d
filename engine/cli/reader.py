"""The command that trains a reader of answers: ``python -m engine train-reader``."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import numpy as np
import typer

from ..errors import InputError
from ..models.encoder import Encoder
from ..models.reader import Reader
from ..progress import say, status_line
from ..training.reading.articles import read_squad
from ..training.reading.examples import ReadingSet, kind_counts, reading_set, sample
from ..training.reading.loop import ReadingReport, ReadingSettings, ReadingState, quality, train
from ..training.reading.rewording import near_tokens
from ..weights.catalog import DEFAULT_ENCODER
from ..wording import counted, readable_time
from .loading import load_encoder
from .main import app
from .options import MODELS, EncoderOption, JsonOption, check_folder_of, grouped, whole_number
from .printing import print_json

CHECKPOINT, READER = "checkpoint.safetensors", "reader.safetensors"
HELD_OUT = 45  # every such article is held out
N_MEASURED = 300  # examples of it that are read each time
MEASURE_EVERY = 500  # updates
SAVE_S = 300.0  # between two checkpoints
STOPPING = (signal.SIGINT, signal.SIGTERM)
DEFAULTS = ReadingSettings()


@app.command(name="train-reader", rich_help_panel=MODELS)
@grouped
def train_reader(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Questions in SQuAD's format, .json or .json.gz.")
    ],
    output: Annotated[
        Path, typer.Option(help=f"The folder of {CHECKPOINT} and {READER}; made where there is none.")
    ],
    tune: Annotated[
        Path | None, typer.Option(help="A file that is not trained on: its F1 is shown as well.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after so many minutes of training.", show_default="when all is read"),
    ] = None,
    crops: Annotated[
        str, typer.Option(help="Passes over the questions, each with the tokens of a passage that it reads.")
    ] = ",".join(map(str, DEFAULTS.crops)),
    updates: Annotated[
        int | None, typer.Option(min=1, help="End after so many updates.", show_default="all passes")
    ] = None,
    start_decay: Annotated[
        int,
        typer.Option(
            min=0,
            help=f"The learning rate falls over the last {DEFAULTS.decay_share:.0%} of the updates that "
            "follow this one.",
        ),
    ] = 0,
    learning_rate: Annotated[float, typer.Option(help="The highest learning rate.")] = DEFAULTS.learning_rate,
    layers: Annotated[
        int, typer.Option(min=1, help="Last layers of the encoder that are trained.")
    ] = DEFAULTS.n_last,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of examples, order, crops, dropout.")
    ] = DEFAULTS.seed,
    start: Annotated[
        Path | None, typer.Option("--from", help=f"A {READER} to train on, with a fresh optimiser.")
    ] = None,
    average: Annotated[
        Path | None,
        typer.Option(
            help=f"A {READER} of an earlier training: the mean of its weights and these is written."
        ),
    ] = None,
    model: EncoderOption = DEFAULT_ENCODER,
    as_json: JsonOption = False,
) -> None:
    """Train a reader, which marks the answer in a passage, on questions with answers.

    Every 45th article is held out, and its F1 shown. A checkpoint and the reader are written every five
    minutes, at the end and on Ctrl-C; the same command goes on from the checkpoint.
    """
    passes = tuple(whole_number("--crops", part.strip()) for part in crops.split(","))
    if min(passes) < 1:
        raise InputError(f"--crops has {min(passes)}: give 1 token or more")
    settings = ReadingSettings(crops=passes, learning_rate=learning_rate, n_last=layers, seed=seed)
    articles = [article for path in files for article in read_squad(path)]
    tuning = read_squad(tune) if tune else []
    if not any(article.questions for article in articles):
        raise InputError(f"{', '.join(map(str, files))}: no questions there: give files with some")
    path = output / CHECKPOINT
    check_folder_of(output, "--output")
    output.mkdir(exist_ok=True)
    encoder = load_encoder(model)
    if not 1 <= layers <= encoder.config.n_layers:
        raise InputError(f"--layers {layers}: {model} has {encoder.config.n_layers}")
    other = Reader.load(average, encoder) if average else None  # before hours of training
    state = begin(path, start, encoder, settings)
    n_held = len(articles[::HELD_OUT]) if len(articles) > 1 else 0
    trained = [each for number, each in enumerate(articles) if number % HELD_OUT] if n_held else articles
    say(f"Making examples of {counted(len(trained), 'article')}, {n_held:,} held out")
    examples = reading_set(trained, encoder.tokenizer, seed=seed)
    share = float(np.mean(examples.examples[:, 2] < 0))
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in kind_counts(examples).items() if n)
    n_examples = counted(len(examples.examples), "example")
    say(f"{n_examples}, {share:.0%} without an answer ({kinds}) in a pass")
    measured = {
        name: sample(reading_set(own, encoder.tokenizer, seed=seed + 1), N_MEASURED, seed)
        for name, own in {"held out": articles[::HELD_OUT][:n_held], "tune": tuning}.items()
        if own
    }
    texts = (article.document.text for article in trained)
    near = near_tokens(texts, encoder.tokenizer, encoder.weights.token_table)
    updates_made = train(state, examples, encoder, settings, start_decay, updates, near)
    finished = run(updates_made, state, measured, encoder, path, minutes)
    n_made = state.moments.n_updates
    if other is not None and finished:
        state = state.averaged_with(other, settings)
        save_reader(state, path, encoder)
    found = {name: quality(state, each, encoder) for name, each in measured.items()}
    if as_json:
        content: dict[str, Any] = {"checkpoint": str(path), "updates": n_made}
        content |= {"finished": finished, "loss": state.loss}
        print_json(content | {"quality": {name: asdict(each) for name, each in found.items()}})
        return
    for name, each in found.items():
        print(f"{name}: {each.words}")
    if finished:
        reader = path.with_name(READER)
        print(f"Trained: {reader} is the reader; train on from it with --from {reader} and another --output")
    else:
        print(f"Stopped at update {n_made:,}: run the same command again to go on from {path}")


def begin(path: Path, start: Path | None, encoder: Encoder, settings: ReadingSettings) -> ReadingState:
    """Return the state of the folder's checkpoint, else of the given reader, else a fresh one."""
    state = ReadingState.fresh(encoder, settings)
    if path.exists():
        state.load(path)
        say(f"Going on from {path}, update {state.moments.n_updates:,}")
        if start is not None:
            say(f"--from {start} is not read, as {path} is there")
    elif start is not None:
        state = ReadingState.of(Reader.load(start, encoder), settings)
        say(f"Starting from the weights of {start}")
    return state


def run(
    reports: Iterator[ReadingReport],
    state: ReadingState,
    measured: dict[str, ReadingSet],
    encoder: Encoder,
    path: Path,
    minutes: float | None,
) -> bool:
    """Train until the end, or the time is over, or Ctrl-C, and save; return whether the end was reached."""
    report = None
    began = saved = time.monotonic()
    most_s = float("inf") if minutes is None else 60 * minutes
    first = state.moments.n_updates
    with stop_signals() as stopped, status_line() as show:
        for report in reports:
            now = time.monotonic()
            per_update = (now - began) / (report.update - first)
            left = min(per_update * (report.n_updates - report.update), max(0.0, most_s - (now - began)))
            show(
                f"Update {report.update:,} of {report.n_updates:,}: loss {report.loss:.3f}, "
                f"{report.tokens_per_s:,.0f} tokens/s, {readable_time(left)} left",
                report.update / report.n_updates,
            )
            if now - saved > SAVE_S:
                save(state, path, encoder)
                saved = now
            if report.update % MEASURE_EVERY == 0:
                for name, each in measured.items():
                    say(f"{name}: {quality(state, each, encoder).words}")
            if stopped.is_set() or now - began > most_s:
                break
        if report is not None:
            save(state, path, encoder)
    return report is None or report.update == report.n_updates


@contextmanager
def stop_signals() -> Iterator[Event]:
    """Yield an event that Ctrl-C sets, or a request to end: the update at work is still made whole."""
    stopped = Event()
    before = {each: signal.signal(each, lambda *_: stopped.set()) for each in STOPPING}
    try:
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def save(state: ReadingState, path: Path, encoder: Encoder) -> None:
    """Write a checkpoint and the reader; raise `InputError` where that fails, and those before stay."""
    with full_disk_named(path, f"the checkpoint of update {state.moments.n_updates:,}"):
        state.save(path)
    save_reader(state, path, encoder)


def save_reader(state: ReadingState, path: Path, encoder: Encoder) -> None:
    """Write the reader next to its checkpoint; raise `InputError` where that fails."""
    with full_disk_named(path, "the reader"):
        state.reader(encoder).save(path.with_name(READER))


@contextmanager
def full_disk_named(path: Path, what: str) -> Iterator[None]:
    """Raise `InputError` where a file cannot be written; what is at ``path`` stays."""
    try:
        yield
    except OSError as error:
        kept = f"the one before stays in {path}" if path.exists() else "nothing is saved"
        raise InputError(
            f"{what} cannot be written ({error.strerror}), and {kept}: make room and run the same command "
            "again"
        ) from error
