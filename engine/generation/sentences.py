"""Sentences of an answer: where each begins and ends, in characters and in tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..documents.sentences import sentence_spans
from ..tokenizers.bpe import BPETokenizer
from .stream import TextStream


@dataclass(frozen=True)
class Sentence:
    """A sentence: ``text`` is the answer's ``[start:end]``, made by its tokens ``[first_token:last_token]``.

    The white space before a sentence belongs to it, as it does to the tokens of most vocabularies.
    """

    text: str
    start: int
    end: int
    first_token: int
    last_token: int

    @property
    def n_tokens(self) -> int:
        """Number of its tokens."""
        return self.last_token - self.first_token


def token_texts(ids: Sequence[int], tokenizer: BPETokenizer) -> list[str]:
    """Return the text that each token adds; a character of several tokens belongs to the last of them."""
    stream = TextStream()
    texts = [stream.push(tokenizer.token_bytes(number)) for number in ids]
    return [*texts[:-1], texts[-1] + stream.finish()] if texts else []


def sentences_of(ids: Sequence[int], tokenizer: BPETokenizer) -> tuple[Sentence, ...]:
    """Cut an answer into sentences that begin and end between two tokens.

    They cover the answer's characters and its tokens exactly: a token that is the end of one sentence and the
    beginning of the next belongs to the first.
    """
    texts = token_texts(ids, tokenizer)
    starts = [0, *accumulate(map(len, texts))]  # of each token, in characters, and the end of the last
    text = "".join(texts)
    ends = sorted({bisect_left(starts, end, hi=len(ids)) for _, end in sentence_spans(text)[:-1]} - {0})
    borders = [0, *(end for end in ends if end < len(ids)), len(ids)] if ids else []
    return tuple(
        Sentence(text[starts[first] : starts[last]], starts[first], starts[last], first, last)
        for first, last in pairwise(borders)
    )
