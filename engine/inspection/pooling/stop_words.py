"""English stop words, which many search pipelines remove from texts."""

import re

# Articles, pronouns, prepositions, conjunctions, auxiliaries. As in most lists, "no" and "not" are among
# them, though they reverse a sentence's meaning.
WORDS = """
a about after again all also am an and any are as at be because been before being between both but by
can could did do does doing down during each few for from had has have having he her here hers him his
how i if in into is it its itself just may me might more most must my no nor not of off on once only or
other our ours out over own same she should so some such than that the their theirs them then there
these they this those through to too under until up very was we were what when where which while who
whom why will with would you your yours
"""
STOP_WORDS = frozenset(WORDS.split())
STOP_WORD = re.compile(rf"\b(?:{'|'.join(sorted(STOP_WORDS))})\b(?!['’]\w)", re.IGNORECASE)


def stop_word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character spans of the stop words of a text."""
    return [match.span() for match in STOP_WORD.finditer(text)]


def without_stop_words(text: str) -> str:
    """Return a text without its stop words, one space between the others."""
    return " ".join(STOP_WORD.sub(" ", text).split())
