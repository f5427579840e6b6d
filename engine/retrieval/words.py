"""The words of a text, as BM25 and the checks of answers compare them.

Words are runs of two or more letters with their marks, digits or underscores, in lower case and composed, so
that "é" is one letter however it is written. Then the stop words of the text's language are left out, of
English Lucene's 33, and the others reduced to their stems by Snowball's stemmer of the language (of English:
Porter 2001): "inventories" and "inventory" are one word.

Chinese, Japanese, Thai and others set no blanks between words: theirs are overlapping pairs of characters,
and single Chinese ones. Korean words lose their last particle and are cut into pairs of syllables.
``python -m benchmarks.languages`` measures both.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import regex
from Stemmer import Stemmer

from ..documents.language import ENGLISH, LANGUAGES, stop_words

# Scripts without blanks between words. Chinese characters and kana are cut apart: endings are kana.
HAN = r"\p{Han}々〆"
UNSPACED = (HAN, r"\p{Hiragana}", r"\p{Katakana}ー", r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}")
LETTER = rf"[\p{{L}}\p{{N}}_--{''.join(UNSPACED)}]"
WORD = regex.compile(
    rf"(?V1){LETTER}(?:{LETTER}|[\p{{Mn}}\p{{Mc}}])+|" + "|".join(f"[{each}]+" for each in UNSPACED)
)
ASCII_WORD = re.compile("[a-z0-9_]{2,}")  # the same in a text of such letters, in a third of the time
IS_HAN, IS_UNSPACED, HANGUL = map(regex.compile, (f"[{HAN}]", f"[{''.join(UNSPACED)}]", r"\p{Hangul}+"))
CHARACTER = regex.compile(r"\X")  # with its marks
# At the end of Korean words, longer ones first: "in", "from", "of", the subject, the object and others.
PARTICLES = (
    "에서는 에서도 에게서 으로는 까지는 부터는 에서 에게 에는 으로 까지 부터 마다 처럼 보다 이나 "
    "와 과 은 는 이 가 을 를 에 의 도 로 만 나"
)
PARTICLE = regex.compile(rf"(?<=\p{{Hangul}})(?:{'|'.join(PARTICLES.split())})$")
IGNORED = regex.compile("[\u00ad\u200c\u200d\ufe00-\ufe0f]")  # soft hyphens, joiners, variants of a sign
# Letters in another width, ligatures and joined Arabic letters; other compatible signs, as "™", stay.
COMPATIBLE = regex.compile("[\ufb00-\ufdff\ufe70-\uffef]+")


class Stems(dict[str, str]):
    """The stem of each word of a language, computed at the first access; empty for a stop word."""

    def __init__(self, language: str, leave_out_more: bool = False) -> None:
        self.left_out = stop_words(language)
        if language == ENGLISH and not leave_out_more:
            from bm25s.stopwords import STOPWORDS_EN  # Lucene's 33; slow to load

            self.left_out = frozenset(STOPWORDS_EN)
        self.stemmer = Stemmer(language) if LANGUAGES[language].stems else None

    def __missing__(self, word: str) -> str:
        stem = "" if word in self.left_out else self.stemmer.stemWord(word) if self.stemmer else word
        self[word] = stem
        return stem


def words(
    texts: Sequence[str], languages: Sequence[str] = (), leave_out_more: bool = False
) -> list[list[str]]:
    """Split texts into the stems of the words that count, by their languages, or by that of English."""
    stems = {language: Stems(language, leave_out_more) for language in {*languages} or {ENGLISH}}
    return [
        list(filter(None, map(stems[language].__getitem__, split_words(text, language))))
        for text, language in zip(texts, languages or [ENGLISH] * len(texts), strict=True)
    ]


def stem_of(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a word, by which words are compared, also of a stop word."""
    word = folded(word, language)
    return Stemmer(language).stemWord(word) if LANGUAGES[language].stems else word


def split_words(text: str, language: str = ENGLISH) -> Iterable[str]:
    """Return the words of a text, as the table of stop words has them."""
    text = folded(text, language)
    return ASCII_WORD.findall(text) if text.isascii() else any_words(text)


def any_words(text: str) -> Iterator[str]:
    """Yield the words of a `folded` text in any script."""
    for word in WORD.findall(text):
        if word.isascii():
            yield word
        elif IS_UNSPACED.match(word):
            yield from map("".join, pairwise(CHARACTER.findall(word)))
            if IS_HAN.match(word):
                yield from word
        else:
            yield from korean_words(word) if HANGUL.search(word) else [word]


def korean_words(word: str) -> list[str]:
    """Cut a word of Korean into pairs of syllables, with and without what looks like a last particle."""
    stem = PARTICLE.sub("", word)
    if not HANGUL.fullmatch(word):
        return [stem]
    pairs = ["".join(pair) for pair in pairwise(stem if len(stem) > 1 else word)]
    return pairs if len(stem) > 1 else [*pairs, stem]


def folded(text: str, language: str = ENGLISH) -> str:
    """Return a text in lower case, composed, each letter in one form."""
    if language == "turkish":
        text = text.replace("I", "ı")
    if text.isascii():
        return text.lower()
    text = COMPATIBLE.sub(lambda run: unicodedata.normalize("NFKC", run.group()), IGNORED.sub("", text))
    return unicodedata.normalize("NFC", text).replace("İ", "i").lower()
