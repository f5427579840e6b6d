"""Tables of English words: opposites, words of one kind, numbers, and words that say little by themselves."""

from ...installed import bundled


def lines_of(name: str) -> list[str]:
    """Return the lines of a bundled file."""
    return bundled(name).read_text("utf-8").splitlines()


def listed(words: str) -> tuple[str, ...]:
    """Return the words of a line."""
    return tuple(words.split())


_LISTS = {kind: listed(words) for kind, words in (line.split(": ") for line in lines_of("word_lists.txt"))}
STOP_WORDS, TITLES = frozenset(_LISTS["stop words"]), frozenset(_LISTS["titles"])
ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of ordinals in digits
_DIGITS = (
    {word: str(number) for number, word in enumerate(_LISTS["ones"])}
    | {word: str(10 * number) for number, word in enumerate(_LISTS["tens"], 3)}
    | {word: f"{number}{ENDINGS.get(number, 'th')}" for number, word in enumerate(_LISTS["ordinals"], 1)}
)
NUMBER_WORDS = _DIGITS | {number: word for word, number in _DIGITS.items()}  # both ways

# Words of one kind a line; each asks for something else than another.
WORD_KIND = {word: listed(line) for line in lines_of("word_kinds.txt") for word in listed(line)}

# Pairs of opposites.
_PAIRS = [
    (pair.split()[0], pair.split()[1]) for line in lines_of("opposites.txt") for pair in line.split(", ")
]
# Of a word with several opposites the first counts.
OPPOSITES = {b: a for a, b in reversed(_PAIRS)} | dict(reversed(_PAIRS))

NEGATED = {
    "did": "didn't", "does": "doesn't", "do": "don't", "was": "wasn't", "were": "weren't", "is": "isn't",
    "are": "aren't", "can": "can't", "could": "couldn't", "would": "wouldn't", "has": "hasn't",
}  # fmt: skip
