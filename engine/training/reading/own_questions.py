"""Training of a reader's last layers on a person's own questions, tested on those that it left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import InputError
from ...evaluation.answers import AnswerQuestion
from ...evaluation.significance import Comparison, compare
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...models.reader import Reader
from ...retrieval.index import Hit
from ...weights.fetch import Progress
from .articles import Asked, Span
from .examples import tokenized
from .loop import ReadingSettings, ReadingState, train

MIN_QUESTIONS = 20


@dataclass(frozen=True)
class OwnQuestion:
    """A question, the passages that are read for it, and where its answer stands in each, if it does."""

    asked: AnswerQuestion
    passages: tuple[str, ...] = field(repr=False)
    spans: tuple[Span | None, ...] = field(repr=False)

    @property
    def examples(self) -> list[Asked]:
        """The question with each passage, to be trained on."""
        return [
            Asked(self.asked.text, passage, span, None, "answered" if span else "asked by people")
            for passage, span in zip(self.passages, self.spans, strict=True)
        ]

    def f1(self, reader: Reader) -> float:
        """F1 of the words that a reader finds, as in SQuAD 2.0: "no answer" counts as an answer.

        It is 1 where the documents hold none and the reader finds none.
        """
        best = reader.read(self.asked.text, self.passages, n_best=1)
        if not best or best[0].score <= 0:
            return float(not self.asked.answer)
        return self.asked.answer.f1(self.passages[best[0].passage][best[0].start : best[0].end])


def own_question(asked: AnswerQuestion, hits: Sequence[Hit]) -> OwnQuestion | None:
    """Look for a question's answer in its passages; None where nothing can be learnt from them."""
    spans = tuple(answer_span(asked, hit) for hit in hits)
    if not hits or (asked.answer and not any(spans)):
        return None
    return OwnQuestion(asked, tuple(hit.chunk.text for hit in hits), spans)


def answer_span(asked: AnswerQuestion, hit: Hit) -> Span | None:
    """Return where the answer stands in a passage, at a labelled place if there are such; None if nowhere."""
    if len(asked.answer.parts) != 1 or not asked.is_found_in([hit]):
        return None
    chunk = hit.chunk
    # the longest spelling first, so that "President Roosevelt" is not cut to "Roosevelt"
    for spelling in sorted(asked.answer.parts[0], key=len, reverse=True):
        for found in re.finditer(rf"(?<!\w){re.escape(spelling)}(?!\w)", chunk.text, re.IGNORECASE):
            start, end = chunk.start + found.start(), chunk.start + found.end()
            if not asked.spans or any(start < last and first < end for first, last in asked.spans):
                return found.span()
    return None


@dataclass(frozen=True)
class TunedReader:
    """A reader trained on all questions, and what training brings on questions that were left out of it."""

    reader: Reader = field(repr=False)
    questions: tuple[OwnQuestion, ...] = field(repr=False)
    before: Array = field(repr=False)  # F1 of each question by the reader before, ``(n_questions,)``
    after: Array = field(repr=False)  # by one trained on the other folds
    comparison: Comparison


def tune_reader(
    reader: Reader,
    encoder: Encoder,
    questions: Sequence[OwnQuestion],
    settings: ReadingSettings,
    n_folds: int = 5,
    on_progress: Progress | None = None,
) -> TunedReader:
    """Train on the questions of all folds but one and test on that one, for each; then train on all.

    The reader is in float32, and has the embeddings and the tokenizer of the encoder. ``on_progress`` is
    called with the updates made and those in all; an exception that it raises ends the work. `InputError`
    where there are fewer than `MIN_QUESTIONS`, or none of them has an answer.
    """
    if len(questions) < MIN_QUESTIONS or not any(own.asked.answer for own in questions):
        raise InputError(
            f"{len(questions)} questions to train on: give {MIN_QUESTIONS} or more, most with an answer"
        )
    base = replace(encoder, weights=reader.weights)
    test_of = np.arange(len(questions)) % n_folds
    np.random.default_rng(settings.seed).shuffle(test_of)
    before, after = np.array([own.f1(reader) for own in questions]), np.zeros(len(questions))
    for fold in range(n_folds + 1):  # the last holds no question out
        fitted = [own for own, number in zip(questions, test_of, strict=True) if number != fold]
        examples = tokenized([each for own in fitted for each in own.examples], reader.tokenizer)
        state = ReadingState.of(reader, settings)
        for report in train(state, examples, base, settings):
            if on_progress is not None:
                share = (fold + report.update / report.n_updates) / (n_folds + 1)
                on_progress(round(1000 * share), 1000)
        tuned = state.reader(base)
        for number in np.flatnonzero(test_of == fold).tolist():
            after[number] = questions[number].f1(tuned)
    return TunedReader(tuned, tuple(questions), before, after, compare(before, after))
