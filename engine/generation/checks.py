"""Checks of a generated text against its passages, sentence by sentence.

Two checks: words that occur in no passage, which needs no model, and how much less probable the sentence is
without the passages, which needs one more reading of it.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from ..documents.language import ENGLISH, language_of
from ..documents.sentences import sentence_spans
from ..retrieval.words import stem_of
from ..tokenizers.text_tokenizer import TextTokenizer
from .attribution import DROP_WITHOUT_ANY
from .numbers import given_values, has_decimal_comma, written

# "U.S." is one word, as "US" is.
WORD = regex.compile(r"\d+(?:[.,:]\d+)*|\p{Lu}(?:\.\p{Lu})+\b\.?|[^\W\d_]+(?:['’][^\W\d_]+)*")
# The vocabulary of BERT is sorted by frequency, from id 1996 ("the") on.
COMMON_ID = 8_000


@dataclass(frozen=True)
class UnknownWord:
    """A number, name or rare word that no passage holds, at ``[start, end)`` of the text."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of a generated text, at ``[start, end)``."""

    start: int
    end: int
    unknown: tuple[UnknownWord, ...]  # words that occur in no passage
    # fall of its log-probability without the passages, in nats per token; None if not computed
    log_prob_drop: float | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the passages support it: no number or name is unknown, and it depends on them."""
        is_invented = any(word.kind != "rare word" for word in self.unknown)
        return not is_invented and (self.log_prob_drop is None or self.log_prob_drop >= DROP_WITHOUT_ANY)

    @property
    def reason(self) -> str:
        """Why it is unsupported, empty if it is not; its sources are the passages that the model read."""
        if self.is_supported:
            return ""
        kinds = sorted({word.kind for word in self.unknown} - {"rare word"})
        if kinds:
            return f"a {' and a '.join(kinds)} in it occur{'s' * (len(kinds) == 1)} in no source"
        return "it would be as probable without the sources"


def check_sentences(
    text: str, passages: Sequence[str], question: str, tokenizer: TextTokenizer
) -> tuple[CheckedSentence, ...]:
    """Find the words of each sentence that occur neither in a passage nor in the question.

    Words are compared by their stems, numbers, dates and times by their values. The vocabulary of the
    encoder's ``tokenizer`` tells common words of English from rare ones.
    """
    sources = (*passages, question)
    language = language_of("\n".join(passages))
    known = {stem(word, language) for each in sources for word in WORD.findall(each)}
    given = given_values(sources)
    commas = {has_decimal_comma(text), has_decimal_comma(" ".join(sources))}
    said = [each for comma in commas for each in written(text, comma)]
    # the places of numbers, dates and times that the sources hold in some form
    numbers = [(each.start, each.end) for each in said if each.said & given]

    def unknown_words(start: int, end: int) -> Iterator[UnknownWord]:
        for match in WORD.finditer(text, start, end):
            word = match.group()
            if any(first <= match.start() and match.end() <= last for first, last in numbers):
                continue
            is_first = not text[start : match.start()].strip(" \n\"'“‘(-*")
            if not word[0].isdecimal() and stem(word, language) in known:
                continue
            if unicodedata.category(word[0]) in {"Nd", "No", "Nl"}:
                kind = "number"
            elif word[0].isupper() and not is_first:
                kind = "name"
            elif language == ENGLISH and is_rare(word.lower(), tokenizer):
                kind = "rare word"
            else:
                continue
            yield UnknownWord(match.start(), match.end(), kind)

    return tuple(
        CheckedSentence(start, end, tuple(unknown_words(start, end)))
        for start, end in sentence_spans(text)
        if text[start:end].strip()
    )


@lru_cache(maxsize=65_536)
def stem(word: str, language: str) -> str:
    """Return the form by which words are compared."""
    return stem_of(word.lower().replace(".", "").replace("’", "'").removesuffix("'s"), language)


def is_rare(word: str, tokenizer: TextTokenizer) -> bool:
    """Whether a word in lower case is not one of the common tokens of the vocabulary."""
    ids = tokenizer.around(tokenizer.encode(word).ids)[1]
    return len(ids) > 1 or ids[0] > COMMON_ID if ids else False
