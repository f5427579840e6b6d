"""Other wordings of a question: with the words, the numbers and the spelling of a passage."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import pairwise
from string import ascii_lowercase

from ...documents.language import ENGLISH, all_stop_words
from ...generation.numbers import Written, written
from ...retrieval.bm25 import Bm25, question_stems
from ...retrieval.index import Index
from ...retrieval.words import WORD, stem_of, words
from ...tokenizers.text_tokenizer import TextTokenizer

# Likeness of spelling from which on a word that no document holds is taken for another (`SequenceMatcher`):
# of a word that the model's vocabulary lacks, and of one that it has, which is more often meant as it stands.
MISSPELLED, MISSPELLED_WORD = 0.75, 0.85
SHORTEST = 4  # letters of a word whose spelling is compared
MOST_NEAR = 3  # words of the documents that are offered for one
ASKING = re.compile(  # what a question in English asks for
    r"(?:who|whom|when|where|why|what|which|"
    r"how(?: (?:many|much|long|far|old|large|high|wide|often|deep))?)\b",
    re.I,
)
MOST_ADDED = 6  # words of a passage that a question is asked with


def misspelled(question: str, near: str, index: Index, tokenizer: TextTokenizer) -> dict[str, list[str]]:
    """Return the words of a question that no document holds, each with the nearest of the documents.

    Words ``near`` the passage come first, pairs of them as one word too; a word of the tokenizer's vocabulary
    counts only next to these. Last come words of that vocabulary, which may be what was meant.
    """
    found = {}
    everywhere: list[str] = []  # the words of all documents, once they are needed
    known = set(WORD.findall(near.lower()))
    pairs = {f"{one} {two}" for one, two in pairwise(WORD.findall(near.lower()))}
    for word in dict.fromkeys(WORD.findall(question)):
        is_left_out = len(word) < SHORTEST or word.isdigit() or word.lower() in all_stop_words()
        if is_left_out or is_known(word, index.words):
            continue
        is_word = is_token(word, tokenizer) or is_token(stem_of(word), tokenizer)
        least = MISSPELLED_WORD if is_word else MISSPELLED
        own = get_close_matches(word.lower(), sorted(known), MOST_NEAR, least)
        own = own or get_close_matches(word.lower(), sorted(pairs), MOST_NEAR, MISSPELLED_WORD)
        if not own and not is_word and not any(map(str.isdigit, word)):
            everywhere = everywhere or sorted(corpus_words(index))
            own = get_close_matches(word.lower(), everywhere, MOST_NEAR, least)
        if not own and not is_word and word.islower():
            own = one_letter_off(word, tokenizer)
        own = [each for each in own if stem_of(each) != stem_of(word)]
        if own and word.lower() not in {f"{own[0]}n", f"{own[0]}en"}:  # participles keep these in their stems
            found[word] = own
    return found


def is_token(word: str, tokenizer: TextTokenizer) -> bool:
    """Whether the vocabulary of a tokenizer holds a word as a whole."""
    return len(tokenizer.encode(word.lower()).ids) - tokenizer.n_special == 1


def reads_as_words(text: str, tokenizer: TextTokenizer) -> bool:
    """Whether the vocabulary of a tokenizer, of English mostly, holds all words of a text."""
    return all(is_token(word, tokenizer) for word in WORD.findall(text))


def one_letter_off(word: str, tokenizer: TextTokenizer) -> list[str]:
    """Return words of a vocabulary with one letter or the order of two changed; none for "handover"."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    if any(min(map(len, cut)) >= SHORTEST and all(is_token(each, tokenizer) for each in cut) for cut in cuts):
        return []  # two words in one
    near = {before + after[1:2] + after[:1] + after[2:] for before, after in cuts}
    near |= {a + letter + rest for a, b in cuts for letter in ("", *ascii_lowercase) for rest in (b, b[1:])}
    return get_close_matches(word, sorted(each for each in near if is_token(each, tokenizer)), MOST_NEAR)


def is_known(word: str, index: Bm25) -> bool:
    """Whether the documents hold a word in some form, or it is a stop word."""
    stems = question_stems(word, index.postings.languages)
    return not stems or any(stem in index.postings.vocabulary for stem in stems)


def corpus_words(index: Index) -> set[str]:
    """Return all words of the chunks of an index, in lower case."""
    return {word for text in index.texts for word in WORD.findall(text.lower()) if len(word) >= SHORTEST}


def respelled(question: str, spelled: dict[str, list[str]]) -> str:
    """Return a question with each misspelled word as the documents spell it."""
    for word, near in spelled.items():
        best = near[0].capitalize() if word[0].isupper() else near[0]
        question = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", best, question)
    return question


def other_forms(question: str, passage: str) -> dict[str, str]:
    """Return the numbers and dates of a question that a passage writes in another form, with that form."""
    own = [each for comma in (False, True) for each in longest(passage, comma)]
    found: dict[str, str] = {}
    for comma in (False, True):
        for asked in longest(question, comma):
            text = question[asked.start : asked.end].strip()
            if len(text) < 2 or occurs(text, passage):
                continue
            same = (each for each in own if asked.said & each.given)
            if (each := next(same, None)) is not None:
                found.setdefault(text, passage[each.start : each.end].strip())
    return found


def longest(text: str, decimal_comma: bool) -> list[Written]:
    """Return the numbers and dates of a text, none within longer ones or within codes such as "E12"."""
    pieces = (each for each in written(text, decimal_comma) if each.said)
    kept: list[Written] = []
    for each in sorted(pieces, key=lambda each: each.start - each.end):
        span = each.start, each.end
        is_within = any(
            other.start <= each.start and each.end <= other.end and (other.start, other.end) != span
            for other in kept
        )
        if not is_within and not text[each.start - 1 : each.start].isalnum():
            kept.append(each)
    return kept


def occurs(text: str, passage: str) -> bool:
    """Whether a text stands in a passage as a whole word, in any case."""
    return re.search(rf"(?<![\w.,]){re.escape(text)}(?![\w]|[.,]\d)", passage, re.IGNORECASE) is not None


def content_words(text: str, language: str = ENGLISH) -> dict[str, str]:
    """Return the words of a text that carry meaning, by their stems, as they are first spelled."""
    spelled = WORD.findall(text)
    stems = words(spelled, [language] * len(spelled), leave_out_more=True)
    found: dict[str, str] = {}
    for word, own in zip(spelled, stems, strict=True):
        for stem in own:
            found.setdefault(stem, word if len(own) == 1 else stem)
    return found


def share_covered(question: str, passage: str, language: str, by: Bm25 | None = None) -> float:
    """Return the share of a question's content words, ``by`` rarity, that a passage holds; 1 without any."""
    words = content_words(passage, language)
    asked = {stem: by.idf(stem) if by else 1.0 for stem in content_words(question, language)}
    return sum(asked[stem] for stem in asked if stem in words) / sum(asked.values()) if asked else 1.0


def in_words_of(
    question: str, passage: str, without: Sequence[str], index: Index, language: str
) -> list[str]:
    """Return a question with the rarest words of a passage that it lacks, none of the texts ``without``.

    They stand in brackets, as the topic of a follow-up question does, and then in place of its own words.
    """
    left_out = {stem for text in (question, *without) for stem in content_words(text, language)}
    own = {stem: word for stem, word in content_words(passage, language).items() if stem not in left_out}
    rare = sorted(own, key=lambda stem: -index.words.idf(stem))[:MOST_ADDED]
    added = [word for stem, word in own.items() if stem in rare]
    if not added:
        return []
    asking = ASKING.match(question)
    short = " ".join([*([asking.group().strip()] if asking else []), *added])
    return [f"{question.strip()} ({', '.join(added)})", f"{short}?"]


def differing(one: str, other: str, answers: Sequence[str] = ()) -> tuple[list[str], list[str], int]:
    """Return the words, not numbers, that only one of two texts has, in order, and how many both have.

    The ``answers`` in the first do not count.
    """
    for answer in answers:
        one = one.replace(answer, " ")
    texts = [[word for word in re.findall(r"\w+", text) if not word[0].isdigit()] for text in (one, other)]
    lower = [[word.lower() for word in text] for text in texts]
    first: list[str] = []
    second: list[str] = []
    n_shared = 0
    for kind, a, b, c, d in SequenceMatcher(None, lower[0], lower[1], autojunk=False).get_opcodes():
        if kind == "equal":
            n_shared += b - a
        else:
            first, second = first + texts[0][a:b], second + texts[1][c:d]
    return first, second, n_shared
