"""A smoke test without labels: whether sentences of the documents find the chunk that they are from.

Sentences from the head, the middle and the tail of documents are asked for word by word, and reworded. What
comes back says whether the search works at all, and whether it loses what stands late in a document. It is
no measure of quality: people ask for what they do not know in words that the document has not, and a search
that passes this test may fail them all. Only labelled questions tell.

The rewording knows no meaning. Three fixed rules change words and their order: what stands before and
behind the first comma change places, the words of a short list of synonyms are exchanged, and articles and
forms of "be" are dropped. They are English, and what comes out need be no good English; of a sentence that
they leave as it is there is no paraphrase, and it is not taken.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.sentences import sentence_spans
from engine.errors import InputError
from engine.evaluation.metrics import hit_rate
from engine.evaluation.questions import Question, Reference, stem
from engine.layers.tracing import Array

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
    """A question that a chunk of its own document must answer, where that stands, and how it is worded.

    ``depth`` is one of `DEPTHS`, ``wording`` one of `WORDINGS`.
    """

    question: Question
    depth: str
    wording: str


def self_test_questions(documents: Sequence[Document], n: int, seed: int = 0) -> list[Probe]:
    """Draw sentences from the documents and make two questions of each: itself, and its paraphrase.

    Parameters
    ----------
    documents
        The documents. Their sentences of 6 to 40 words count that stand once in all of them and that the
        rules reword.
    n
        How many sentences: as many from each third of the documents, from all documents in turn, and fewer
        where there are not so many.
    seed
        The same seed draws the same sentences.

    Returns
    -------
    list
        The two questions of each sentence, one after the other; sentences by depth.

    Raises
    ------
    InputError
        ``n`` is below 1, or no sentence counts.
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
        for question in in_turn([shuffled(each, generator) for each in found])[:wanted]:
            reworded = Question(paraphrase(question.text), question.corpus_id, question.references)
            probes += [Probe(question, depth, WORDINGS[0]), Probe(reworded, depth, WORDINGS[1])]
    if not probes:
        raise InputError(
            f"no document has a sentence of {FEWEST_WORDS} to {MOST_WORDS} words that can be reworded: load "
            "one in English prose"
        )
    return probes


def candidates(document: Document) -> list[tuple[Question, str]]:
    """Return a document's sentences that can be asked for as questions, and their depths."""
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


def shuffled(questions: Sequence[Question], generator: np.random.Generator) -> list[Question]:
    """Put questions in a random order."""
    return [questions[i] for i in generator.permutation(len(questions))]


def in_turn(lists: Sequence[Sequence[Question]]) -> list[Question]:
    """Take the first of every list, then the second of every list, and so on."""
    return [question for question in chain(*zip_longest(*lists)) if question is not None]


def paraphrase(sentence: str) -> str:
    """Reword a sentence by the rules above; one to which none applies comes back as it is.

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
    """Whether each chunk holds as much of a question's passages as any chunk does: bool.

    Shapes: ``(n_questions, n_chunks)``. A sentence that was cut belongs to the chunk with its larger part,
    and one that overlapping chunks hold to each of these.
    """
    stems = np.array([stem(chunk.document) for chunk in chunks], object)  # (n_chunks,)
    starts = np.array([chunk.start for chunk in chunks], np.int64)
    ends = np.array([chunk.end for chunk in chunks], np.int64)
    held = np.zeros((len(questions), len(chunks)), np.int64)
    for row, question in zip(held, questions, strict=True):
        for reference in question.references:
            row += np.maximum(np.minimum(ends, reference.end) - np.maximum(starts, reference.start), 0)
        row *= stems == question.corpus_id
    return (held > 0) & (held == held.max(axis=1, keepdims=True, initial=0))


def containment(scores: Array, own: Array, groups: Sequence[str], k: int) -> dict[str, float]:
    """Share of questions whose own chunk is among the first ``k``, group by group.

    Parameters
    ----------
    scores
        Of each question and chunk, ``(n_questions, n_chunks)``, larger is better.
    own
        Whether each chunk is a question's own, bool of the same shape, as `own_chunks` gives it.
    groups
        What each question is counted under, its depth or its wording, ``(n_questions,)``.
    k
        How many chunks are looked at.
    """
    found = hit_rate(scores, own, k)  # (n_questions,)
    names = np.array(groups, object)
    return {name: float(found[names == name].mean()) for name in dict.fromkeys(groups)}
