"""Starts of the units of a text: paragraphs, lines, sentences, sections, topics."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .document import Document
from .sentences import sentence_spans

# From texts to unit vectors (n_texts, d_model).
Embed = Callable[[Sequence[str]], NDArray[Any]]

PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
LINE_END = re.compile(r"\n")
# Percentile of the distances between neighbouring sentences above which the topic changes.
TOPIC_PERCENTILE = 90


def paragraph_starts(text: str) -> list[int]:
    """Return the starts of paragraphs, after blank lines, except the first."""
    return [match.end() for match in PARAGRAPH_END.finditer(text)]


def line_starts(text: str) -> list[int]:
    """Return the starts of lines except the first."""
    return [match.end() for match in LINE_END.finditer(text)]


def sentence_starts(text: str) -> list[int]:
    """Return the starts of sentences except the first."""
    return [start for start, _ in sentence_spans(text)[1:]]


def section_starts(document: Document, embed: Embed | None) -> list[int]:
    """Return the starts of sections under headings; a new page under the same headings starts none."""
    before_first = document.section_at(-1)
    return [
        section.start
        for before, section in pairwise([before_first, *document.sections])
        if section.headings != before.headings or (section.headings and section.page == before.page)
    ]


def row_borders(document: Document) -> list[int]:
    """Return where rows of tables end and another section starts; a sheet's name stays with its first row."""
    return [after.start for before, after in pairwise(document.sections) if before.is_row]


def topic_starts(document: Document, embed: Embed | None) -> list[int]:
    """Return the starts of sentences that are least similar to the one before.

    The distance of neighbouring sentences is 1 minus the cosine of their vectors; a topic starts where it is
    above the `TOPIC_PERCENTILE` of all distances in the text (Kamradt's semantic chunking, as in LangChain's
    SemanticChunker without a buffer).
    """
    if embed is None:
        raise InputError("the splitter 'semantic' compares sentences: give embed, or choose another splitter")
    text = document.text
    spans = [(start, end) for start, end in sentence_spans(text) if text[start:end].strip()]
    if len(spans) < 2:
        return []
    vectors = np.asarray(embed([text[start:end].strip() for start, end in spans]))
    distances = 1 - np.einsum("sd,sd->s", vectors[:-1], vectors[1:])  # (sentence - 1,)
    apart = distances > np.percentile(distances, TOPIC_PERCENTILE)
    return [start for (start, _), new in zip(spans[1:], apart, strict=True) if new]
