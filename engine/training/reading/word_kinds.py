"""Tables of English words: opposites, words of one kind, numbers, and words that say little by themselves."""


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

# Words of one kind a line, any of which asks for something else than another.
KINDS = """
january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
spring summer autumn winter
north south east west
northern southern eastern western
red blue green yellow white black brown orange purple grey
second third fourth fifth sixth seventh eighth ninth tenth
two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred
kilometers miles meters feet inches acres hectares
kilograms pounds tons tonnes ounces
hours minutes days weeks months years decades centuries
dollars euros yen francs
father mother brother sister son daughter uncle aunt grandfather wife husband
africa asia europe antarctica oceania
african asian european
france germany italy spain portugal england scotland ireland russia china japan india canada mexico brazil
french german italian spanish portuguese english scottish irish russian chinese japanese indian canadian
argentina australia egypt turkey greece poland sweden norway denmark finland austria hungary switzerland
mexican brazilian australian egyptian turkish greek polish swedish norwegian danish austrian hungarian swiss
belgium netherlands israel iran iraq pakistan indonesia vietnam korea chile peru cuba nigeria kenya
dutch israeli iranian korean american british roman
president minister king queen emperor governor mayor senator chancellor pope bishop general
city town village river lake mountain island country province state county district
book film song album play novel poem painting magazine newspaper
author painter composer actor director singer architect scientist philosopher engineer
church school hospital museum library university bridge castle palace theatre stadium
population area height length width depth weight temperature speed cost
gold silver copper iron tin lead zinc aluminium steel
"""
WORD_KIND = {word: listed(line) for line in KINDS.strip().splitlines() for word in listed(line)}

# Pairs of opposites.
PAIRS = """
largest smallest, biggest smallest, highest lowest, longest shortest, oldest newest, earliest latest
first last, before after, most least, best worst, increase decrease, increased decreased, increases decreases
rise fall, rose fell, rising falling, win lose, won lost, winner loser, begin end, began ended, begins ends
start finish, started finished, open close, opened closed, early late, new old, major minor, male female
majority minority, men women, man woman, boys girls, positive negative, advantage disadvantage
advantages disadvantages, success failure, successful unsuccessful, strong weak, stronger weaker, large small
larger smaller, high low, higher lower, long short, fast slow, faster slower, maximum minimum, inside outside
above below, internal external, public private, urban rural, rich poor, accept reject, accepted rejected
support oppose, supported opposed, supporters opponents, allow forbid, allowed forbidden, include exclude
included excluded, includes excludes, add remove, added removed, buy sell, bought sold, import export
imports exports, attack defend, attacked defended, victory defeat, allies enemies, love hate
always never, common rare, often rarely, usually rarely, easy difficult, similar different, legal illegal
able unable, possible impossible, build destroy, built destroyed, create destroy, created destroyed
founded abolished, established abolished, appointed dismissed, join leave, arrive depart
arrived departed, gain lose, gained lost, heaviest lightest, cause prevent, caused prevented, causes prevents
encourage discourage, domestic foreign, modern ancient, hot cold, warm cold, wet dry, primary secondary
permanent temporary, direct indirect, official unofficial, natural artificial, top bottom
upper lower, popular unpopular, important unimportant, closest farthest, nearest farthest, greatest least
wealthiest poorest, hardest easiest, approved rejected, agreed disagreed, agree disagree, believe doubt
believed doubted, required forbidden, united divided, hired fired, released withdrawn, introduced withdrawn
published withdrawn, raised lowered, expanded reduced, lived died, borrowed lent, more fewer
"""
_PAIRS = [
    (pair.split()[0], pair.split()[1]) for line in PAIRS.strip().splitlines() for pair in line.split(", ")
]
# Of a word with several opposites the first counts.
OPPOSITES = {b: a for a, b in reversed(_PAIRS)} | dict(reversed(_PAIRS))

NEGATED = {
    "did": "didn't", "does": "doesn't", "do": "don't", "was": "wasn't", "were": "weren't", "is": "isn't",
    "are": "aren't", "can": "can't", "could": "couldn't", "would": "wouldn't", "has": "hasn't",
}  # fmt: skip
