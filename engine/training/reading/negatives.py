"""Questions that a passage does not answer, made of questions that it answers.

Each function takes a question with its right passage and returns one of another question or passage, or None
where that cannot be done. "Near" ones look answerable: the passage speaks of most of what is asked.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

import numpy as np

from ...documents.document import Chunk
from ...documents.sentences import sentence_spans
from .articles import Asked, Span
from .record_tables import draw
from .word_kinds import NEGATED, NUMBER_WORDS, OPPOSITES, STOP_WORDS, TITLES, WORD_KIND, listed

WORD = re.compile(r"\w+")
# Names within a sentence: words with a capital, which small words may join.
NAME = re.compile(r"(?<=[^.!?:] )(?:[A-Z][\w-]+)(?: (?:(?:of|the|de|von|van|and) )?[A-Z][\w-]*)*(?!\w)")
NUMBER = re.compile(r"\b\d[\d,.]*(?:st|nd|rd|th|s)?\b")
YEAR = re.compile(r"(?:1\d|20)\d\ds?")
# A noun, as far as its neighbours tell: a determiner before it, a small word or a mark behind it.
NOUN = re.compile(
    r"\b(the|an?|many|which|what|of|his|her|its|their|\d+) ([a-z]{4,})(?= (?:of|in|is|are|was|were|did|does"
    r"|do|to|for|by|from|at|with|that|which|had|has|have|on|and|or|can|when|as)\b|[,.?;])"
)
PLACE_BEFORE = frozenset(("in", "at", "from", "near", "to", "of"))
VERBS = frozenset(listed("was is had has were are did wrote said became would began"))
CAPITAL = re.compile(r"\b[A-Z]\w+")
LEAST_LIKENESS = 1.8  # of two names, of 5.0
N_COMPARED = 150  # names of an article
N_NEAREST = 3  # chunks of the article among which one is drawn
LEAST_CHARACTERS = 60  # of another chunk
LEAST_LEFT = 20  # words of a passage whose sentence is taken out


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, numbers without the commas between their digits."""
    return WORD.findall(re.sub(r"(?<=\d),(?=\d{3})", "", text.lower()))


def normal(text: str) -> str:
    """Return the words of a text with one space before and after each, to look up words in it."""
    return f" {' '.join(words_of(text))} "


@cache
def forms_of(answer: str) -> frozenset[str]:
    """Return how else a text may give an answer: without article or title, a number in words, a surname."""
    words = words_of(answer)
    forms = [words]
    bare = [word for word in words if word not in ("the", "a", "an") and word not in TITLES]
    forms.append(bare)
    numbers = [word for word in words if word.isdigit() and (len(word) > 2 or len(bare) == 1)]
    numbers += [word for word in words if word in NUMBER_WORDS and len(bare) == 1]
    forms += [[number] for number in numbers]
    forms += [[NUMBER_WORDS[word]] for word in numbers if word in NUMBER_WORDS]
    capitals = CAPITAL.findall(answer)
    if 1 < len(capitals) == len(bare) <= 4:  # a name, whose last word may stand for it
        forms.append([capitals[-1].lower()])
    return frozenset(" ".join(form) for form in forms if form)


def holds(text: str, answer: str) -> bool:
    """Whether a text, as `normal` gives it, may give an answer: in any form, or with most of its words."""
    if any(f" {form} " in text for form in forms_of(answer)):
        return True
    telling = [word for word in words_of(answer) if word not in STOP_WORDS]
    return len(telling) > 2 and sum(f" {word} " in text for word in telling) >= 0.6 * len(telling)


@dataclass(frozen=True)
class ChunkText:
    """A chunk of an article with what is looked up in it."""

    chunk: Chunk
    normal: str
    sentences: tuple[Span, ...]  # in characters of the chunk
    words: tuple[frozenset[str], ...]  # of each sentence


@dataclass
class Name:
    """How a name of an article is used."""

    count: int = 0
    uses: Counter[str] = field(default_factory=Counter)  # kinds of the words before and behind it


@dataclass(frozen=True)
class ArticleText:
    """An article's chunks, and what its questions may be swapped with."""

    chunks: tuple[ChunkText, ...]
    names: dict[str, Name]
    numbers: tuple[str, ...]
    nouns: dict[str, tuple[str, ...]]  # by the determiner before them
    words: frozenset[str]
    weights: dict[str, float]  # of words: the logarithm of how few chunks have them

    @classmethod
    def of(cls, text: str, chunks: Sequence[Chunk]) -> "ArticleText":
        """Read what the functions below look up in an article of these chunks."""
        sentences = sentence_spans(text)
        starts = [start for start, _ in sentences]
        read = []
        for chunk in chunks:
            first = max(0, int(np.searchsorted(starts, chunk.start, "right")) - 1)
            last = int(np.searchsorted(starts, chunk.end, "left"))
            spans = tuple(
                (max(start, chunk.start) - chunk.start, min(end, chunk.end) - chunk.start)
                for start, end in sentences[first:last]
            )
            words = tuple(frozenset(words_of(chunk.text[slice(*span)])) for span in spans)
            read.append(ChunkText(chunk, normal(chunk.text), spans, words))
        counts = Counter(word for chunk in read for word in frozenset().union(*chunk.words))
        names: dict[str, Name] = defaultdict(Name)
        for match in NAME.finditer(text):
            name = names[match[0]]
            name.count += 1
            name.uses.update(uses(text, match.span()))
        nouns = defaultdict[str, set[str]](set)
        for match in NOUN.finditer(text):
            nouns[determiner(match[1])].add(match[2])
        return cls(
            tuple(read),
            dict(names),
            tuple(dict.fromkeys(NUMBER.findall(text))),
            {key: tuple(sorted(found)) for key, found in nouns.items()},
            frozenset(counts),
            {word: math.log(1 + len(read) / n) for word, n in counts.items() if word not in STOP_WORDS},
        )


def uses(text: str, span: Span) -> tuple[str, str]:
    """Return the kinds of the words before and behind a name."""
    words = text[max(0, span[0] - 14) : span[0]].lower().split()
    word = words[-1] if words else ""
    before = "place" if word in PLACE_BEFORE else word if word in ("the", "a", "an", "by") else "other"
    behind = re.match(r"'s|[,.?;:)]| (\w+)", text[span[1] : span[1] + 14])
    follower = behind[1] if behind else None
    if follower is None:
        return before, behind[0] if behind and behind[0] == "'s" else "mark"
    verb = follower in VERBS or follower.endswith("ed")
    return before, "verb" if verb else "small" if follower in STOP_WORDS else "noun behind"


def determiner(word: str) -> str:
    """Return the kind of a determiner."""
    return "many" if word == "many" or word.isdigit() else "what" if word in ("which", "what") else "the"


def other_chunk(asked: Asked, article: ArticleText, rng: np.random.Generator) -> Asked | None:
    """Ask about a chunk of the article with a sentence that shares many rare words, but not the answer."""
    answer = asked.passage[slice(*asked.span)]  # type: ignore[misc]
    wanted = frozenset(words_of(asked.question)) - STOP_WORDS
    weights = {word: article.weights[word] for word in wanted if word in article.weights}
    found: list[tuple[float, int, int]] = []
    for number, chunk in enumerate(article.chunks):
        if len(chunk.chunk.text) < LEAST_CHARACTERS or holds(chunk.normal, answer):
            continue
        scores = [sum(weights[word] for word in words & weights.keys()) for words in chunk.words]
        if highest := max(scores, default=0):
            found.append((highest + 0.3 * sum(scores) / len(scores), number, scores.index(highest)))
    if not found:
        return None
    nearest = sorted(found, reverse=True)[:N_NEAREST]
    good = [each for each in nearest if each[0] > 0.6 * nearest[0][0]]
    _, number, sentence = draw(rng, good)
    chunk = article.chunks[number]
    return Asked(asked.question, chunk.chunk.text, None, chunk.sentences[sentence], "other chunk")


def without_sentence(asked: Asked, chunk: ChunkText) -> Asked | None:
    """Take the sentences of the answer out of the passage; None where the rest is short or may answer."""
    first, last = asked.span  # type: ignore[misc]
    inside = [(start, end) for start, end in chunk.sentences if start < last and first < end]
    if not inside:
        return None
    text, start, end = chunk.chunk.text, inside[0][0], inside[-1][1]
    start += len(text[start:end]) - len(text[start:end].lstrip())  # what is blank before it stays
    rest = text[:start] + text[end:].lstrip()
    if len(rest.split()) < LEAST_LEFT or holds(normal(rest), asked.passage[first:last]):
        return None
    place = min(start, len(rest.rstrip()) - 1)
    return Asked(asked.question, rest, None, (place, place + 1), "sentence out")


def other_words(
    asked: Asked, article: ArticleText, chunk: ChunkText, rng: np.random.Generator
) -> Asked | None:
    """Put another name, number, noun or word of the same kind in place of one of the question's."""
    question = asked.question
    ways = [swapped_name, swapped_number, swapped_word, swapped_noun]
    order = rng.permutation(4) if rng.random() < 0.5 else range(4)  # names first in half of the cases
    for number in order:
        swapped = ways[number](question, asked, article, chunk, rng)
        if swapped is not None:
            return Asked(swapped, asked.passage, None, asked.span, "swapped")
    return None


def replaced(text: str, span: Span, new: str) -> str:
    """Return a text with another part in place of one, "an" and "a" before it set right."""
    head, tail = text[: span[0]], text[span[1] :]
    if article := re.search(r"\ban? $", head):
        head = head[: article.start()] + ("an " if new[0].lower() in "aeiou" else "a ")
    return head + new + tail


def is_free(new: str, asked: Asked, chunk: ChunkText) -> bool:
    """Whether a question about ``new`` has no answer in the passage.

    That is so where the passage lacks it. Where it has it, the sentences with it, and those that follow
    them, must have nothing of the answer's kind: no number, or no other name.
    """
    wanted = normal(new)
    if wanted not in chunk.normal:
        return not any(f" {word} " in chunk.normal for word in wanted.split() if word not in STOP_WORDS)
    first, last = asked.span  # type: ignore[misc]
    answer = asked.passage[first:last]
    numeric = bool(re.search(r"\d", answer)) or bool(NUMBER_WORDS.keys() & set(words_of(answer)))
    if not numeric and not CAPITAL.match(answer):
        return False
    after_it = False
    for (start, end), words in zip(chunk.sentences, chunk.words, strict=True):
        text = chunk.chunk.text[start:end]
        has_it = wanted in normal(text)
        if has_it or after_it:
            rest = text.replace(new, "")
            names = [name for name in CAPITAL.findall(rest.lstrip()[1:]) if name.lower() not in STOP_WORDS]
            numbers = re.search(r"\d", rest) or NUMBER_WORDS.keys() & words
            if (numbers if numeric else names) or (has_it and start < last and first < end):
                return False
        after_it = has_it
    return True


def is_other(new: str, old: str, question: str) -> bool:
    """Whether two names are of different things, as far as their words tell, and the second is not asked."""
    a, b = set(words_of(new)), set(words_of(old))
    one, two = " ".join(words_of(new)), " ".join(words_of(old))
    if a <= b or b <= a or normal(new) in normal(question):
        return False
    return bool(a & b) or not (one[:5] == two[:5] or one in two or two in one)


def swapped_name(
    question: str, asked: Asked, article: ArticleText, chunk: ChunkText, rng: np.random.Generator
) -> str | None:
    """Another name of the article in place of one of the question's, used as that is."""
    found = [
        match
        for match in NAME.finditer(question)
        if match[0].lower() not in WORD_KIND and not re.search(r"\ban? $", question[: match.start()])
    ]
    if not found:
        return None
    match = draw(rng, found)
    old, answer = match[0], asked.passage[slice(*asked.span)]  # type: ignore[misc]
    of_old = article.names.get(old) or Name(1, Counter(uses(question, match.span())))

    def likeness(name: str) -> float:
        of_name, words, others = article.names[name], name.split(), old.split()
        same = sum(min(of_name.uses[key] / of_name.count, n / of_old.count) for key, n in of_old.uses.items())
        ends = 1.5 * (words[-1] == others[-1]) + 0.5 * (words[0] == others[0])
        return same + ends + 0.7 * (len(words) == len(others)) + 0.4 * (of_name.count > 1)

    names = list(article.names)
    names = [names[i] for i in rng.permutation(len(names))[:N_COMPARED]]
    alike = sorted(((likeness(name), name) for name in names), reverse=True)
    others = (
        name
        for like, name in alike
        if like > LEAST_LIKENESS
        and len(name) > 3
        and name.lower() not in WORD_KIND
        and is_other(name, old, question)
        and not holds(normal(name), answer)
    )
    free = [name for name in islice(others, 12) if is_free(name, asked, chunk)]
    inside = [name for name in free if normal(name) in chunk.normal]
    free = inside or free[:3]
    return replaced(question, match.span(), draw(rng, free)) if free else None


def swapped_number(
    question: str, asked: Asked, article: ArticleText, chunk: ChunkText, rng: np.random.Generator
) -> str | None:
    """Another number of the article for one of the question's: a year for a year, and so on."""
    found = list(NUMBER.finditer(question))
    if not found:
        return None
    match = draw(rng, found)
    old = match[0].rstrip(",.")
    kind = shape(old)
    numbers = [number.rstrip(",.") for number in article.numbers]
    near = [n for n in numbers if shape(n) == kind and n != old and is_free(n, asked, chunk)]
    if YEAR.fullmatch(old) and (not near or rng.random() < 0.3):
        near = [
            f"{int(old[:4]) + by}{old[4:]}"
            for by in (-20, -10, 10, 20)
            if old.endswith("s") or rng.random() < 0.7
        ]
        near = [year for year in near if f" {year} " not in chunk.normal]
    near = [n for n in near if normal(n) not in normal(question)]
    return replaced(question, (match.start(), match.start() + len(old)), draw(rng, near)) if near else None


def shape(number: str) -> str:
    """Return the kind of a number: a year, an ordinal, or how many digits it has."""
    digits = re.sub(r"[^\d]", "", number)
    ending = re.sub(r"[\d,.]", "", number)
    return ("year" if YEAR.fullmatch(number) else f"{min(len(digits), 5)}") + (
        "th" if len(ending) == 2 else ending
    )


def swapped_word(
    question: str, asked: Asked, article: ArticleText, chunk: ChunkText, rng: np.random.Generator
) -> str | None:
    """Another month, country, unit or the like in place of one of the question's, best one of the article."""
    found = [match for match in re.finditer(r"\b[A-Za-z]+\b", question) if match[0].lower() in WORD_KIND]
    if not found:
        return None
    match = draw(rng, found)
    asked_words = set(words_of(question))
    kind = WORD_KIND[match[0].lower()]
    others = [w for w in kind if w not in asked_words and f" {w} " not in chunk.normal]
    others = [word for word in others if word in article.words] or others
    if not others:
        return None
    new = draw(rng, others)
    return replaced(question, match.span(), new.capitalize() if match[0][0].isupper() else new)


def swapped_noun(
    question: str, asked: Asked, article: ArticleText, chunk: ChunkText, rng: np.random.Generator
) -> str | None:
    """Another noun of the article in place of one of the question's, as far as determiners tell nouns."""
    found = [match for match in NOUN.finditer(question) if match[2] not in STOP_WORDS]
    found = [match for match in found if f" {match[2]} " in chunk.normal]
    if not found:
        return None
    match = draw(rng, found)
    old, asked_words = match[2], set(words_of(question))
    near = [
        noun
        for noun in article.nouns.get(determiner(match[1]), ())
        if noun.endswith("s") == old.endswith("s")
        and noun not in STOP_WORDS
        and noun not in asked_words
        and noun[:4] != old[:4]
        and f" {noun} " not in chunk.normal
    ]
    alike = [noun for noun in near if noun[-3:] == old[-3:]]
    near = alike if len(alike) > 2 and rng.random() < 0.5 else near
    return replaced(question, match.span(2), draw(rng, near)) if near else None


def opposite(asked: Asked, chunk: ChunkText, rng: np.random.Generator) -> Asked | None:
    """Put the opposite of a word into the question, which the passage lacks."""
    asked_words = set(words_of(asked.question))
    found = [
        match
        for match in re.finditer(r"\b[a-z]+\b", asked.question)
        if OPPOSITES.get(match[0], match[0]) not in asked_words and has_opposite(asked.question, match)
    ]
    found = [match for match in found if f" {OPPOSITES[match[0]]} " not in chunk.normal]
    if not found:
        return None
    match = draw(rng, found)
    question = replaced(asked.question, match.span(), OPPOSITES[match[0]])
    return Asked(question, asked.passage, None, asked.span, "opposite")


def has_opposite(question: str, match: re.Match[str]) -> bool:
    """Whether a word has its usual sense here: not in "how long", "no longer", "most people" or "the end"."""
    before = question[: match.start()].lower().split()[-1:]
    if match[0] == "most":
        return before == ["the"]
    return before not in (["how"], ["no"]) and not (before == ["the"] and match[0] in ("end", "start"))


def negated(asked: Asked, chunk: ChunkText, rng: np.random.Generator) -> Asked | None:
    """Put "not" into a question of who, what or which, where the passage denies nothing."""
    if not re.match(r"(who|what|which)\b", asked.question, re.IGNORECASE):
        return None
    match = re.search(rf"\b({'|'.join(NEGATED)})\b", asked.question)
    if match is None or re.search(r"\b(not|never|cannot|nor|no|without)\b|n['’]t\b", chunk.chunk.text):
        return None
    is_short = match[0] in ("did", "does", "do") or rng.random() < 0.4
    question = replaced(asked.question, match.span(), NEGATED[match[0]] if is_short else f"{match[0]} not")
    return Asked(question, asked.passage, None, asked.span, "negated")
