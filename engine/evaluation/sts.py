"""Semantic textual similarity (STS): the correlation of cosines with people's scores of sentence pairs.

Spearman's correlation, which ignores scale, as reported for the STS benchmark (Cer et al. 2017; Reimers,
Beyer and Gurevych 2016 explain why Spearman's and not Pearson's).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..documents.formats.plain import decode
from ..documents.formats.table import delimiter_of, numbered_rows
from ..errors import InputError
from ..installed import bundled
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..weights.fetch import Progress
from .bootstrap import Interval, Statistics, resampled

BUNDLED_PAIRS = bundled("sts_pairs.csv")
COLUMNS = ("sentence1", "sentence2", "score")
# Files of the STS benchmark's archive have no header; sometimes sources follow these columns.
ARCHIVE_COLUMNS = ("genre", "file", "year", "number", "score", "sentence1", "sentence2")
FEWEST_PAIRS = 3
DECIMALS = 6  # of cosines; further ones are float32 rounding, which must not rank pairs


@dataclass(frozen=True)
class Pair:
    """Two sentences and the similarity that people gave them, higher for more similar."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class StrategyCorrelation:
    """A strategy's Spearman correlation with people's scores, and its gain over the baseline's."""

    strategy: str
    spearman: Interval
    gain: Interval


def load_pairs(path: Path = BUNDLED_PAIRS) -> list[Pair]:
    """Read scored pairs from a file, as `parse_pairs` does."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: give a file with the columns {', '.join(COLUMNS)}")
    return parse_pairs(path.name, path.read_bytes())


def parse_pairs(name: str, content: bytes) -> list[Pair]:
    """Read scored pairs from the content of a file.

    Two formats are read: tables whose header has the columns ``sentence1``, ``sentence2`` and ``score`` in
    any order (CSV with commas or semicolons, or with tabs; then quotes are ordinary characters, as in all
    STS files), and the files of the STS benchmark's archive.
    """
    if not content.strip():
        raise InputError(f"{name} is empty: give a file with the columns {', '.join(COLUMNS)}")
    rows = table_rows(name, decode(name, content))
    number, first = next(rows)
    columns = [cell.strip().lower() for cell in first]
    pairs = []
    # The first row is a pair of the STS benchmark's archive, not a header.
    if len(first) >= len(ARCHIVE_COLUMNS) and as_number(first[ARCHIVE_COLUMNS.index("score")]) is not None:
        columns = list(ARCHIVE_COLUMNS)
        pairs.append(to_pair(first, columns, f"{name}, row {number}"))
    elif missing := [column for column in COLUMNS if column not in columns]:
        raise InputError(
            f"{name} has no column {' and no column '.join(missing)}: name the columns "
            f"{', '.join(COLUMNS)} in its first row"
        )
    pairs += [to_pair(row, columns, f"{name}, row {number}") for number, row in rows]
    if len(pairs) < FEWEST_PAIRS:
        raise InputError(f"{name} holds {len(pairs)} scored pairs: give at least {FEWEST_PAIRS}")
    if len({pair.score for pair in pairs}) == 1:
        raise InputError(
            f"all {len(pairs)} pairs of {name} have the score {pairs[0].score:g}, so there is no order to "
            "compare with: give pairs of different similarity"
        )
    return pairs


def table_rows(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their numbers from 1; with tabs, quotes are not special."""
    text = text.lstrip("\n")
    if "\t" not in text.partition("\n")[0]:
        yield from numbered_rows(name, text, delimiter_of(text))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.split("\t")


def as_number(cell: str) -> float | None:
    """Return the finite number in a cell, or None."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def to_pair(row: Sequence[str], columns: Sequence[str], place: str) -> Pair:
    """Make a pair from a row; errors name its place."""
    cells = dict(zip(columns, (cell.strip() for cell in row), strict=False))
    for column in COLUMNS:
        if not cells.get(column):
            raise InputError(f"{place} has no {column}: fill it in, or take the row out")
    score = as_number(cells["score"])
    if score is None:
        shown = cells["score"][:40]
        raise InputError(f"{place} has the score {shown!r}, which is no number: write it as 3.5")
    return Pair(cells["sentence1"], cells["sentence2"], score)


def sentences(pairs: Sequence[Pair]) -> list[str]:
    """Return the distinct sentences of pairs, in order."""
    return list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))


def sts_scores(
    encoder: Encoder,
    pairs: Sequence[Pair],
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Array]:
    """Score pairs by the cosine of their vectors, ``(n_pairs,)`` by pooling, each sentence embedded once."""
    texts = sentences(pairs)
    encoder = encoder.with_idf(texts)
    vectors = encoder.encode(texts, list(encoder.poolings), max_tokens=max_tokens, on_progress=on_progress)
    row = {text: number for number, text in enumerate(texts)}
    first, second = [row[pair.first] for pair in pairs], [row[pair.second] for pair in pairs]
    return {name: cosines(every[first], every[second]) for name, every in vectors.items()}


def cosines(first: Array, second: Array) -> Array:
    """Cosines of corresponding rows of length 1: ``(n, d_model)`` twice to ``(n,)``."""
    return np.einsum("nd,nd->n", first, second, dtype=np.float64).round(DECIMALS)


def correlations(
    pairs: Sequence[Pair], scores: dict[str, Array], baseline: str = "mean"
) -> list[StrategyCorrelation]:
    """Correlate every strategy's cosines ``(n_pairs,)`` with people's scores, best first.

    The 95 % intervals are over resamples of the pairs; ``gain`` is relative to the strategy ``baseline``. A
    strategy with the same cosine for all pairs has NaN and comes last.
    """
    gold = np.array([pair.score for pair in pairs])
    names = list(scores)
    statistics = spearman(gold, np.column_stack([scores[name] for name in names]))
    found = resampled(statistics, len(pairs))
    all_of_them = [
        StrategyCorrelation(name, found.interval(i), found.difference_interval(i, names.index(baseline)))
        for i, name in enumerate(names)
    ]
    return sorted(all_of_them, key=lambda one: -np.nan_to_num(one.spearman.estimate, nan=-2))


def spearman(gold: Array, scores: Array) -> Statistics:
    """Return Spearman's correlations of ``gold (n,)`` with columns of ``scores (n, n_strategies)``."""

    def of_resamples(counts: Array) -> Array:
        """``(n_resamples, n) -> (n_resamples, n_strategies)``."""
        wanted = centred_ranks(gold, counts)
        given = (centred_ranks(column, counts) for column in scores.T)
        return np.column_stack([pearson(wanted, ranks, counts) for ranks in given])

    return of_resamples


def centred_ranks(values: Array, counts: Array) -> Array:
    """Centred mid-ranks of items repeated ``counts (n_resamples, n)`` times, ties as scipy's ``rankdata``."""
    order = np.argsort(values, kind="stable")
    is_new = np.r_[True, np.diff(values[order]) > 0]  # (n,), whether a value differs from the one before
    group = np.empty(len(values), np.int64)
    group[order] = np.cumsum(is_new) - 1
    held = np.add.reduceat(counts[:, order], np.flatnonzero(is_new), axis=1)  # (n_resamples, n_groups)
    ranks = held.cumsum(axis=1) - (held - 1) / 2
    return (ranks - (len(values) + 1) / 2)[:, group]


def pearson(a: Array, b: Array, counts: Array) -> Array:
    """Correlate centred rows, items weighted by their counts: ``(n_resamples, n)`` to ``(n_resamples,)``."""
    covariance, of_a, of_b = (np.einsum("rn,rn,rn->r", counts, x, y) for x, y in ((a, b), (a, a), (b, b)))
    spread = np.sqrt(of_a * of_b)
    return np.divide(covariance, spread, out=np.full(len(counts), np.nan), where=spread > 0)
