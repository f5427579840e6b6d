"""The language of a text: by the script of its letters, and by the commonest words of those that share it.

Words of search are split, stemmed and left out by it, so the tables are those of the stop words that BM25
leaves out: bm25s has them of 12 languages, from NLTK and Snowball, and ``data/languages.csv`` has the
commonest words of others. What no common word tells, such as a table of names, has no language of its own.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import regex

from ..installed import rows_of

SAMPLE = 2_000  # characters from the middle of a text, which tell its language
CLEARLY = 0.25  # of the words: a share that common words of English have in no other language
FEWEST = 2  # different words that tell a language
SHARE = 0.05  # of the words, at least: "min" and "for" of an English table are Danish, too
KANA_SHARE = 0.1  # of the characters of Japanese, at least; Chinese has none
ENGLISH, OTHER, LATIN = "english", "other", "LATIN"
LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*+(?![-/]?\d)")  # no part of a code, such as "LI-2155"


@dataclass(frozen=True)
class Language:
    """A language: its name, its script as Unicode names letters, and how BM25 reads its words."""

    label: str
    script: str
    stems: bool  # whether Snowball has a stemmer of its name
    accents: str  # its letters that English lacks
    common: tuple[str, ...]  # its commonest words; those of questions suffice where bm25s has a list


# By their names in lower case. Of several languages of a script that fit alike, the first counts.
LANGUAGES = {
    row["name"]: Language(
        row["label"], row["script"], row["stems"] == "yes", row["accents"], (*row["common"].split(),)
    )
    for row in rows_of("languages.csv")
}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the commonest words of one of `LANGUAGES`, in lower case and composed."""
    from bm25s import stopwords  # slow to load

    name = "EN_PLUS" if language == ENGLISH else language.upper()
    listed = getattr(stopwords, f"STOPWORDS_{name}", ())
    return frozenset((*listed, *LANGUAGES[language].common))


@cache
def all_stop_words() -> frozenset[str]:
    """Return the commonest words of all languages."""
    return frozenset().union(*map(stop_words, LANGUAGES))


def script_of(text: str) -> str:
    """Return the script of most letters of a text, as Unicode names it; `LATIN` without letters."""
    if text.isascii():
        return LATIN
    found: Counter[str] = Counter()
    for letter, n in Counter(text).items():
        if letter.isalpha():
            found[unicodedata.name(letter, "").partition(" ")[0]] += n
    kana = found.pop("HIRAGANA", 0) + found.pop("KATAKANA", 0)
    found["KANA" if kana > KANA_SHARE * (kana + found["CJK"]) else "CJK"] += kana
    if found["KANA"]:
        found["KANA"] += found.pop("CJK", 0)
    return max(found, key=lambda script: found[script]) if found.total() else LATIN


def detected(text: str) -> str:
    """Return the language of a text, one of `LANGUAGES`; empty where nothing tells it.

    English is preferred to another language with as many words, since names and quotations of
    others stand in English texts.
    """
    middle = max(0, (len(text) - SAMPLE) // 2)
    sample = unicodedata.normalize("NFKC", text[middle : middle + SAMPLE]).replace("İ", "i").lower()
    # Single letters of English are no words: they are symbols and numbers of lists, and words of others.
    words = [word for word in LETTERS.findall(sample) if len(word) > 1 or not word.isascii()]
    script = script_of(sample)
    if script == LATIN and sum(word in stop_words(ENGLISH) for word in words) > CLEARLY * len(words):
        return ENGLISH
    own = [name for name, language in LANGUAGES.items() if language.script == script]
    if len(own) < 2:
        return own[0] if own else OTHER
    found = counts_by_language(words, own)
    best = max(own, key=lambda name: sum(found[name]))
    few = script == LATIN and best != ENGLISH and sum(found[best]) < SHARE * len(words)
    return best if len(found[best]) >= FEWEST and not few else "" if script == LATIN else own[0]


def counts_by_language(words: Iterable[str], languages: Iterable[str]) -> dict[str, list[int]]:
    """Return how often each of the words occurs that is common in a language, or has letters of it."""
    counts = Counter(words)
    rare = counts.keys() - all_stop_words()
    accented = {word: {each for each in word if not each.isascii()} for word in rare if not word.isascii()}
    found = {}
    for name in languages:
        letters = set(LANGUAGES[name].accents)
        own = counts.keys() & stop_words(name) | {word for word, each in accented.items() if each <= letters}
        found[name] = [counts[word] for word in own]
    return found


def language_of(text: str) -> str:
    """Return the language of a text, English where nothing tells it."""
    return detected(text) or ENGLISH


def is_english(text: str) -> bool:
    """Whether a text is English; names and tables, which nothing tells, pass as English."""
    return language_of(text) == ENGLISH
