"""Answers with the defaults: ``python -m benchmarks.answers [--fit] [--json]``.

Questions with known short answers: settings were chosen on one half of the bundled ones; the rest is only
reported. Right is what holds every part of the labelled answer.

Compared with the text that a language model writes from whole passages found by vectors, shown as it is. With
``--fit`` the weights of the sentences (`engine.retrieval.evidence`) and of the confidence
(`engine.generation.confidence`) are computed anew from the first half, and printed.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import minimize

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Decoder, Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import DEFAULT_SPLITTING, Splitting, split
from engine.evaluation.answers import (
    ANSWER_METRICS,
    BUNDLED_ANSWERS,
    AnswerQuestion,
    AnswerRow,
    answer_metrics,
    load_answer_questions,
    measure_answers,
    normalized,
    occurs,
    score_answer,
)
from engine.evaluation.questions import Question, load_questions, stem
from engine.generation.answer import N_QUOTES, Answer
from engine.generation.answering import ask
from engine.generation.checks import CheckedSentence
from engine.generation.confidence import quote_figures
from engine.generation.passage_search import retrieve
from engine.generation.settings import DEFAULT_ANSWER, AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.layers.tracing import Array
from engine.models.reader import shipped_reader
from engine.retrieval.evidence import FEATURES, Quote, find_evidence
from engine.retrieval.index import Index, build_index
from engine.retrieval.relevance import NullScores, null_scores_of

PAGES = Path(__file__).parent / "pages"
REPORTED = "bundled, half to report"
FIT_PASSAGES = 8  # whose sentences are candidates while the weights are computed
PENALTY = 0.02  # on the squares of the weights, per standard deviation of each feature
PLAIN = AnswerSettings(
    search=SearchSettings(retriever="dense"),
    reads="passages",
    answer_threshold=0,
    refuse_threshold=0,
    write=True,
    check=False,
)


def index_of(folder: Path, encoder: Encoder, splitting: Splitting) -> tuple[Index, NullScores]:
    """Index the documents of a folder."""
    documents = load_corpus(folder)
    chunks = [c for d in documents for c in split(d, encoder.tokenizer, splitting)]
    index = build_index(chunks, encoder, documents=documents)
    return index, null_scores_of(index, encoder)


def text_alone(answer: Answer) -> Answer:
    """Return an answer without its quotes, whose text is shown whole."""
    whole = (CheckedSentence(0, len(answer.text), ()),) if answer.text else ()
    return replace(answer, evidence=(), judged=replace(answer.judged, sentences=whole))


def answered(
    index: Index,
    null_scores: NullScores,
    encoder: Encoder,
    writer: Writer,
    settings: AnswerSettings,
    question: str,
) -> Answer:
    """Answer a question; with the settings `PLAIN` only the text counts."""
    answer = ask(question, index, encoder, writer, settings, null_scores, reader=shipped_reader(encoder))
    return text_alone(answer) if settings is PLAIN else answer


def figures_of(rows: Sequence[AnswerRow]) -> Result:
    """Return the metrics of answers with their intervals, and the median times."""
    metrics = {
        name: {"estimate": each.estimate, "low": each.low, "high": each.high}
        for name, each in answer_metrics(rows).items()
    }
    return {
        "n_questions": len(rows),
        **metrics,
        "until_quotes_s": median(row.until_quotes_s for row in rows),
        "seconds": median(row.seconds for row in rows),
    }


def run(arguments: Namespace) -> Result:
    """Answer all questions, with the defaults and from whole passages."""
    encoder, writer = Encoder.load(), Writer(Decoder.load())
    if arguments.fit:
        return fitted(encoder, writer)
    bundled, pages = load_answer_questions(), load_answer_questions(PAGES.with_suffix(".csv"))
    sets: dict[str, tuple[Path, list[AnswerQuestion]]] = {
        "bundled, half to choose on": (BUNDLED_CORPUS, [each for each in bundled if each.half == "tune"]),
        REPORTED: (BUNDLED_CORPUS, [each for each in bundled if each.half == "report"]),
        "ten other pages": (PAGES, pages),
    }

    def measured(splitting: Splitting, settings: AnswerSettings) -> Result:
        """Answer the questions of each set with some settings."""
        folders = dict.fromkeys(folder for folder, _ in sets.values())
        indexes = {folder: index_of(folder, encoder, splitting) for folder in folders}
        found: Result = {}
        for name, (folder, questions) in sets.items():
            say(f"{name}: {len(questions)} questions")
            index, null_scores = indexes[folder]
            answer = partial(answered, index, null_scores, encoder, writer, settings)
            found[name] = figures_of(measure_answers(questions, answer))
        return found

    return {
        "workload": f"{len(bundled)} bundled questions and {len(pages)} about ten other pages, "
        f"{encoder.name} and {writer.name}",
        "ours": measured(DEFAULT_SPLITTING, DEFAULT_ANSWER),
        "peers": {"text from whole passages": measured(Splitting("fixed", 128, 16), PLAIN)},
    }


def fitted(encoder: Encoder, writer: Writer) -> Result:
    """Compute the weights of sentences and of the confidence from the first half."""
    index, null_scores = index_of(BUNDLED_CORPUS, encoder, DEFAULT_SPLITTING)
    search = SearchSettings(k=FIT_PASSAGES)

    def quotes(question: str) -> tuple[Quote, ...]:
        return find_evidence(
            question, retrieve(question, index, encoder, search, null_scores).hits, index, encoder
        )

    tuning = [each for each in load_answer_questions(BUNDLED_ANSWERS) if each.half == "tune"]
    answerable = [(quotes(each.text), each) for each in tuning if each.answer]
    labelled = [(quotes(each.text), each) for each in load_questions()[::2]]
    examples = [(found, np.array([answers_short(q, each) for each in found])) for found, q in answerable]
    examples += [(found, np.array([answers_labelled(q, each) for each in found])) for found, q in labelled]
    usable = [
        (np.array([each.features for each in found]), right) for found, right in examples if right.any()
    ]
    every_search = replace(DEFAULT_ANSWER, search=SearchSettings(min_relevance=0), write=True)
    given = [ask(each.text, index, encoder, writer, every_search, null_scores) for each in tuning]
    rows = [score_answer(question, answer, 0.0) for question, answer in zip(tuning, given, strict=True)]
    figures = [quote_figures(a.question, a.evidence, a.text, N_QUOTES) for a in given]
    return {
        "workload": f"weights from {len(usable)} questions with sentences, {len(rows)} with answers",
        "fit": {
            "sentences": dict(zip(FEATURES, sentence_weights(usable).tolist(), strict=True)),
            "confidence": confidence_weights(figures, [row.right for row in rows]),
        },
    }


def answers_short(question: AnswerQuestion, quote: Quote) -> bool:
    """Whether a sentence at the labelled place holds the answer, or one part of several."""
    is_there = stem(quote.document) == stem(question.document) and any(
        quote.start < end and start < quote.end for start, end in question.spans
    )
    parts = question.answer.parts
    return is_there and (
        question.answer.is_in(quote.text)
        or (len(parts) > 1 and any(occurs(each, normalized(quote.text)) for each in parts))
    )


def answers_labelled(question: Question, quote: Quote) -> bool:
    """Whether at least half of a sentence lies in a labelled passage."""
    return stem(quote.document) == question.corpus_id and any(
        2 * (min(quote.end, each.end) - max(quote.start, each.start)) >= quote.end - quote.start
        for each in question.references
    )


def sentence_weights(examples: Sequence[tuple[Array, Array]]) -> Array:
    """Maximise the softmax probability of the right sentences: ``(n_features,)``.

    Each example is the features of a question's sentences ``(n_sentences, n_features)``, and which of them
    are right, bool ``(n_sentences,)``.
    """
    spread = np.concatenate([features for features, _ in examples]).std(axis=0)

    def loss(weights: Array) -> float:
        total = 0.0
        for features, right in examples:
            scores = features / spread @ weights
            total += np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[right])
        return total / len(examples) + PENALTY * float(weights @ weights)

    return minimize(loss, np.zeros(len(spread))).x / spread


def confidence_weights(figures: Sequence[dict[str, float]], right: Sequence[bool]) -> dict[str, float]:
    """Fit a logistic model of whether an answer is right; ``intercept`` and a weight for each figure."""
    names = list(figures[0])
    inputs = np.array([[1.0, *(each[name] for name in names)] for each in figures])  # (n, 1 + n_figures)
    signs = np.where(right, 1.0, -1.0)

    def loss(weights: Array) -> float:
        return float(np.logaddexp(0, -signs * (inputs @ weights)).sum() + (weights[1:] ** 2).sum() / 20)

    found = minimize(loss, np.zeros(inputs.shape[1])).x
    return dict(zip(("intercept", *names), found.tolist(), strict=True))


def table(result: Result) -> Table:
    """Tabulate the metrics, a column for each set of questions and the peer; or the fitted weights."""
    if fit := result.get("fit"):
        rows = [[name, f"{value:.2f}"] for weights in fit.values() for name, value in weights.items()]
        return Table(["weight", "value"], rows)
    columns = dict(result["ours"])
    for peer, by_set in result["peers"].items():
        columns[f"{peer}, {REPORTED}"] = by_set[REPORTED]
    rows = [
        [f"{metric.label} (of {metric.of})", *(interval(each, key) for each in columns.values())]
        for key, metric in ANSWER_METRICS.items()
        if key in columns[REPORTED] and key != "exact"
    ]
    rows.append(["seconds", *(f"{each['seconds']:.2f}" for each in columns.values())])
    return Table(["", *columns], rows)


def interval(figures: Result, name: str) -> str:
    """Return a metric with its interval as text."""
    each = figures[name]
    return f"{each['estimate']:.2f} [{each['low']:.2f}, {each['high']:.2f}]"


def add_options(parser: ArgumentParser) -> None:
    """Add ``--fit``."""
    parser.add_argument("--fit", action="store_true", help="compute the weights anew, and print them")


EXPLANATION = """\
Hardly an answer is wrong with confidence; most right ones are shown as *unsure*."""
BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
