"""Cut documents into chunks of a size the model reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.documents.document import Chunk, Document
from engine.documents.packing import FindStarts, Pieces, cut, pieces_of, slide, with_room
from engine.documents.token_spans import TokenSpans, measure
from engine.documents.units import (
    Embed,
    line_starts,
    paragraph_starts,
    section_starts,
    sentence_starts,
    topic_starts,
)
from engine.errors import InputError
from engine.tokenizers.wordpiece import WordPieceTokenizer

# One character can be several tokens (a Hangul syllable is three), and must fit with [CLS] and [SEP].
MIN_CHUNK_TOKENS = 8
# Into what each method cuts a text: the coarsest units first, the finer ones for what is too long; the
# finest are always words.
UNITS: dict[str, tuple[FindStarts, ...]] = {
    "fixed": (),
    "recursive": (paragraph_starts, line_starts, sentence_starts),
    "sentences": (sentence_starts,),
    "paragraphs": (paragraph_starts, sentence_starts),
    "markdown": (paragraph_starts, line_starts, sentence_starts),
    "semantic": (sentence_starts,),
    "sliding": (sentence_starts,),
}
METHODS = tuple(UNITS)


@dataclass(frozen=True)
class Splitting:
    """How documents are cut into chunks.

    Attributes
    ----------
    method
        One of `METHODS`. "fixed": as many words as fit. "sentences", "paragraphs": whole ones, as many
        as fit. "recursive": paragraphs, where they are too long lines, then sentences. "markdown": the
        same under each heading apart. "semantic": sentences, not across a place where neighbours are
        least alike. "sliding": a chunk begins at every sentence. What is longer than a chunk is cut into
        the next finer unit, at last into words.
    chunk_tokens
        Most tokens of a chunk as the model counts them, [CLS] and [SEP] included: a chunk of 256
        just fits a limit of 256.
    overlap
        Most tokens that a chunk repeats from the one before, in whole units; "sliding" repeats what it does
        whatever the overlap.
    """

    method: str = "fixed"
    chunk_tokens: int = 128
    overlap: int = 16


def split(
    document: Document,
    tokenizer: WordPieceTokenizer,
    splitting: Splitting = Splitting(),
    embed: Embed | None = None,
    tokens: TokenSpans | None = None,
) -> list[Chunk]:
    """Cut a document into chunks.

    Parameters
    ----------
    document
        The document.
    tokenizer
        The tokenizer of the model that will read the chunks.
    splitting
        The method, the size and the overlap.
    embed
        Gives the unit vectors of sentences, ``(n_sentences, d_model)``; needed by "semantic" alone.
    tokens
        The document as `measure` gives it, where it is known, so that another size costs little.

    Returns
    -------
    list of Chunk
        In order, each beginning after the one before. Together they cover every character that is not
        blank, none begins or ends within a word unless a single word is longer than a chunk, and none
        has more than ``chunk_tokens``.

    Raises
    ------
    InputError
        The method is unknown or lacks ``embed``, ``chunk_tokens`` is below `MIN_CHUNK_TOKENS`,
        ``overlap`` leaves no room for new text, or the text holds half of a surrogate pair.
    """
    check_splitting(splitting, tokenizer.n_special)
    barriers = barriers_of(document, splitting.method, embed)
    tokens = measure(document.text, tokenizer) if tokens is None else tokens
    room = splitting.chunk_tokens - tokenizer.n_special
    pieces = with_room(pieces_of(document.text, tokens), tokenizer, room)
    spans = spans_of(pieces, splitting, barriers, 0, len(pieces))
    return list(chunks_of(document, pieces, spans, tokenizer.n_special))


def split_small_to_big(
    document: Document,
    tokenizer: WordPieceTokenizer,
    splitting: Splitting,
    parent_tokens: int,
    tokens: TokenSpans | None = None,
    embed: Embed | None = None,
) -> list[Chunk]:
    """Cut a document into large chunks that a decoder reads, and these into small ones that are searched.

    Parameters
    ----------
    document, tokenizer, splitting, tokens, embed
        As of `split`; ``splitting`` says how the small chunks are made. The large ones are made by the
        same method without overlap, those of "sliding" by "sentences".
    parent_tokens
        Most tokens of a large chunk, special ones included.

    Returns
    -------
    list of Chunk
        The small chunks in order, each with its large one as ``parent``.

    Raises
    ------
    InputError
        As of `split`, or ``parent_tokens`` is less than the size of the small chunks.
    """
    check_splitting(splitting, tokenizer.n_special)
    if parent_tokens < splitting.chunk_tokens:
        raise InputError(
            f"parent size {parent_tokens} is smaller than the chunk size {splitting.chunk_tokens}: give "
            f"{splitting.chunk_tokens} tokens or more"
        )
    method = "sentences" if splitting.method == "sliding" else splitting.method
    barriers = barriers_of(document, splitting.method, embed)
    tokens = measure(document.text, tokenizer) if tokens is None else tokens
    n_special = tokenizer.n_special
    large = with_room(pieces_of(document.text, tokens), tokenizer, parent_tokens - n_special)
    small = with_room(large, tokenizer, splitting.chunk_tokens - n_special)
    parents = spans_of(large, replace(splitting, method=method, overlap=0), barriers, 0, len(large))
    return [
        replace(child, parent=parent)
        for parent in chunks_of(document, large, parents, n_special)
        for child in chunks_of(
            document,
            small,
            spans_of(small, splitting, barriers, *small.between(parent.start, parent.end)),
            n_special,
        )
    ]


def check_splitting(splitting: Splitting, n_special: int) -> None:
    """Raise `InputError` for settings that make no chunks."""
    method, chunk_tokens, overlap = splitting.method, splitting.chunk_tokens, splitting.overlap
    if method not in METHODS:
        raise InputError(f"there is no splitter {method!r}: choose one of {', '.join(METHODS)}")
    if chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk size {chunk_tokens} is too small: give {MIN_CHUNK_TOKENS} tokens or more")
    room = chunk_tokens - n_special
    if not 0 <= overlap < room:
        raise InputError(
            f"overlap {overlap} does not fit a chunk of {chunk_tokens} tokens: give 0 to {room - 1}"
        )


def barriers_of(document: Document, method: str, embed: Embed | None) -> list[int]:
    """Return the places that no chunk goes across, whatever its size."""
    if method == "markdown":
        return section_starts(document)
    if method != "semantic":
        return []
    if embed is None:
        raise InputError("the splitter 'semantic' compares sentences: give embed, or choose another splitter")
    return topic_starts(document.text, embed)


def spans_of(
    pieces: Pieces, splitting: Splitting, barriers: list[int], first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Cut the pieces from ``first`` to before ``last`` into chunks."""
    if splitting.method == "sliding":
        yield from slide(pieces, sentence_starts, first, last)
        return
    for start, end in pairwise(pieces.borders(barriers, first, last)):
        yield from cut(pieces, UNITS[splitting.method], start, end, splitting.overlap)


def chunks_of(
    document: Document, pieces: Pieces, spans: Iterable[tuple[int, int]], n_special: int
) -> Iterator[Chunk]:
    """Make chunks of spans of pieces."""
    for first, last in spans:
        start, end = int(pieces.starts[first]), int(pieces.ends[last - 1])
        n_tokens = int(pieces.totals[last] - pieces.totals[first]) + n_special
        section = document.section_at(start)
        yield Chunk(
            document.name, start, end, document.text[start:end], n_tokens, section.headings, section.page
        )
