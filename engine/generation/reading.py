"""The reader's answer: the words of the passages that answer a question, and how they compare.

The reader scores spans within each passage it is given; here they become spans of the documents, whole
numbers and dates, each once, best first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..documents.sentences import lines_around, sentence_spans
from ..models.reader import Reader
from ..retrieval.evidence import Quote, is_question
from ..retrieval.index import Hit

N_SPANS = 5  # kept of an answer
# Chosen on SQuAD 2.0's tuning part, where F1 rises by 0.03; on other documents by 0.025.
LAG_WEIGHT, LARGEST_LAG = 0.35, 10.0
CLOSE = 2.0  # by how much the second reading may lie behind the first, to be shown

MONTHS = (
    "jan(?:uary|\\.)?|feb(?:ruary|\\.)?|mar(?:ch|\\.)?|apr(?:il|\\.)?|may|june?|july?|aug(?:ust|\\.)?|"
    "sep(?:t\\.?|tember|\\.)?|oct(?:ober|\\.)?|nov(?:ember|\\.)?|dec(?:ember|\\.)?|januar|februar|märz|mai|"
    "juni|juli|oktober|dezember"
)
NUMBER = r"(?<!\d)(?:\d{1,3}(?:[.,:\u202f' ]\d{3})+|\d+)(?:[.,]\d+)?"
CURRENCY = r"(?:[$€£¥₹]|(?:US|CA|AU)\$|USD|EUR|GBP|CHF|JPY|dollars|euros|pounds)"
SCALE = r"(?:thousand|million|billion|trillion|bn|[mk](?!\w))"
PERIOD = (
    r"(?:(?: ?/ ?| (?:a|per|each|every) )(?:second|minute|hour|day|night|week|month|quarter|year|person|"
    r"user|seat|unit|item)|(?: annually| monthly| yearly))"
)
UNIT = (
    r"(?:%|percent|per ?cent|°\s?[CF]|degrees|[kmc]?m|[km]?g|ml|l|kWh?|MB|GB|TB|kB|Hz|[kMG]Hz|"
    r"(?:milli)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|(?:kilo|centi|milli)?met(?:er|re)s?|"
    r"miles?|feet|inch(?:es)?|pounds|tons?|tonnes|lit(?:er|re)s?)(?!\w)"
)
# What is read as one: an amount of money, a date, a time, a number with its unit, a number with its digits.
WHOLES = [
    re.compile(rf"{CURRENCY} ?{NUMBER}(?: ?{SCALE})?{PERIOD}?", re.IGNORECASE),
    re.compile(rf"{NUMBER}(?: ?{SCALE})? ?{CURRENCY}(?!\w){PERIOD}?", re.IGNORECASE),
    re.compile(rf"\b\d{{1,2}}(?:\.|st|nd|rd|th)? (?:of )?(?:{MONTHS})(?:,? \d{{4}})?\b", re.IGNORECASE),
    re.compile(rf"\b(?:{MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b", re.IGNORECASE),
    re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"),
    re.compile(r"\b\d{1,2}(?:[:.]\d{2})? ?[ap]\.?m\b\.?|\b\d{1,2}:\d{2}(?::\d{2})?\b", re.IGNORECASE),
    re.compile(rf"{NUMBER}[ -]?{UNIT}(?:{PERIOD})?", re.IGNORECASE),
    re.compile(rf"(?<![\d.,]){NUMBER}(?![\d]|[.,]\d)"),
]
PART_ASKED = re.compile(r"\b(?:year|month|day|decade|century)\b", re.IGNORECASE)

# Before a question that is put politely, such as "can you tell me when it closes?"
POLITE = re.compile(
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell|say|show)(?: me| us)?|do you (?:know|remember)"
    r"|(?:please )?tell (?:me|us)|i (?:want|would like) to know) ",
    re.IGNORECASE,
)
# Questions whose answer is a yes or a no, or a list: no few words of a passage.
YES_NO_OR_LIST = re.compile(
    r"(?:(?:and|but|so|then|also),? )?(?:is|are|was|were|am|do|does|did|can|could|may|might|must|shall|"
    r"should|will|would|has|have|had)\b(?!.*\bor\b)"
    r"|(?:if|whether)\b(?!.*,)"
    r"|(?:please )?(?:list|describe|explain|summari[sz]e|compare|discuss|outline|name all|what are all)\b"
    r"|what (?:is|are|was|were) the (?:steps|differences?|reasons?|advantages|disadvantages|requirements)\b",
    re.IGNORECASE,
)

# Those whose answer is a reason or a way, which a clause of a passage says at best.
REASON_OR_WAY = re.compile(
    r".*\b(?:why|how come|for what reasons?)\b"
    r"|(?:.* )?how (?:do|does|did|can|could|should|would|is|are|was|were|to|will|must)\b"
    r"|how (?:it|the|this|that|they|i|we)\b",
    re.IGNORECASE,
)
REASON_SCORE = 5.0  # of the reader, from which on half of such answers are right


@dataclass(frozen=True)
class AnswerSpan:
    """Words that the reader takes for an answer: ``text`` is the span ``[start, end)`` of its document."""

    document: str
    start: int
    end: int
    text: str
    place: int  # of its passage among the hits
    score: float  # its logits of start and end over those of no answer in this passage
    sentence_lag: float = 0.0  # of its sentence's score behind that of the best one

    @property
    def total(self) -> float:
        """What spans are ordered by: the reader's score, and how well the sentence answers."""
        return self.score - LAG_WEIGHT * self.sentence_lag


def has_short_answer(question: str) -> bool:
    """Whether a few words can answer a question: not those of yes or no, of reasons, ways and lists."""
    asked = POLITE.sub("", question.strip(), 1)
    return YES_NO_OR_LIST.match(asked) is None and REASON_OR_WAY.match(asked) is None


def answers_in_words(question: str, span: AnswerSpan) -> bool:
    """Whether the reader's words answer a question: a reason or a way only where their score is high."""
    if YES_NO_OR_LIST.match(POLITE.sub("", question.strip(), 1)):
        return False
    is_clause = span.score >= REASON_SCORE and any(map(str.isalpha, span.text))
    return is_clause or has_short_answer(question)


def read_passages(
    question: str, hits: Sequence[Hit], reader: Reader, evidence: Sequence[Quote] = ()
) -> tuple[AnswerSpan, ...]:
    """Return the best `N_SPANS` spans of passages, of other places each, none within a question."""
    texts = [hit.chunk.text for hit in hits]
    found: list[AnswerSpan] = []
    for span in reader.read(question, texts, [question_spans(text) for text in texts]):
        chunk, text = hits[span.passage].chunk, texts[span.passage]
        start, end = whole_span(question, text, span.start, span.end)
        own = AnswerSpan(
            chunk.document, chunk.start + start, chunk.start + end, text[start:end], span.passage, span.score
        )
        # Passages that overlap hold the same words twice.
        if not any(overlap(own, other) for other in found):
            found.append(replace(own, sentence_lag=sentence_lag(own, evidence)))
    return tuple(sorted(found, key=lambda each: -each.total)[:N_SPANS])


def sentence_lag(span: AnswerSpan, evidence: Sequence[Quote]) -> float:
    """Return how far the score of a span's sentence is behind the best, up to `LARGEST_LAG`."""
    if not evidence:
        return 0.0
    own = [quote.score for quote in evidence if quote.holds(span.document, span.start)]
    return min(LARGEST_LAG, evidence[0].score - own[0]) if own else LARGEST_LAG


def next_reading(spans: Sequence[AnswerSpan]) -> AnswerSpan | None:
    """Return the best span that says something else than the first: no part of it, nor it a part."""
    first = spans[0].text.casefold() if spans else ""
    others = (span for span in spans[1:] if span.text.casefold() not in first)
    return next((span for span in others if first not in span.text.casefold()), None)


def overlap(one: AnswerSpan, other: AnswerSpan) -> bool:
    """Whether two spans share characters of a document."""
    return one.document == other.document and one.start < other.end and other.start < one.end


@lru_cache(maxsize=512)
def question_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a text that are questions."""
    return [(start, end) for start, end in sentence_spans(text) if is_question(text[start:end])]


@lru_cache(maxsize=8192)
def whole_span(question: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span of a text to whole words, and to the whole of an amount or date that it touches.

    A part stays where the question asks for it: the year of a date, a number whose unit the question names.
    """
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    line_start, line_end = lines_around(text, start, end)
    line = text[line_start:line_end]
    asked = question.lower()
    for kind in WHOLES:
        for match in kind.finditer(line):
            first, last = line_start + match.start(), line_start + match.end()
            if not (first < end and start < last) or not any(map(str.isdigit, text[start:end])):
                continue
            added = text[first:start] + " " + text[end:last]
            names = re.findall(r"[^\W\d]{3,}", added.lower())
            if PART_ASKED.search(asked) or any(name.rstrip("s") in asked for name in names):
                continue
            start, end = min(start, first), max(end, last)
    return start, end
