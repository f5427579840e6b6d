"""The reader's answer from inside: how its tokens compare, what parts of the texts add, where it looks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex

from ...documents.sentences import sentence_spans
from ...generation.reading import question_spans, whole_span
from ...layers.tracing import Array
from ...models.reader import Reader, Scores, Span, Window, best_spans, window_spans
from ...trace import Trace
from .model_view import attention_share

WORD = regex.compile(r"\w+")
Characters = tuple[int, int]  # start and end of a part of a text


@dataclass(frozen=True)
class AnswerTokens:
    """An answer in a window, by the places of its first and last token among the passage's."""

    window: Scores
    first: int
    last: int

    @property
    def start(self) -> float:
        """The logit of the first token as start."""
        return float(self.window.logits[self.first, 0])

    @property
    def end(self) -> float:
        """The logit of the last token as end."""
        return float(self.window.logits[self.last, 1])

    @property
    def score(self) -> float:
        """Both logits over those of no answer."""
        return self.start + self.end - self.window.no_answer


@dataclass(frozen=True)
class PartEffect:
    """What leaving out a part, ``[start, end)`` of question or passage, does to the answer."""

    text: str
    start: int
    end: int
    # fall of the answer's score, below 0 where it rises, NaN where the part holds words of the answer
    drop: float
    instead: str  # the best words of what is left
    score: float  # theirs over no answer, NaN for none


@dataclass(frozen=True)
class AnswerAttention:
    """Attention between an answer and its question in all heads."""

    question: list[str]  # tokens
    answer: list[str]
    to_question: Array  # ``(n_layers, n_heads, n_answer, n_question)``
    to_answer: Array  # the way back, ``(n_layers, n_heads, n_question, n_answer)``

    @property
    def shares(self) -> tuple[Array, Array]:
        """Share of the answer's attention on the question, and the way back: ``(n_layers, n_heads)`` each."""
        return shares_of(self.to_question), shares_of(self.to_answer)


def shares_of(weights: Array) -> Array:
    """Return the share of attention that goes to all of these keys: ``(..., query, key) -> (...)``."""
    return attention_share(weights, np.ones(weights.shape[-1], bool))


def best_words(question: str, passage: str, windows: Sequence[Scores]) -> Characters | None:
    """Return the best words of a passage, by its windows, as `read_passages` does; None where it has none."""
    found = best_spans(windows, [question_spans(passage)], 1)
    return whole_span(question, passage, found[0].start, found[0].end) if found else None


def answer_tokens(windows: Sequence[Scores], answer: Characters) -> AnswerTokens | None:
    """Return the best tokens within ``passage[start:end]``, of the best window; None where none is read."""
    found = []
    for each in windows:
        within = [answer[0] <= start and end <= answer[1] for start, end in each.window.offsets]
        spans = window_spans(each.logits, np.array(within), 1)
        found += [AnswerTokens(each, first, last) for first, last, _ in spans]
    return max(found, key=lambda each: each.score, default=None)


def without_words(reader: Reader, question: str, passage: str, answer: Characters) -> list[PartEffect]:
    """Leave out each word of the question, but an only one, and read the passage again (Li et al. 2016)."""
    complete, hidden = score_of(reader.scores(question, [passage]), answer), [question_spans(passage)]
    effects = []
    for match in WORD.finditer(question):
        rest = without(question, match.span())
        if WORD.search(rest):
            found = reader.scores(rest, [passage])
            drop = complete - score_of(found, answer)
            effects.append(effect_of(question, match.span(), drop, best_spans(found, hidden, 1), passage))
    return effects


def without_sentences(reader: Reader, question: str, passage: str, answer: Characters) -> list[PartEffect]:
    """Leave out each sentence of the passage, one at a time, and read the rest."""
    parts = [span for span in sentence_spans(passage) if passage[slice(*span)].strip()]
    texts = [passage, *(without(passage, part) for part in parts)]
    scores = reader.scores(question, texts)
    best = best_spans(scores, [question_spans(text) for text in texts], 1)
    complete = score_of([each for each in scores if each.window.passage == 0], answer)
    effects = []
    for number, (start, end) in enumerate(parts, start=1):
        moved = end - start if end <= answer[0] else 0
        own = [each for each in scores if each.window.passage == number]
        holds_it = start < answer[1] and answer[0] < end
        left = np.nan if holds_it else score_of(own, (answer[0] - moved, answer[1] - moved))
        spans = [span for span in best if span.passage == number]
        effects.append(effect_of(passage, (start, end), complete - left, spans, texts[number]))
    return effects


def without(text: str, part: Characters) -> str:
    """Return a text without a part."""
    return text[: part[0]] + text[part[1] :]


def score_of(windows: Sequence[Scores], answer: Characters) -> float:
    """Return an answer's score over no answer, NaN where it is not read."""
    found = answer_tokens(windows, answer)
    return found.score if found else np.nan


def effect_of(text: str, part: Characters, drop: float, best: Sequence[Span], rest: str) -> PartEffect:
    """Return the effect of a part of a text; ``best`` are the best words of the passage as it is then."""
    words, score = (rest[best[0].start : best[0].end], best[0].score) if best else ("", np.nan)
    return PartEffect(text[slice(*part)], *part, drop, words, score)


def answer_attention(reader: Reader, window: Window, answer: Characters) -> AnswerAttention:
    """Run a window again, and keep the attention between ``passage[start:end]`` and the question."""
    trace = Trace(("layers.*.attention.weights",))
    reader.logits([window], trace)
    weights = np.stack([*trace.values()])  # (n_layers, n_heads, n_tokens, n_tokens)
    asked = np.arange(1, window.first - 1)  # between [CLS] and [SEP]
    within = [start < answer[1] and answer[0] < end for start, end in window.offsets]
    words = window.first + np.flatnonzero(within)
    tokens = [reader.tokenizer.token(number) for number in window.ids]
    return AnswerAttention(
        [tokens[place] for place in asked],
        [tokens[place] for place in words],
        weights[:, :, words[:, None], asked],
        weights[:, :, asked[:, None], words],
    )
