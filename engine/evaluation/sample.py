"""A sample of labelled questions and of the documents that they are asked of, drawn by a seed.

A search among fewer documents is easier, so some without a chosen question stay in, and `rank_by_words` says
how much easier the sample is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from ..documents.document import Chunk, Document
from ..retrieval.bm25 import Bm25
from ..wording import counted
from .document_names import Asked
from .questions import Question, names_for, relevance, stem

MOST_QUESTIONS = 500  # whose 95 % interval of a share is at most 9 points wide
MOST_CHARACTERS = 2_000_000  # of documents
SEED = 0


@dataclass(frozen=True)
class Sample(Generic[Asked]):
    """Some of ``n_documents`` documents, in their order, and of ``n_questions`` about them, in theirs."""

    documents: tuple[Document, ...]
    questions: tuple[Asked, ...]
    n_documents: int
    n_questions: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return (len(self.documents), len(self.questions)) == (self.n_documents, self.n_questions)

    @property
    def words(self) -> str:
        """``500 of 83,627 questions, and 61 of 442 documents``."""
        words = f"{len(self.questions):,} of {counted(self.n_questions, 'question')}"
        if len(self.documents) == self.n_documents:
            return words
        return f"{words}, and {len(self.documents):,} of {counted(self.n_documents, 'document')}"


def some_questions(questions: Sequence[Asked], most: int = MOST_QUESTIONS) -> list[Asked]:
    """Return at most so many questions, drawn by `SEED`, in their order."""
    if len(questions) <= most:
        return list(questions)
    rows = np.random.default_rng(SEED).choice(len(questions), most, replace=False)
    return [questions[row] for row in np.sort(rows).tolist()]


def sample_of(
    documents: Sequence[Document],
    questions: Sequence[Asked],
    most: int = MOST_QUESTIONS,
    most_characters: int = MOST_CHARACTERS,
) -> Sample[Asked]:
    """Draw questions, and documents up to a number of characters, half of it for those they are about."""
    chosen = list(documents)
    if sum(len(document.text) for document in documents) > most_characters and all(
        each.about for each in questions
    ):
        chosen = some_documents(documents, questions, most, most_characters)
    asked = some_questions(about_documents(questions, chosen), most)
    return Sample(tuple(chosen), tuple(asked), len(documents), len(questions))


def about_documents(questions: Sequence[Asked], documents: Sequence[Document]) -> list[Asked]:
    """Return the questions about documents, and those that name none."""
    names = {name for document in documents for name in names_for(document.name)}
    return [each for each in questions if not each.about or each.about in names]


def some_documents(
    documents: Sequence[Document], questions: Sequence[Asked], most: int, most_characters: int
) -> list[Document]:
    """Draw documents for `sample_of`, in their order."""
    n_about: dict[str, int] = {}
    for each in questions:
        n_about[each.about] = n_about.get(each.about, 0) + 1
    order = np.random.default_rng(SEED).permutation(len(documents)).tolist()
    asked = {row: sum(n_about.get(name, 0) for name in names_for(documents[row].name)) for row in order}
    chosen: set[int] = set()
    n_characters = n_asked = 0
    for row in sorted(order, key=lambda row: asked[row] == 0):  # those with questions first
        if asked[row] and n_asked >= most and n_characters >= most_characters // 2:
            continue  # others come in their place
        if chosen and n_characters + len(documents[row].text) > most_characters:
            continue
        chosen.add(row)
        n_characters, n_asked = n_characters + len(documents[row].text), n_asked + asked[row]
    for row in order:  # without others, the rest has questions, too
        if row not in chosen and n_characters + len(documents[row].text) <= most_characters:
            chosen.add(row)
            n_characters += len(documents[row].text)
    return [documents[row] for row in sorted(chosen)]


def rank_by_words(questions: Sequence[Question], chunks: Sequence[Chunk], words: Bm25) -> float:
    """Return the mean reciprocal rank of questions by BM25's index of chunks; of equal scores the first."""
    rows_of: dict[str, list[int]] = {}
    for row, chunk in enumerate(chunks):
        rows_of.setdefault(stem(chunk.document), []).append(row)
    total = 0.0
    for question in questions:  # one at a time: scores of all would fill the memory
        own = np.array(rows_of.get(question.corpus_id, []), int)
        relevant = own[relevance([question], [chunks[row] for row in own])[0]]
        if len(relevant):
            [scores] = words.scores([question.text])  # (n_chunks,)
            best = int(relevant[np.argmax(scores[relevant])])
            better = int((scores > scores[best]).sum() + (scores[:best] == scores[best]).sum())
            total += 1 / (1 + better)
    return total / max(1, len(questions))
