"""Attention between question and passage in a cross-encoder, and the effect of each word on its score."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import numpy as np
import regex

from ...errors import InputError
from ...layers.tracing import Array
from ...models.reranker import Reranker
from ...tokenizers.encoding import Encoding
from ...trace import Trace
from ...weights.fetch import Progress

Side = Literal["question", "passage"]
WORD = regex.compile(r"\w+")


@dataclass(frozen=True)
class ReadPair:
    """A pair in a cross-encoder: its tokens, attention and score."""

    encoding: Encoding
    question: slice
    passage: slice
    # the score, and its value before the last function
    score: float
    logit: float
    # the attention weights of all layers, ``layers.{i}.attention.weights (n_heads, n_tokens, n_tokens)``
    trace: Trace = field(repr=False)

    def attention(self, layer: int, head: int) -> Array:
        """Weights by which a head attends from question to passage: ``(n_question, n_passage)``."""
        return self.trace[f"layers.{layer}.attention.weights"][head, self.question, self.passage]


@dataclass(frozen=True)
class WordEffect:
    """How far the logit falls without a word, ``text[start:end]`` of its side; below 0 where it rises."""

    side: Side
    word: str
    start: int
    end: int
    drop: float


def read_pair(reranker: Reranker, question: str, passage: str) -> ReadPair:
    """Run a pair through a cross-encoder, and keep the attention of all layers."""
    encoding = reranker.read(question, passage)
    first, second = halves(encoding)
    trace = reranker.trace(question, passage, ["layers.*.attention.weights", "logit", "score"])
    return ReadPair(encoding, first, second, float(trace["score"][0]), float(trace["logit"][0]), trace)


def halves(pair: Encoding) -> tuple[slice, slice]:
    """Return the places of a pair's tokens of the first text and of the second, without special tokens."""
    runs = [
        [place for place, _ in run]
        for is_text, run in groupby(enumerate(pair.offsets), key=lambda one: one[1][0] < one[1][1])
        if is_text
    ]
    if len(runs) != 2:
        raise InputError("question and passage are both needed: type some text for each")
    first, second = (slice(run[0], run[-1] + 1) for run in runs)
    return first, second


def word_effects(
    reranker: Reranker, question: str, passage: str, on_progress: Progress | None = None
) -> list[WordEffect]:
    """Leave out each word that is read, one at a time, and measure the fall of the logit (Li et al. 2016).

    A word's tokens are removed from those that are read. Words are in the order of the texts, those of the
    question first; ``on_progress`` is called with pairs read and pairs to read: one for each word, and the
    pair itself.
    """
    pair = reranker.read(question, passage)
    texts: dict[Side, str] = {"question": question, "passage": passage}
    words: list[tuple[Side, int, int]] = []
    without: list[Encoding] = []
    for side, half in zip(texts, halves(pair), strict=True):
        for match in WORD.finditer(texts[side]):
            places = [n for n in range(half.start, half.stop) if overlaps(pair.offsets[n], match.span())]
            if places:
                words.append((side, *match.span()))
                without.append(left_out(pair, places))
    complete, *others = reranker.score_ids([pair, *without], on_progress, as_logits=True).tolist()
    return [
        WordEffect(side, texts[side][start:end], start, end, complete - logit)
        for (side, start, end), logit in zip(words, others, strict=True)
    ]


def overlaps(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans of characters share one."""
    return one[0] < other[1] and other[0] < one[1]


def left_out(pair: Encoding, places: Sequence[int]) -> Encoding:
    """Return a pair without the tokens at some places."""
    kept = np.setdiff1d(np.arange(len(pair)), places).tolist()
    return Encoding(
        *([values[n] for n in kept] for values in (pair.ids, pair.tokens, pair.offsets, pair.type_ids))
    )
