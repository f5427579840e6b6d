"""What benchmarks of rerankers share: labelled collections, mixtures with the first stage, and figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.command import Result, Table
from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import split
from engine.evaluation.beir import load_beir
from engine.evaluation.bootstrap import mean_interval
from engine.evaluation.metrics import reciprocal_rank
from engine.evaluation.questions import load_questions, relevance
from engine.layers.tracing import Array
from engine.retrieval.fusion import weighted_fusion
from engine.retrieval.rerank import first_stage, reordered
from engine.retrieval.retrievers import SearchInputs, SearchTexts, retriever_scores

FIRST = "weighted"  # the retriever whose best passages are reordered
SEED = 0


@dataclass(frozen=True)
class Collection:
    """Questions, passages, and which answer which, bool ``(n_questions, n_passages)``."""

    questions: tuple[str, ...] = field(repr=False)
    passages: tuple[str, ...] = field(repr=False)
    relevant: Array = field(repr=False)

    def rows(self, rows: Array) -> "Collection":
        """Return it with some of its questions."""
        return Collection(tuple(self.questions[row] for row in rows), self.passages, self.relevant[rows])

    def drawn(self, n_questions: int) -> "Collection":
        """Return it with some questions drawn by the seed, all where there are fewer."""
        order = np.random.default_rng(SEED).permutation(len(self.questions))
        return self.rows(np.sort(order[:n_questions]))

    def scores(self, encoder: Encoder, retrievers: Sequence[str]) -> dict[str, Array]:
        """Score every passage for every question by some retrievers: ``(n_questions, n_passages)`` each."""
        texts = SearchTexts(self.questions, self.passages, encoder)
        vectors = encoder.encode_query(self.questions), encoder.encode(self.passages)
        inputs = SearchInputs(texts, *vectors)
        return {name: retriever_scores(name, inputs) for name in retrievers}


def bundled(encoder: Encoder) -> Collection:
    """Return the bundled questions with an answer in a chunk of the default settings."""
    chunks = [chunk for each in load_corpus(BUNDLED_CORPUS) for chunk in split(each, encoder.tokenizer)]
    questions = load_questions()
    texts = tuple(question.text for question in questions)
    return answerable(texts, tuple(chunk.text for chunk in chunks), relevance(questions, chunks))


def of_beir(folder: Path) -> Collection:
    """Return the questions of a BEIR folder with a relevant document."""
    found = load_beir(folder)
    relevant = found.relevance([document.name for document in found.documents])
    return answerable(tuple(found.questions), tuple(one.text for one in found.documents), relevant)


def answerable(questions: tuple[str, ...], passages: tuple[str, ...], relevant: Array) -> Collection:
    """Leave out the questions that no passage answers."""
    return Collection(questions, passages, relevant).rows(np.flatnonzero(relevant.any(axis=1)))


@dataclass(frozen=True)
class Reranked:
    """The best passages of a first stage, and the scores of a second one.

    ``first`` are ``(n_questions, n_passages)``; ``near`` the rows of each question's best passages, and
    ``found`` their scores by the second stage.
    """

    first: Array = field(repr=False)
    near: Sequence[Array] = field(repr=False)
    found: Sequence[Array] = field(repr=False)

    def mixed(self, weight: float) -> Array:
        """Reorder by both stages scaled to 0 … 1, the second with a weight: ``(n_questions, n_passages)``."""
        mixed = [
            weighted_fusion([own[None], row[near][None]], [weight, 1 - weight])[0]
            for own, row, near in zip(self.found, self.first, self.near, strict=True)
        ]
        order, _ = first_stage(self.first, 1)
        return reordered(order, self.near, mixed, self.first)

    def mixtures(self, name: str, weights: Sequence[float]) -> dict[str, Array]:
        """Return the scores of some mixtures by their names; a weight of 1 is the second stage alone."""
        names = [name if each == 1 else f"{each:g} {name} + {1 - each:g} {FIRST}" for each in weights]
        return {name: self.mixed(weight) for name, weight in zip(names, weights, strict=True)}


def figures(scores: Mapping[str, Array], relevant: Array) -> dict[str, dict[str, float]]:
    """Return MRR by retriever, and its difference from `FIRST` with the paired bootstrap interval."""
    baseline = reciprocal_rank(scores[FIRST], relevant)  # (n_questions,)
    found = {}
    for name, one in scores.items():
        own = reciprocal_rank(one, relevant)
        interval = mean_interval(own - baseline)
        found[name] = {"mrr": float(own.mean()), "difference": interval.estimate}
        found[name] |= {"low": interval.low, "high": interval.high}
    return found


def tables(result: Result) -> Iterator[Table | str]:
    """Yield a table for each collection, and a sentence about its cost."""
    for name, own in result["ours"].items():
        yield Table(
            [f"{name}, {own['n_questions']} questions", "MRR", f"minus {FIRST}", "95 % interval"],
            [
                [
                    retriever,
                    f"{row['mrr']:.3f}",
                    f"{row['difference']:+.3f}",
                    f"{row['low']:+.3f} to {row['high']:+.3f}",
                ]
                for retriever, row in own["rows"].items()
            ],
        )
        yield str(own["cost"])
