"""A conversation: follow-up questions, made into questions of their own.

A search for "And in 2016?" finds nothing of use: its subject is in the question before. So the topic of the
conversation is added to a question that needs it: "And in 2016? (revenues, company)". It needs it if the
topic brings its vector much closer to the documents: a question that is complete, or about something else, is
as close without it. A few words after an "and" always need it, an English question with a new name
hardly ever (`has_new_name`).

The topic is made of the words of the earlier questions, so that nothing is made up. A small language model
that is asked to rewrite the question invents one: with three examples before it, SmolLM2-135M-Instruct wrote
"The company's revenues in 2015 were 2015". ``python -m benchmarks.follow_ups`` measures what the topic does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..documents.language import language_of, stop_words
from ..retrieval.embedding_model import Model, encode_by
from ..retrieval.index import Index
from ..retrieval.relevance import NullScores

# A capitalised word that begins no sentence, and those that follow it.
NAME = re.compile(r"(?<=[a-z,;:] )[A-Z]\w[\w'’-]+(?: (?:of |the |and )?[A-Z][\w'’-]+)*")
WORD = re.compile(r"[^\W_]+(?:[-'’.,/&][^\W_]+)*")
# The least rise of the best cosine by the topic, in units of the scale of unrelated questions' best cosines:
# with the two rules below it classifies 0.96 of the 48 questions on which settings are chosen correctly.
LEAST_RISE = 1.5
# The least best cosine with the topic, in that scale above their location: what the documents do not treat
# comes closer to them by any topic of theirs, but not close.
LEAST_CLOSENESS = 3.3
FRAGMENT, FRAGMENT_WORDS = re.compile(r"\s*(and|or|but|what about|how about)\b", re.IGNORECASE), 4
# The beginning of a question in English; in other languages capitals may be those of any noun.
ENGLISH = re.compile(
    r"\s*(who|whose|what|when|where|why|how|which|is|are|do|does|did|can|could|has|have|should|would)\b",
    re.IGNORECASE,
)
REFERS_BACK = re.compile(r"\b(it|that|this|them|him|her|there|then)\W*$", re.IGNORECASE)
REFERRING = re.compile(
    r"\b(it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|then|here|one|ones|"
    r"same|such|others?|another|else|also|too|instead|next|before|after|the(?!(?: \w+){1,2} of\b))\b",
    re.IGNORECASE,
)  # "the speed of a cheetah" refers to nothing
AUXILIARY = re.compile(
    r"\b(is|are|was|were|do|does|did|can|could|has|have|had|will|would|shall|should|may|might|must)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Turn:
    """A question of a conversation, as it was typed, and what was shown as its answer."""

    question: str
    answer: str


def follow_up(
    question: str, turns: Sequence[Turn], index: Index, encoder: Model, null_scores: NullScores
) -> tuple[str, tuple[Turn, ...]]:
    """Return a question of its own, and the turns that it follows on: none where it opens a new topic.

    ``turns`` are those of the conversation, oldest first; ``index`` is searched, with the ``null_scores`` of
    unrelated questions.
    """
    topic = topic_of(turns, question)
    if not topic or not question.strip():
        return question, ()
    named = f"{question.strip()} ({', '.join(topic)})"
    # A few words that continue another question: "And Canada?".
    continues = FRAGMENT.match(question) and len(question.split()) <= FRAGMENT_WORDS
    if continues or needs_topic(question, named, turns, index, encoder, null_scores):
        return named, tuple(turns)
    return question, ()


def needs_topic(
    question: str, named: str, turns: Sequence[Turn], index: Index, encoder: Model, null_scores: NullScores
) -> bool:
    """Whether the best cosine is much higher for an incomplete question with its topic, and high."""
    if is_complete(question, turns):
        return False
    location, scale = null_scores.gumbel
    vectors = encode_by(index.spec, "query", [question, named], index.encoder(encoder))  # (2, d_model)
    [[own], [with_topic]] = index.nearest(vectors, 1)[0]
    return bool(with_topic - own >= LEAST_RISE * scale and with_topic - location >= LEAST_CLOSENESS * scale)


def is_complete(question: str, turns: Sequence[Turn]) -> bool:
    """Whether a question in English has a new name, or is a clause without a word that refers to another.

    "How do I bake sourdough bread?" is one, "How big is the budget?" and "How many slots?" are not.
    """
    is_clause = bool(ENGLISH.match(question)) and len(question.split()) >= FRAGMENT_WORDS
    refers = REFERRING.search(question) or not AUXILIARY.search(question)
    return (is_clause and not refers) or has_new_name(question, turns)


def has_new_name(question: str, turns: Sequence[Turn]) -> bool:
    """Whether a question has a name that no earlier one has, and does not refer to these by "and" or "it"."""
    if FRAGMENT.match(question) or REFERS_BACK.search(question) or not ENGLISH.match(question):
        return False
    earlier = " ".join(turn.question for turn in turns).lower()
    return any(name.group().lower() not in earlier for name in NAME.finditer(question))


def topic_of(turns: Sequence[Turn], question: str) -> list[str]:
    """Return the phrases of the first and the last question that the new one, without a number, lacks."""
    earlier = dict.fromkeys(turn.question for turn in (*turns[:1], *turns[-1:]))
    asked = question.lower()
    has_number = any(map(str.isdigit, question))
    return [
        phrase
        for phrase in dict.fromkeys(phrase for text in earlier for phrase in phrases(text))
        if phrase.lower() not in asked and not (has_number and any(map(str.isdigit, phrase)))
    ]


def phrases(text: str) -> list[str]:
    """Return the runs of words between the stop words and marks of a text, without "many" of "how many"."""
    runs: list[list[str]] = [[]]
    left_out, last, end = stop_words(language_of(text)), "", 0  # the word before, and its end
    for match in WORD.finditer(text):
        word = match.group().lower().replace("’", "'")
        is_left_out = word in left_out or last == "how"
        if is_left_out or text[end : match.start()].strip():
            runs.append([])
        if not is_left_out:
            runs[-1].append(match.group())
        last, end = word, match.end()
    return [" ".join(run) for run in runs if run]
