"""Checkpoint of an encoder-decoder in training, in the format of `checkpoint_file`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import index
from typing import Any

import numpy as np

from engine.errors import InputError, ModelFileError
from engine.models.seq2seq import Seq2SeqConfig
from engine.models.seq2seq_params import parameter_shapes
from engine.training.language.checkpoint_file import (
    check_sizes,
    file_bytes,
    read_about,
    read_trees,
    reading_header,
)
from engine.training.language.seq2seq_loop import ExamReport, Recipe, Training, Translation
from engine.training.language.tasks import Pair, Task

FORMAT = "glassbox-seq2seq-1"
NUMBERS = ("loss", "learning_rate", "gradient_norm", "seconds")  # of a report


def training_bytes(training: Training) -> bytes:
    """Return the state of a training at its last report, as the content of a .safetensors file."""
    about = {
        "format": FORMAT,
        "task": training.task.name,
        "words": training.task.words,
        "config": asdict(training.config),
        "recipe": asdict(training.recipe),
        "step": training.good_moments.n_updates,
        "draws": training.good_draws,
        "failure": training.failure,
        "reports": [_report_to_json(report) for report in training.reports],
    }
    return file_bytes(training.good, training.good_moments, about)


def read_training(content: bytes, task: Task, expected: Seq2SeqConfig | None = None) -> Training:
    """Read a training from the content of its file; continued, it ends with the same weights.

    The task must be the one that it was trained on; ``expected`` sizes are checked.

    Raises
    ------
    ModelFileError
        It is not a checkpoint, is damaged, or has a tensor of another shape than its sizes say.
    InputError
        It was trained on another task, or its sizes are not the expected ones.
    """
    about = read_about(content, FORMAT, "an encoder-decoder")
    _check_task(about, task)
    with reading_header():
        recipe, n_updates = _recipe(about["recipe"]), int(about["step"])
        config = recipe.config(len(task.words))
        failure = None if about["failure"] is None else str(about["failure"])
        reports = list(about["reports"])
    check_sizes(config, expected)
    params, moments = read_trees(content, parameter_shapes(config), n_updates)
    training = Training(task, recipe)
    training.params, training.moments, training.failure = params, moments, failure
    with reading_header():
        training.reports = [_report_from_json(report, training.exam) for report in reports]
        training.rng.bit_generator.state = about["draws"]
    reported = training.reports[-1].n_updates if training.reports else 0
    if n_updates != reported or n_updates > recipe.n_steps:
        raise ModelFileError(
            f"the checkpoint is of step {n_updates} of {recipe.n_steps}, and its reports end elsewhere: it "
            "was put together from two; give another"
        )
    training.keep()
    return training


def _check_task(about: Mapping[str, Any], task: Task) -> None:
    if about.get("task") != task.name:
        raise InputError(
            f"the checkpoint learnt “{str(about.get('task'))[:60]}”, not “{task.name}”: choose that task, "
            "then load it"
        )
    if about.get("words") != list(task.words):
        raise InputError(
            f"the checkpoint knows other words than the {len(task.words)} of “{task.name}”: give one that "
            "was saved by this version"
        )


def _recipe(about: Mapping[str, Any]) -> Recipe:
    settings: dict[str, Any] = {name: float(about[name]) for name in ("learning_rate", "label_smoothing")}
    return Recipe(**settings | {name: index(about[name]) for name in about.keys() - settings.keys()})


def _report_to_json(report: ExamReport) -> dict[str, Any]:
    numbers = {name: getattr(report, name) for name in NUMBERS}
    return {"step": report.n_updates} | numbers | {"outputs": [one.output for one in report.exam]}


def _report_from_json(about: Mapping[str, Any], pairs: Sequence[Pair]) -> ExamReport:
    outputs = about["outputs"]
    exam = tuple(Translation(pair, str(output)) for pair, output in zip(pairs, outputs, strict=True))
    numbers = {name: float(about[name]) for name in NUMBERS}
    if not np.isfinite(list(numbers.values())).all():
        raise ValueError(
            f"a report with a loss of {numbers['loss']} and a gradient of {numbers['gradient_norm']}"
        )
    return ExamReport(int(about["step"]), **numbers, exam=exam)
