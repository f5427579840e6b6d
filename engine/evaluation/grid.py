"""Grids of settings: every combination of the values given for each."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from engine.documents.splitters import DEFAULT_SPLITTING, SPLITTERS, Splitting, check_splitting
from engine.errors import InputError
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import OWN
from engine.models.precision import PRECISIONS
from engine.models.prompts import PROMPT_USES
from engine.retrieval.embedding_model import Model, embedding_spec
from engine.retrieval.retrievers import DEFAULT_RETRIEVER, RETRIEVERS, reason_unavailable
from engine.weights.catalog import DEFAULT_ENCODER

N_SPECIAL = 2  # [CLS] and [SEP] around every text, in all encoders of the BERT family


@dataclass(frozen=True)
class Cell:
    """One combination of settings.

    Attributes
    ----------
    splitter, chunk_tokens, overlap
        How documents are cut, as in `Splitting`.
    model
        Name of the model, a key of the sweep's models.
    max_tokens
        Token limit of a text, None for the model's own.
    pooling
        One of `POOLINGS`, or ``"own"`` for the head of the model itself.
    retriever
        One of `RETRIEVERS`.
    k
        Number of chunks retrieved.
    prompts
        One of `PROMPT_USES`.
    precision
        One of `PRECISIONS`.
    """

    splitter: str = DEFAULT_SPLITTING.method
    chunk_tokens: int = DEFAULT_SPLITTING.chunk_tokens
    overlap: int = DEFAULT_SPLITTING.overlap
    model: str = DEFAULT_ENCODER
    max_tokens: int | None = None
    pooling: str = "mean"
    retriever: str = DEFAULT_RETRIEVER
    k: int = 5
    prompts: str = "own"
    precision: str = "float32"

    @property
    def splitting(self) -> Splitting:
        """How documents are cut."""
        return Splitting(self.splitter, self.chunk_tokens, self.overlap)


@dataclass(frozen=True)
class LeftOut:
    """A combination that is impossible, or the same as another, and the reason."""

    cell: Cell
    why: str


@dataclass(frozen=True)
class Grid:
    """The combinations to measure, and those left out."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...] = ()


def grid(
    splitters: Sequence[str] = (DEFAULT_SPLITTING.method,),
    chunk_tokens: Sequence[int] = (DEFAULT_SPLITTING.chunk_tokens,),
    overlaps: Sequence[int] = (DEFAULT_SPLITTING.overlap,),
    models: Sequence[str] = (DEFAULT_ENCODER,),
    poolings: Sequence[str] = ("mean",),
    retrievers: Sequence[str] = (DEFAULT_RETRIEVER,),
    ks: Sequence[int] = (5,),
    max_tokens: Sequence[int | None] = (None,),
    prompts: Sequence[str] = ("own",),
    precisions: Sequence[str] = ("float32",),
) -> Grid:
    """Combine the values of all settings; repeated values count once.

    Left out are chunk sizes too small for an overlap, and, for splitters that ignore the overlap, all
    overlaps but the first.

    Raises
    ------
    InputError
        A setting has no value, a splitter, pooling, retriever, use of prompts or precision is unknown, or a
        ``k`` is below 1.
    """
    check_names("splitter", splitters, SPLITTERS)
    check_names("pooling", poolings, (*POOLINGS, OWN))
    check_names("retriever", retrievers, RETRIEVERS)
    check_names("use of prompts", prompts, PROMPT_USES)
    check_names("precision", precisions, PRECISIONS)
    for what, values in {"size": chunk_tokens, "overlap": overlaps, "model": models, "k": ks}.items():
        check_some(what, values)
    check_some("token limit", max_tokens)
    for k in ks:
        if k < 1:
            raise InputError(f"k is {k}: retrieve 1 chunk or more")
    settings: tuple[Sequence[Any], ...] = (
        splitters,
        chunk_tokens,
        overlaps,
        models,
        max_tokens,
        poolings,
        retrievers,
        ks,
        prompts,
        precisions,
    )
    cells = [Cell(*values) for values in product(*map(dict.fromkeys, settings))]
    return without_problems(cells, lambda cell: splitting_problem(cell, overlaps[0]))


def fitting(cells: Grid, models: Mapping[str, Model]) -> Grid:
    """Leave out the cells that their model does not support: poolings without weights, MaxSim without tokens.

    The pooling "own" becomes the strategy that a model's own pooling is, if it is one of `POOLINGS`. Beside
    other poolings it is meant for models whose own is not, and its combinations with others are dropped. The
    token limit of a model that takes none becomes its own.
    """
    is_only = all(cell.pooling == OWN for cell in cells.cells)
    asked = dict.fromkeys(
        resolved(cell, models[cell.model])
        for cell in cells.cells
        if cell.pooling != OWN or models[cell.model].pooling == OWN or is_only
    )
    kept = without_problems(list(asked), lambda cell: reason_left_out(cell, models[cell.model]))
    return Grid(kept.cells, cells.left_out + kept.left_out)


def resolved(cell: Cell, model: Model) -> Cell:
    """Replace the pooling "own" of a cell by its strategy, and a token limit that the model cannot take."""
    return replace(
        cell,
        pooling=model.pooling if cell.pooling == OWN else cell.pooling,
        max_tokens=cell.max_tokens if model.sets_limit else None,
    )


def without_problems(cells: Sequence[Cell], problem: Callable[[Cell], str]) -> Grid:
    """Return the cells without a problem; those with one are left out."""
    problems = [problem(cell) for cell in cells]
    return Grid(
        tuple(cell for cell, why in zip(cells, problems, strict=True) if not why),
        tuple(LeftOut(cell, why) for cell, why in zip(cells, problems, strict=True) if why),
    )


def splitting_problem(cell: Cell, first_overlap: int) -> str:
    """Return why a splitting is impossible or superfluous, empty if it is neither."""
    if SPLITTERS[cell.splitter].is_sliding and cell.overlap != first_overlap:
        return f"splitter {cell.splitter!r} ignores the overlap: {first_overlap} stands for all"
    return error_message(lambda: check_splitting(cell.splitting, N_SPECIAL))


def reason_left_out(cell: Cell, model: Model) -> str:
    """Return why a model cannot do a cell, empty if it can."""
    if reason := reason_unavailable(cell.retriever, model):
        return reason
    if cell.pooling == OWN and model.pooling != OWN:
        return f"pooling 'own' of {model.name} is {model.pooling!r}: give that"
    if cell.prompts != "own" and not model.prompts.in_search:
        return f"{model.name} has no prompts to leave out: 'own' stands for both"
    if cell.pooling == "idf" and model.as_encoder:  # its weights are computed from the chunks
        return error_message(lambda: model.token_limit(cell.max_tokens))
    return error_message(
        lambda: embedding_spec(model.with_precision(cell.precision), cell.pooling, cell.max_tokens)
    )


def error_message(check: Callable[[], object]) -> str:
    """Return the message of the `InputError` that a check raises, empty if it raises none."""
    try:
        check()
    except InputError as error:
        return str(error)
    return ""


def check_some(what: str, values: Sequence[object]) -> None:
    """Raise `InputError` for a setting without values."""
    if isinstance(values, str) or not values:
        raise InputError(f"no {what} is given: give one or more, as a list")


def check_names(what: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise `InputError` for an unknown name."""
    check_some(what, names)
    for name in names:
        if name not in known:
            raise InputError(f"there is no {what} {name!r}: choose of {', '.join(known)}")
