"""The rank of a passage under other settings, the smallest change that finds it, its effect on others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import log2
from typing import Any

import numpy as np

from ...documents.document import Document
from ...evaluation.grid import splitting_problem
from ...evaluation.questions import Question, Reference, questions_about, stem
from ...evaluation.significance import Comparison, compare
from ...evaluation.sweep import IDF
from ...evaluation.sweep_row import SweepRow
from ...models.encoder import Encoder
from ...retrieval.retrievers import RETRIEVERS, usable_retrievers
from ...settings import SETTINGS, SWEPT, Configuration
from .location import Location, middle_half

# Settings whose values are tried: those that change what is found among the same documents by one model.
TRIED = ("splitter", "chunk_tokens", "overlap", "max_tokens", "pooling", "prompts", "retriever")
MOST_TRIED = 1000  # configurations
OVERLAP_STEP = 32  # tokens of overlap that count as much as twice the chunk size or another splitter


@dataclass(frozen=True)
class Effect:
    """The effect of a change of settings on other questions."""

    mrr: Comparison  # their reciprocal ranks before and after, compared question by question
    # share of them that find an answer among the first k
    hits_before: float
    hits_after: float
    # indices of the questions that find one only after the change, or only before
    won: tuple[int, ...] = field(repr=False)
    lost: tuple[int, ...] = field(repr=False)


def values_to_try(model: Encoder) -> dict[str, list[Any]]:
    """Return all values of the settings in `TRIED` that a model can do."""
    values: dict[str, list[Any]] = {
        key: list(SETTINGS[key].choices) or list(SETTINGS[key].tried) for key in TRIED
    }
    for key in ("chunk_tokens", "max_tokens"):
        values[key] = [size for size in values[key] if size <= model.config.max_positions]
    values["pooling"] = [name for name in values["pooling"] if name in (*model.poolings, IDF)]
    values["retriever"] = [name for name in usable_retrievers(model) if not RETRIEVERS[name].reads_all]
    return values if model.prompts.in_search else values | {"prompts": []}


def nearby_configurations(
    current: Configuration, values: Mapping[str, Sequence[Any]], most_changes: int = 2
) -> list[Configuration]:
    """Combine other values of settings with the current ones, up to ``most_changes`` at once; nearest first.

    Combinations that rank like another one are left out: BM25 ignores poolings, prompts and token limits, and
    a limit has no effect on chunks that fit the current one. So are overlaps that do not fit into a chunk.

    Parameters
    ----------
    current
        The current settings, which come first; ``max_tokens`` is a number.
    values
        Other values, by the keys of the settings, as from `values_to_try`.
    most_changes
        How many settings may differ from the current ones; the combinations end at `MOST_TRIED`.
    """
    others = {key: [one for one in given if one != getattr(current, key)] for key, given in values.items()}
    found = [current]
    for n_changes in range(1, most_changes + 1):
        if len(found) >= MOST_TRIED:
            break
        combined = [
            replace(current, **dict(zip(keys, chosen, strict=True)))
            for keys in combinations(others, n_changes)
            for chosen in product(*(dict.fromkeys(others[key]) for key in keys))
        ]
        near = [
            one
            for one in combined
            if not splitting_problem(one, current.overlap) and not is_redundant(one, current)
        ]
        found += sorted(near, key=lambda one: setting_distance(current, one))
    return found[:MOST_TRIED]


def is_redundant(configuration: Configuration, current: Configuration) -> bool:
    """Whether a combination ranks like one with fewer changes."""
    same_limit = configuration.max_tokens == current.max_tokens
    same_vectors = (configuration.pooling, configuration.prompts) == (
        current.pooling,
        current.prompts,
    ) and same_limit
    if configuration.retriever == "bm25" and not same_vectors:
        return True
    fits = current.max_tokens is not None and configuration.chunk_tokens <= current.max_tokens
    return fits and not same_limit


def changed_settings(current: Configuration, configuration: Configuration) -> tuple[str, ...]:
    """Return the names of the settings that differ."""
    return tuple(key for key in SWEPT if getattr(current, key) != getattr(configuration, key))


def setting_distance(current: Configuration, configuration: Configuration) -> tuple[int, float]:
    """Return how many settings differ, and how far: 1 for another name, twice the size or 32 tokens."""
    changed, far = changed_settings(current, configuration), 0.0
    for name in changed:
        before, after = getattr(current, name), getattr(configuration, name)
        if name in ("chunk_tokens", "max_tokens") and before and after:
            far += abs(log2(after / before))
        elif name == "overlap":
            far += abs(after - before) / OVERLAP_STEP
        else:
            far += 1
    return len(changed), far


def passage_question(question: str, place: Location, document: Document) -> Question:
    """Return a labelled question whose answer is a passage, by its `middle_half` as in a diagnosis."""
    start, end = middle_half(place)
    reference = Reference(document.text[start:end], start, end)
    return Question(question, stem(place.document), (reference,))


def other_questions(
    asked: Question, questions: Sequence[Question], documents: Sequence[Document]
) -> list[Question]:
    """Return the labelled questions about some documents, without the one that was asked."""
    about = questions_about(questions, [document.name for document in documents])
    return [question for question in about if question.references and question.text != asked.text]


def passage_rank(row: SweepRow) -> int | None:
    """Return the rank of the first question's answer in a row of a sweep; None where nothing holds it."""
    reciprocal = row.values["mrr"][0]
    return round(1 / reciprocal) if reciprocal else None


def fixing_rows(current: Configuration, rows: Sequence[SweepRow]) -> Iterator[SweepRow]:
    """Yield the rows that rank the passage among the first k, the smallest change of settings first.

    Equal changes are ordered by the mean reciprocal rank of all questions.
    """
    ordered = sorted(
        rows, key=lambda row: (*setting_distance(current, row.configuration), -row.metrics["mrr"])
    )
    for row in ordered:
        rank = passage_rank(row)
        if row.configuration != current and rank is not None and rank <= row.configuration.k:
            yield row


def effect_on_others(before: SweepRow, after: SweepRow) -> Effect | None:
    """Compare two rows of a sweep on all questions but the first; None where there is no other."""
    mrr = [np.array(row.values["mrr"][1:]) for row in (before, after)]  # (n_others,) each
    if not len(mrr[0]) and not len(mrr[1]):
        return None
    comparison = compare(mrr[0], mrr[1])
    hit = [np.array(row.values["hit_rate@k"][1:]) > 0 for row in (before, after)]
    return Effect(
        comparison,
        float(hit[0].mean()),
        float(hit[1].mean()),
        tuple(np.flatnonzero(hit[1] & ~hit[0]).tolist()),
        tuple(np.flatnonzero(hit[0] & ~hit[1]).tolist()),
    )
