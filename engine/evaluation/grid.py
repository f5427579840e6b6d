"""Grids of settings: every combination of the values given for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from ..documents.splitters import SPLITTERS, check_splitting
from ..errors import InputError
from ..models.embedding_head import MODEL_DEFAULT
from ..retrieval.embedding_model import Model, embedding_spec
from ..retrieval.retrievers import reason_unavailable
from ..settings import SWEPT, Configuration, check_value
from ..wording import model_name

N_SPECIAL = 2  # [CLS] and [SEP] around every text, in all encoders of the BERT family


@dataclass(frozen=True)
class LeftOut:
    """A combination that is impossible, or the same as another, and the reason."""

    configuration: Configuration
    why: str


@dataclass(frozen=True)
class Grid:
    """The combinations to measure, and those left out."""

    configurations: tuple[Configuration, ...]
    left_out: tuple[LeftOut, ...] = ()


def grid(**values: Sequence[Any]) -> Grid:
    """Combine values of settings, by their keys; repeated values count once, others have their defaults."""
    for key, given in values.items():
        check_values(key, given)
    axes = {key: dict.fromkeys(values.get(key, [usual])) for key, usual in asdict(Configuration()).items()}
    first_overlap = next(iter(axes["overlap"]))
    configurations = [Configuration(*each) for each in product(*axes.values())]
    return without_problems(configurations, lambda one: splitting_problem(one, first_overlap))


def check_values(key: str, values: Sequence[Any]) -> None:
    """Raise `InputError` unless a sweep varies a setting, and it has these values, one or more."""
    if key not in SWEPT:
        raise InputError(f"no sweep varies {key!r}: choose of {', '.join(SWEPT)}")
    if isinstance(values, str) or not values:
        raise InputError(f"no {key} is given: give one or more, as a list")
    for value in values:
        check_value(key, value)


def fitting(configurations: Grid, models: Mapping[str, Model]) -> Grid:
    """Leave out what a model does not support: poolings without weights, MaxSim without tokens.

    The pooling "own" becomes the strategy that a model's own pooling is, if it is one of `POOLINGS`. Next to
    other poolings it is meant for models whose own is not, and its combinations with others are dropped. The
    token limit of a model that takes none becomes its own.
    """
    is_only = all(one.pooling == MODEL_DEFAULT for one in configurations.configurations)
    asked = dict.fromkeys(
        resolved(one, models[one.model])
        for one in configurations.configurations
        if one.pooling != MODEL_DEFAULT or models[one.model].pooling == MODEL_DEFAULT or is_only
    )
    kept = without_problems(list(asked), lambda one: reason_left_out(one, models[one.model]))
    return Grid(kept.configurations, configurations.left_out + kept.left_out)


def resolved(configuration: Configuration, model: Model) -> Configuration:
    """Replace the pooling "own" by its strategy, and drop a token limit that the model does not take."""
    return replace(
        configuration,
        pooling=model.pooling if configuration.pooling == MODEL_DEFAULT else configuration.pooling,
        max_tokens=configuration.max_tokens if model.sets_limit else None,
    )


def without_problems(given: Sequence[Configuration], problem: Callable[[Configuration], str]) -> Grid:
    """Return the configurations without a problem; those with one are left out."""
    problems = [(one, problem(one)) for one in given]
    return Grid(
        tuple(one for one, why in problems if not why),
        tuple(LeftOut(one, why) for one, why in problems if why),
    )


def splitting_problem(configuration: Configuration, first_overlap: int) -> str:
    """Return why a splitting is impossible or superfluous, empty if it is neither."""
    if SPLITTERS[configuration.splitter].is_sliding and configuration.overlap != first_overlap:
        return f"splitter {configuration.splitter!r} ignores the overlap: {first_overlap} stands for all"
    return error_message(lambda: check_splitting(configuration.splitting, N_SPECIAL))


def reason_left_out(configuration: Configuration, model: Model) -> str:
    """Return why a model cannot do a configuration, empty if it can."""
    if reason := reason_unavailable(configuration.retriever, model):
        return reason
    if configuration.pooling == MODEL_DEFAULT and model.pooling != MODEL_DEFAULT:
        return f"pooling 'own' of {model_name(model.name)} is {model.pooling!r}: give that"
    if configuration.prompts != "own" and not model.prompts.in_search:
        return f"{model_name(model.name)} has no prompts to leave out: 'own' stands for both"
    if configuration.pooling == "idf" and model.as_encoder:  # its weights are computed from the chunks
        return error_message(lambda: model.token_limit(configuration.max_tokens))
    return error_message(
        lambda: embedding_spec(
            model.with_precision(configuration.precision), configuration.pooling, configuration.max_tokens
        )
    )


def error_message(check: Callable[[], object]) -> str:
    """Return the message of the `InputError` that a check raises, empty if it raises none."""
    try:
        check()
    except InputError as error:
        return str(error)
    return ""
