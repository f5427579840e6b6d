"""Where the units that chunks are made of begin: paragraphs, lines, sentences, sections, topics."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.documents.document import Document
from engine.documents.sentences import sentence_spans

# Texts in; unit vectors (n_texts, d_model) out.
Embed = Callable[[Sequence[str]], NDArray[Any]]

PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
LINE_END = re.compile(r"\n")
# Percentile of the distances between neighbouring sentences above which the topic changes: at one in ten.
TOPIC_PERCENTILE = 90


def paragraph_starts(text: str) -> list[int]:
    """Return where the paragraphs of a text begin, but for the first: behind blank lines."""
    return [match.end() for match in PARAGRAPH_END.finditer(text)]


def line_starts(text: str) -> list[int]:
    """Return where the lines of a text begin, but for the first."""
    return [match.end() for match in LINE_END.finditer(text)]


def sentence_starts(text: str) -> list[int]:
    """Return where the sentences of a text begin, but for the first."""
    return [start for start, _ in sentence_spans(text)[1:]]


def section_starts(document: Document) -> list[int]:
    """Return where a heading begins; a new page under the same headings begins no section."""
    before_first = document.section_at(-1)
    return [
        section.start
        for before, section in pairwise([before_first, *document.sections])
        if section.headings != before.headings or (section.headings and section.page == before.page)
    ]


def topic_starts(text: str, embed: Embed) -> list[int]:
    """Return where the sentences before and after are least alike.

    The distance of two neighbouring sentences is 1 minus the cosine of their vectors; a topic begins
    where it is above the `TOPIC_PERCENTILE` of the text's own distances (Kamradt's semantic chunking,
    as LangChain's SemanticChunker with sentences compared one by one).
    """
    spans = [(start, end) for start, end in sentence_spans(text) if text[start:end].strip()]
    if len(spans) < 2:
        return []
    vectors = np.asarray(embed([text[start:end].strip() for start, end in spans]))
    distances = 1 - np.einsum("sd,sd->s", vectors[:-1], vectors[1:])  # (sentence - 1,)
    apart = distances > np.percentile(distances, TOPIC_PERCENTILE)
    return [start for (start, _), new in zip(spans[1:], apart, strict=True) if new]
