"""Tables of English words: opposites, words of one kind, numbers, and words that say little by themselves."""

from ...installed import bundled


def lines_of(name: str) -> list[str]:
    """Return the lines of a bundled file."""
    return bundled(name).read_text("utf-8").splitlines()


def listed(words: str) -> tuple[str, ...]:
    """Return the words of a line."""
    return tuple(words.split())


STOP_WORDS = frozenset(
    listed(
        "the a an of in on at to for from by with as and or but nor if than then that this these those it "
        "its he she they them his her their him we our you your i me my is are was were be been being am do "
        "does did done has have had can could will would shall should may might must not no what which who "
        "whom whose when where why how many much there here some any each such name type kind called known "
        "used according about into after before during between through over under also one two first other "
        "new more most"
    )
)
TITLES = frozenset(
    listed(
        "mr mrs ms dr sir lady lord president king queen prince princess emperor pope saint st general "
        "captain colonel professor senator governor minister chancellor archbishop bishop cardinal judge"
    )
)
ONES = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
TENS = listed("thirty forty fifty sixty seventy eighty ninety hundred")
ORDINALS = listed("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of ordinals in digits
_DIGITS = (
    {word: str(number) for number, word in enumerate(ONES)}
    | {word: str(10 * number) for number, word in enumerate(TENS, 3)}
    | {word: f"{number}{ENDINGS.get(number, 'th')}" for number, word in enumerate(ORDINALS, 1)}
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
