"""Cut documents into chunks of a size the model reads."""

from collections.abc import Sequence

from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.wordpiece import WordPieceTokenizer

# One character can be several tokens (a Hangul syllable is three), and must fit with [CLS] and [SEP].
MIN_CHUNK_TOKENS = 8


def split_by_tokens(
    document: Document, tokenizer: WordPieceTokenizer, chunk_tokens: int = 128, overlap: int = 16
) -> list[Chunk]:
    """Cut a document into windows of tokens, each beginning ``overlap`` tokens before the last one's end.

    Parameters
    ----------
    document
        The document.
    tokenizer
        The tokenizer of the model that will read the chunks.
    chunk_tokens
        Most tokens of a chunk as the model counts them, [CLS] and [SEP] included: a chunk of 256
        just fits a limit of 256.
    overlap
        Tokens that a chunk repeats from the one before.

    Returns
    -------
    list of Chunk
        In order. Together they cover every character that is not blank, none begins or ends within
        a word unless a single word is longer than a chunk, and none has more than ``chunk_tokens``.

    Raises
    ------
    InputError
        ``chunk_tokens`` is below `MIN_CHUNK_TOKENS`, or ``overlap`` leaves no room for new text.
    """
    if chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk size {chunk_tokens} is too small: give {MIN_CHUNK_TOKENS} tokens or more")
    room = chunk_tokens - tokenizer.n_special
    if not 0 <= overlap < room:
        raise InputError(
            f"overlap {overlap} does not fit a chunk of {chunk_tokens} tokens: give 0 to {room - 1}"
        )

    [encoding] = tokenizer.encode_batch([document.text])
    text_tokens = [i for i, (start, end) in enumerate(encoding.offsets) if end > start]
    if not text_tokens:  # blank, or of characters that the tokenizer drops
        whole = chunk_between(document, tokenizer, 0, len(document.text))
        return [] if whole is None else [whole]
    words = word_starts(encoding, text_tokens, tokenizer.continuation)
    borders = [encoding.offsets[i][0] for i in text_tokens] + [len(document.text)]
    borders[0] = 0

    chunks: list[Chunk] = []
    first, n_tokens = 0, len(text_tokens)
    while True:
        last, chunk = fit(
            document, tokenizer, borders, words, first, min(first + room, n_tokens), chunk_tokens
        )
        if chunk is not None:
            chunks.append(chunk)
        if last == n_tokens:
            return chunks
        # Begin the overlap at a word, and always later than this chunk began.
        first = next((i for i in range(max(last - overlap, first + 1), last) if words[i]), last)


def fit(
    document: Document,
    tokenizer: WordPieceTokenizer,
    borders: Sequence[int],
    words: Sequence[bool],
    first: int,
    last: int,
    chunk_tokens: int,
) -> tuple[int, Chunk | None]:
    """Return the last border, at most ``last``, at which a chunk from ``first`` has its size, and that chunk.

    The end moves back to the start of a word. Cutting within a word can change how its pieces are
    tokenized, so the chunk's own tokens decide.
    """
    last = next((i for i in range(last, first, -1) if words[i]), last)
    while True:
        chunk = chunk_between(document, tokenizer, borders[first], borders[last])
        if chunk is None or chunk.n_tokens <= chunk_tokens or last == first + 1:
            return last, chunk
        last -= 1


def chunk_between(document: Document, tokenizer: WordPieceTokenizer, start: int, end: int) -> Chunk | None:
    """Return the chunk of ``document.text[start:end]`` without blanks around it, None if it is all blank."""
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    if not text:
        return None
    [ids] = tokenizer.ids_batch([text])
    return Chunk(document.name, start, start + len(text), text, len(ids))


def word_starts(encoding: Encoding, text_tokens: Sequence[int], continuation: str) -> list[bool]:
    """Whether a chunk may begin at each text token, and (the last entry) at the end of the text."""
    return [not encoding.tokens[i].startswith(continuation) for i in text_tokens] + [True]
