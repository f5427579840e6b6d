"""Questions about a sentence, as the decoder writes them by examples, and whether they are fit to ask."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from ..generation.decoder import Decoder
from ..generation.prefix_cache import PrefixCache
from ..generation.reading import has_short_answer
from ..generation.sampling import GREEDY, Sampling
from ..installed import rows_of
from ..retrieval.evidence import KINDS, has_digit
from ..retrieval.words import words

MOST_TOKENS, FEWEST_STEMS = 25, 2  # of a question
COPIED_WORDS, COPIED_SHARE = 6, 0.6  # words of a sentence in one run, or this share, make a question a copy
# A question begins freely, once chosen greedily and twice drawn, or with one of these words.
SAMPLED = Sampling(temperature=0.7, top_p=0.95)
STARTS = ("", "", "", "When", "How many", "Who", "Which", "Where")

INSTRUCTION = (
    "You write questions for a quiz. Each question can be answered by the text, names its subject, and uses "
    "other words than the text."
)
REQUEST = "Write a question about this text: "
EXAMPLES = rows_of("draft_examples.csv")

ASKS = re.compile(
    r"(?:\w+ ){0,3}?(?:who|whom|whose|what|when|where|which|why|how)(?:['’]s)?\b[^?]*\?", re.IGNORECASE
)
# What only the passage explains: "this chamber", "the author", and a pronoun before anything is named.
POINTING = re.compile(
    r"\b(?:this|these|those)(?: (?!is\b|are\b|was\b|were\b|year\b)\w+|\?)"
    r"|\bthe (?:above|following|given|text|passage|sentence|paragraph|article|author|speaker|narrator|writer|"
    r"statement|quote|excerpt|story)\b",
    re.IGNORECASE,
)
COUNTED = re.compile(r"\bhow many (?!times\b)(\w+)", re.IGNORECASE)
PRONOUN = re.compile(
    r"\b(?:he|she|it|they|him|them|his|her|hers|its|their|theirs|i|me|my|we|us|our|you|your)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Writer:
    """Writes questions about a text by `EXAMPLES`, whose keys and values are computed once."""

    decoder: Decoder
    reuse: PrefixCache = field(default_factory=PrefixCache, repr=False)

    def questions(self, text: str, seed: int) -> Iterator[str]:
        """Yield a question for each of `STARTS`; those that are drawn are drawn by the seed."""
        shown = [{"role": "system", "content": INSTRUCTION}]
        for example in EXAMPLES:
            shown.append({"role": "user", "content": REQUEST + example["text"]})
            shown.append({"role": "assistant", "content": example["question"]})
        ids = self.decoder.prompt_ids([*shown, {"role": "user", "content": REQUEST + text}])
        for number, start in enumerate(STARTS):
            sampling = replace(SAMPLED, seed=seed + number) if not start and number else GREEDY
            prompt = [*ids, *self.decoder.tokenizer.encode(start).ids] if start else ids
            written = self.decoder.generate(prompt, MOST_TOKENS, sampling, stop="\n", reuse=self.reuse)
            yield " ".join((start + "".join(token.text for token in written)).split())


def is_fit(question: str, sentence: str) -> bool:
    """Whether a text is a question that needs no passage to be understood, and does not copy its sentence."""
    asked, said = words([question, sentence])
    return (
        ASKS.fullmatch(question) is not None
        and has_short_answer(question)
        and len(set(asked)) >= FEWEST_STEMS
        and POINTING.search(question) is None
        and not has_dangling_pronoun(question, set(said))
        and longest_run(question, sentence) < COPIED_WORDS
        and len(set(asked) & set(said)) < COPIED_SHARE * len(set(said))
    )


def fits(question: str, answer: str, sentence: str) -> bool:
    """Whether an answer is what is asked for: a name, a time, a place, a number of what the sentence counts.

    A capital counts as a name's but at the beginning of ``answer``.
    """
    if (counted := COUNTED.search(question)) and not set(words([counted[1]])[0]) <= set(words([sentence])[0]):
        return False
    if re.search(r"\bwhere\b", question, re.IGNORECASE):
        return not any(KINDS[kind][1].search(answer) for kind in ("number", "date"))
    needed = next((needed for asks, needed in KINDS.values() if asks.search(question)), None)
    return needed is None or has_digit(answer) or needed.search(answer) is not None


def has_dangling_pronoun(question: str, said: set[str]) -> bool:
    """Whether a question has a pronoun before any word of its sentence that it may stand for."""
    found = PRONOUN.search(question)
    return found is not None and not said.intersection(words([question[: found.start()]])[0])


def longest_run(question: str, sentence: str) -> int:
    """Return the number of words of the longest run that two texts have in common."""
    one, other = (re.findall(r"\w+", text.lower()) for text in (question, sentence))
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


def shared_words(question: str, sentence: str) -> float:
    """Return the share of the words of a question that its sentence has, without stop words."""
    asked, said = map(set, words([question, sentence]))
    return len(asked & said) / max(1, len(asked))
