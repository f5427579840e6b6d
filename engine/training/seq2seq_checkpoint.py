"""The training of an encoder-decoder in one file: see `engine.training.checkpoint_file`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import index
from typing import Any

import numpy as np

from engine.errors import InputError, ModelFileError
from engine.models.seq2seq import Seq2SeqConfig
from engine.models.seq2seq_params import parameter_shapes
from engine.training.checkpoint_file import check_sizes, file_bytes, read_about, read_trees
from engine.training.seq2seq_loop import Recipe, Report, Training, Translation
from engine.training.tasks import Pair, Task

FORMAT = "glassbox-seq2seq-1"


def training_bytes(training: Training) -> bytes:
    """Return a training as it was at its last report, as the content of a .safetensors file."""
    about = {
        "format": FORMAT,
        "task": training.task.name,
        "words": training.task.words,
        "config": asdict(training.config),
        "recipe": asdict(training.recipe),
        "step": training.good_moments.step,
        "draws": training.good_draws,
        "failure": training.failure,
        "reports": [_report_json(report) for report in training.reports],
    }
    return file_bytes(training.good, training.good_moments, about)


def read_training(content: bytes, task: Task, expected: Seq2SeqConfig | None = None) -> Training:
    """Read what `training_bytes` gave; the training goes on to the weights that it would have come to.

    Parameters
    ----------
    content
        The file's.
    task
        What it must have learnt.
    expected
        The sizes that it must have, or None where any will do.

    Raises
    ------
    ModelFileError
        It is no checkpoint, it is damaged, or one tensor has not the shape that its own sizes ask for.
    InputError
        It learnt another task, or its sizes are not the expected ones.
    """
    about = read_about(content, FORMAT, "an encoder-decoder")
    _check_task(about, task)
    try:
        recipe, step = _recipe(about["recipe"]), int(about["step"])
        config = recipe.config(len(task.words))
        failure = None if about["failure"] is None else str(about["failure"])
        reports = list(about["reports"])
    except (KeyError, TypeError, ValueError) as error:
        raise _unclear(error) from error
    if expected is not None:
        check_sizes(asdict(config), asdict(expected))
    params, moments = read_trees(content, parameter_shapes(config), step)
    training = Training(task, recipe)
    training.params, training.moments, training.failure = params, moments, failure
    try:
        training.reports = [_report(report, training.exam) for report in reports]
        training.rng.bit_generator.state = about["draws"]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _unclear(error) from error
    if step != (training.reports[-1].step if training.reports else 0) or step > recipe.n_steps:
        raise ModelFileError(
            f"the checkpoint is of step {step} of {recipe.n_steps}, and its reports end elsewhere: it "
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


def _report_json(report: Report) -> dict[str, Any]:
    numbers = {name: value for name, value in vars(report).items() if name != "exam"}
    return numbers | {"outputs": [one.output for one in report.exam]}


def _report(about: Mapping[str, Any], pairs: Sequence[Pair]) -> Report:
    outputs = about["outputs"]
    exam = tuple(Translation(pair, str(output)) for pair, output in zip(pairs, outputs, strict=True))
    loss, rate, norm, seconds = (
        float(about[name]) for name in ("loss", "learning_rate", "gradient_norm", "seconds")
    )
    if not np.isfinite((loss, rate, norm, seconds)).all():
        raise ValueError(f"a report with a loss of {loss} and a gradient of {norm}")
    return Report(int(about["step"]), loss, rate, norm, seconds, exam)


def _unclear(error: Exception) -> ModelFileError:
    return ModelFileError(f"the checkpoint's header cannot be understood ({error}): give another")
