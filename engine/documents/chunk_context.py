"""The context of a chunk: titles and headings put before its text where it is embedded and indexed.

It is taken from the document. The span of a chunk stays as it is, and an answer quotes only that.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

from ..tokenizers.text_tokenizer import TextTokenizer
from .document import Chunk, Document

CONTEXT_SHARE = 3  # a context has at most the tokens of a chunk by this
ROW_NUMBER = re.compile(r"row \d+")  # a heading that says nothing
# The line below the heads of columns: "|---|:-:|" or "--- | ---".
RULE = re.compile(r"(?=.*\|)[|:\- \t]*-[|:\- \t]*")


def headings_above(document: Document, chunk: Chunk) -> list[str]:
    """Return the headings above a chunk, the outermost first, and the names of a table's columns."""
    headings = [heading for heading in chunk.headings if not ROW_NUMBER.fullmatch(heading)]
    return [*headings, heads_above(document.text, chunk.start)]


def title_and_headings(document: Document, chunk: Chunk) -> list[str]:
    """Return the same below the document's title, or the name of its file without one."""
    return [document.title or PurePath(document.name).stem, *headings_above(document, chunk)]


@dataclass(frozen=True)
class ChunkContext:
    """What is put before the text of a chunk, by its document; those parts that its text lacks."""

    label: str
    help: str
    parts: Callable[[Document, Chunk], list[str]] | None = None


CONTEXTS = {
    "off": ChunkContext("off", "Only the chunk."),
    "headings": ChunkContext(
        "headings", "The headings above it; for rows of a table the names of columns.", headings_above
    ),
    "title": ChunkContext(
        "title and headings", "The title of the document, or the name of its file, too.", title_and_headings
    ),
}


def with_contexts(
    chunks: Sequence[Chunk], document: Document, tokenizer: TextTokenizer, context: str, chunk_tokens: int
) -> list[Chunk]:
    """Put one of `CONTEXTS` before the chunks of a document, whose tokens then count in theirs.

    A context of more tokens than ``chunk_tokens`` by `CONTEXT_SHARE` loses its outer parts, or its end.
    """
    parts_of = CONTEXTS[context].parts
    if parts_of is None:
        return list(chunks)
    most = chunk_tokens // CONTEXT_SHARE

    @cache
    def fitting(parts: tuple[str, ...]) -> str:
        [read] = tokenizer.encode_batch(["\n".join(parts)])
        ends = [end for start, end in read.offsets if end > start]
        if len(ends) <= most:
            return "\n".join(parts)
        return fitting(parts[1:]) if len(parts) > 1 else parts[0][: ends[most - 1]]

    found = []
    for chunk in chunks:
        parts = dict.fromkeys(
            part for part in parts_of(document, chunk) if part and not says(chunk.text, part)
        )
        found.append(replace(chunk, context=fitting(tuple(parts))))
    counts = map(len, tokenizer.ids_batch([chunk.indexed for chunk in found]))
    return [replace(chunk, n_tokens=n) for chunk, n in zip(found, counts, strict=True)]


def says(text: str, part: str) -> bool:
    """Whether a text has a title, a heading or names of columns already, in whole words."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def heads_above(text: str, start: int) -> str:
    """Return the row that names the columns of the table around ``text[start]``; without one, ``""``."""
    line_end = text.find("\n", start)
    line = text[start : None if line_end < 0 else line_end]
    end = text.rfind("\n", 0, start)
    while "|" in line and end > 0:
        begin = text.rfind("\n", 0, end) + 1
        line = text[begin:end]
        end = begin - 1
        if RULE.fullmatch(line):
            return text[text.rfind("\n", 0, max(end, 0)) + 1 : max(end, 0)].strip()
    return ""
