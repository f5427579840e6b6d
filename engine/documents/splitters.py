"""Division of documents into chunks of limited numbers of tokens."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ..errors import InputError, check_choice
from ..tokenizers.text_tokenizer import TextTokenizer
from .chunk_context import CONTEXTS, with_contexts
from .document import Chunk, Document
from .packing import FindStarts, Words, cut, slide, with_room, words_of
from .token_spans import TokenSpans, token_spans
from .units import (
    Embed,
    line_starts,
    paragraph_starts,
    row_borders,
    section_starts,
    sentence_starts,
    topic_starts,
)

# One character can be several tokens (a Hangul syllable is three) and must fit with [CLS] and [SEP].
MIN_CHUNK_TOKENS = 8
Barriers = Callable[[Document, Embed | None], list[int]]


@dataclass(frozen=True)
class Splitter:
    """A way to cut documents: as many whole units as fit are packed into a chunk."""

    label: str
    help: str
    # find where units begin, the coarsest first: a unit longer than a chunk is cut into those of the next
    # level, at last into words
    units: tuple[FindStarts, ...] = ()
    # find places that no chunk crosses, besides the borders of a table's rows
    barriers: Barriers | None = None
    is_sliding: bool = False  # a chunk begins at every unit, whatever the overlap
    needs_embed: bool = False  # ``barriers`` are given the vectors of sentences


# To add a splitter, add an entry: the app and the command line take names and descriptions from here.
SPLITTERS = {
    "fixed": Splitter("Fixed size", "Windows of so many tokens, wherever they end; never within a word."),
    "recursive": Splitter(
        "Recursive",
        "At paragraphs where they fit, else at lines, else at sentences, else at words.",
        (paragraph_starts, line_starts, sentence_starts),
    ),
    "sentences": Splitter("Sentences", "Whole sentences, as many as fit.", (sentence_starts,)),
    "paragraphs": Splitter(
        "Paragraphs",
        "Whole paragraphs, as many as fit; a longer one is cut at sentences.",
        (paragraph_starts, sentence_starts),
    ),
    "markdown": Splitter(
        "Headings",
        "Sections under different headings are never mixed; long ones are cut on.",
        (paragraph_starts, line_starts, sentence_starts),
        barriers=section_starts,
    ),
    "semantic": Splitter(
        "Semantic",
        "Breaks where the encoder finds neighbouring sentences unlike; reads all of them first.",
        (sentence_starts,),
        barriers=topic_starts,
        needs_embed=True,
    ),
    "sliding": Splitter(
        "Sliding window",
        "A window that begins anew at every sentence: most chunks, and none misses its context.",
        (sentence_starts,),
        is_sliding=True,
    ),
}


@dataclass(frozen=True)
class Splitting:
    """How documents are cut into chunks."""

    method: str = "sentences"  # one of `SPLITTERS`
    chunk_tokens: int = 192  # at most, [CLS] and [SEP] included: a chunk of 256 just fits a limit of 256
    overlap: int = 0  # most tokens of the chunk before that are repeated, in whole units
    context: str = "off"  # one of `CONTEXTS`, which comes on top and changes no span


GIVEN = "given"  # in place of a method: the chunks were cut elsewhere
# Whole sentences, so that none is quoted in halves.
DEFAULT_SPLITTING = Splitting()


def split(
    document: Document,
    tokenizer: TextTokenizer,
    splitting: Splitting = DEFAULT_SPLITTING,
    embed: Embed | None = None,
    tokens: TokenSpans | None = None,
    parent_tokens: int = 0,
) -> list[Chunk]:
    """Cut a document into chunks, with larger ones around them where these are asked for.

    The chunks are in order of their starts. Together they cover every character that is not blank; none
    begins or ends within a word, unless that word is longer than a chunk; none has more than
    ``chunk_tokens`` without its context.

    Parameters
    ----------
    document, tokenizer, splitting
        The document, the tokenizer of the model that will read the chunks, and how to cut.
    embed
        Returns the unit vectors of sentences, ``(n_sentences, d_model)``; only "semantic" needs it.
    tokens
        The document as `token_spans` gives it, if known: it is the same for all sizes.
    parent_tokens
        Most tokens of a larger chunk, the ``parent`` of those within it; 0 for none. The larger chunks are
        cut by the same method, without overlap and without sliding, and the others from these.
    """
    n_special = tokenizer.n_special
    check_splitting(splitting, n_special, parent_tokens)
    splitter = SPLITTERS[splitting.method]
    barriers = row_borders(document) + (splitter.barriers(document, embed) if splitter.barriers else [])
    tokens = token_spans(document.text, tokenizer) if tokens is None else tokens
    large = words_of(document.text, tokens)
    if parent_tokens:
        large = with_room(large, tokenizer, parent_tokens - n_special)
    small = with_room(large, tokenizer, splitting.chunk_tokens - n_special)

    def small_chunks(borders: list[int], first: int, last: int) -> Iterator[Chunk]:
        spans = spans_between(small, splitting, borders, first, last, splitter.is_sliding)
        return chunks_of(document, small, spans, n_special)

    if not parent_tokens:
        found = list(small_chunks(barriers, 0, len(small)))
    else:
        parents = spans_between(large, replace(splitting, overlap=0), barriers, 0, len(large))
        found = [
            replace(child, parent=parent)
            for parent in chunks_of(document, large, parents, n_special)
            for child in small_chunks([], *small.between(parent.start, parent.end))  # it crosses no barrier
        ]
    return with_contexts(found, document, tokenizer, splitting.context, splitting.chunk_tokens)


def check_splitting(splitting: Splitting, n_special: int, parent_tokens: int = 0) -> None:
    """Raise `InputError` for invalid settings; the parameters are those of `split`."""
    method, chunk_tokens, overlap = splitting.method, splitting.chunk_tokens, splitting.overlap
    check_choice("splitter", method, SPLITTERS)
    check_choice("context", splitting.context, CONTEXTS)
    if chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk size {chunk_tokens} is too small: give {MIN_CHUNK_TOKENS} tokens or more")
    room = chunk_tokens - n_special
    if not 0 <= overlap < room:
        raise InputError(
            f"overlap {overlap} does not fit a chunk of {chunk_tokens} tokens: give 0 to {room - 1}"
        )
    if parent_tokens and parent_tokens < chunk_tokens:
        raise InputError(
            f"parent size {parent_tokens} is smaller than the chunk size {chunk_tokens}: give {chunk_tokens} "
            "tokens or more"
        )


def spans_between(
    words: Words, splitting: Splitting, barriers: list[int], first: int, last: int, is_sliding: bool = False
) -> Iterator[tuple[int, int]]:
    """Cut the words from ``first`` to before ``last`` into chunks of whole units, none across a barrier."""
    units = SPLITTERS[splitting.method].units
    for start, end in pairwise(words.borders(barriers, first, last)):
        if is_sliding:
            yield from slide(words, units[0], start, end)
        else:
            yield from cut(words, units, start, end, splitting.overlap)


def chunks_of(
    document: Document, words: Words, spans: Iterable[tuple[int, int]], n_special: int
) -> Iterator[Chunk]:
    """Make chunks from spans of words."""
    for first, last in spans:
        start, end = int(words.starts[first]), int(words.ends[last - 1])
        n_tokens = int(words.totals[last] - words.totals[first]) + n_special
        section = document.section_at(start)
        yield Chunk(
            document.name, start, end, document.text[start:end], n_tokens, section.headings, section.page
        )
