"""A sentence check without labels: whether sentences of the documents find the chunk that they come from.

Sentences from the head, the middle and the tail of documents are used as questions, verbatim and reworded.
The result shows whether the search works at all, and whether it loses text late in a document. It does not
measure quality: people ask in other words than the documents', and a search that passes this test may fail
on all their questions. Only labelled questions measure that.

Sentences are reworded without regard to meaning, by three fixed rules for English: the parts before and after
the first comma are swapped, words of a short list of synonyms are replaced, and articles and forms of "be"
are dropped. The result need not be good English. Sentences to which no rule applies are not used.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

import numpy as np

from ..documents.document import Chunk, Document
from ..documents.sentences import sentence_spans
from ..errors import InputError
from ..layers.tracing import Array
from .metrics import hit_rate
from .questions import Question, Reference, chunk_places, stem

DEPTHS = ("head", "middle", "tail")  # thirds of a document
WORDINGS = ("verbatim", "paraphrase")
FEWEST_WORDS, MOST_WORDS = 6, 40
FEWEST_CLAUSE_WORDS = 3  # on either side of the comma
MARKS = ".!?…"
WORD = re.compile(r"\w+(?:['’]\w+)*")
DROPPED = re.compile(r"\b(?:the|an?|is|are|was|were|be|been)\b(?!['’])\s*", re.IGNORECASE)
PAIRS = """
begin:start big:large build:construct buy:purchase choose:select fast:quick help:assist however:but
important:significant make:create many:numerous need:require often:frequently people:persons show:display
small:tiny use:employ whole:entire
"""
SYNONYMS = {a: b for pair in PAIRS.split() for a, b in (pair.split(":"), pair.split(":")[::-1])}
SYNONYM = re.compile(rf"\b(?:{'|'.join(SYNONYMS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Probe:
    """A question made from a sentence."""

    question: Question
    depth: str  # of the sentence in its document, one of `DEPTHS`
    wording: str  # one of `WORDINGS`


def sentence_questions(documents: Sequence[Document], n: int, seed: int = 0) -> list[Probe]:
    """Draw sentences from the documents and make two questions from each: the sentence and its paraphrase.

    Sentences are used that have 6 to 40 words, occur once in all documents, and are changed by the rules:
    equally many from each third of the documents, from all documents in turn, ``n`` in all or fewer if
    there are not enough. The same seed draws the same ones. The two questions of each sentence follow each
    other, sentences by depth.
    """
    if n < 1:
        raise InputError(f"{n} sentences: test with 1 or more, better 30")
    generator = np.random.default_rng(seed)
    by_document = [candidates(document) for document in documents]
    times = Counter(question.text for found in by_document for question, _ in found)
    probes = []
    for number, depth in enumerate(DEPTHS):
        found = [
            [question for question, where in each if where == depth and times[question.text] == 1]
            for each in by_document
        ]
        wanted = n // len(DEPTHS) + (number < n % len(DEPTHS))
        shuffled = [[each[i] for i in generator.permutation(len(each))] for each in found]
        in_turn = (question for question in chain(*zip_longest(*shuffled)) if question is not None)
        for question in islice(in_turn, wanted):
            reworded = Question(paraphrase(question.text), question.corpus_id, question.references)
            probes += [Probe(question, depth, WORDINGS[0]), Probe(reworded, depth, WORDINGS[1])]
    if not probes:
        raise InputError(
            f"no document has a sentence of {FEWEST_WORDS} to {MOST_WORDS} words that can be reworded: load "
            "one in English prose"
        )
    return probes


def candidates(document: Document) -> list[tuple[Question, str]]:
    """Return the sentences of a document that can be used, as questions, and their depths."""
    found = []
    for start, end in sentence_spans(document.text):
        sentence = document.text[start:end].strip()
        if not FEWEST_WORDS <= len(WORD.findall(sentence)) <= MOST_WORDS or paraphrase(sentence) == sentence:
            continue
        first = document.text.index(sentence, start)
        reference = Reference(sentence, first, first + len(sentence))
        middle = first + len(sentence) / 2
        depth = DEPTHS[int(len(DEPTHS) * middle / len(document.text))]
        found.append((Question(sentence, stem(document.name), (reference,)), depth))
    return found


def paraphrase(sentence: str) -> str:
    """Reword a sentence by the rules above; return it unchanged if none applies.

    "As it is late, we use the car." becomes "we employ car, As it late."
    """
    body = sentence.rstrip(MARKS)
    mark = sentence[len(body) :]
    before, comma, behind = body.partition(", ")
    if comma and min(len(WORD.findall(part)) for part in (before, behind)) >= FEWEST_CLAUSE_WORDS:
        body = f"{behind}, {before}"
    body = SYNONYM.sub(lambda word: SYNONYMS[word[0].lower()], body)
    return DROPPED.sub("", body).strip() + mark


def own_chunks(questions: Sequence[Question], chunks: Sequence[Chunk]) -> Array:
    """Whether no chunk holds more of a question's passages: bool ``(n_questions, n_chunks)``."""
    stems, starts, ends = chunk_places(chunks)
    overlap = np.zeros((len(questions), len(chunks)), np.int64)
    for row, question in zip(overlap, questions, strict=True):
        for reference in question.references:
            row += np.maximum(np.minimum(ends, reference.end) - np.maximum(starts, reference.start), 0)
        row *= stems == question.corpus_id
    return (overlap > 0) & (overlap == overlap.max(axis=1, keepdims=True, initial=0))


def containment(scores: Array, own: Array, groups: Sequence[str], k: int) -> dict[str, float]:
    """Return the share of questions with one of their `own_chunks` among the first ``k``, by group."""
    found = hit_rate(scores, own, k)  # (n_questions,)
    names = np.array(groups, object)
    return {name: float(found[names == name].mean()) for name in dict.fromkeys(groups)}
