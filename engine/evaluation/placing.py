"""Places of the passages that a file of questions gives by their words alone."""

import re
from collections.abc import Sequence
from dataclasses import replace

from engine.documents.document import Document
from engine.evaluation.passage_search import SearchableText
from engine.evaluation.questions import UNPLACED, Question, Reference, stem

MOST_PLACES = 20  # of one passage in a document


def placed(questions: Sequence[Question], documents: Sequence[Document]) -> list[Question]:
    """Return questions, in their order, with the passages without a place put where documents hold them.

    A passage is searched word for word, then with other white space, quotation marks and dashes, in the
    document that the question names, or in all. Every place where it stands counts. A question whose
    passages stand in no document, or in several, is returned as it is.
    """
    texts = [SearchableText(document.name, document.text) for document in documents]
    return [
        placed_in(question, texts) if any(is_unplaced(one) for one in question.references) else question
        for question in questions
    ]


def placed_in(question: Question, texts: Sequence[SearchableText]) -> Question:
    """Return a question with its passages at their places in the one document that holds them all."""
    found = {
        text.name: [places(text, one) if is_unplaced(one) else [one] for one in question.references]
        for text in texts
        if question.corpus_id in ("", stem(text.name))
    }
    holding = {name: each for name, each in found.items() if all(each)}
    if len(holding) != 1:
        return question
    [(name, each)] = holding.items()
    references = tuple(dict.fromkeys(one for places in each for one in places))
    return replace(question, corpus_id=stem(name), references=references)


def places(text: SearchableText, passage: Reference) -> list[Reference]:
    """Return where a text holds a passage, at most `MOST_PLACES`: word for word, else spelled alike."""
    starts = [match.start() for match in re.finditer(re.escape(passage.content), text.text)][:MOST_PLACES]
    if starts:
        return [Reference(passage.content, start, start + len(passage.content)) for start in starts]
    span = text.alike(passage.content, 0)
    return [Reference(text.text[slice(*span)], *span)] if span else []


def is_unplaced(reference: Reference) -> bool:
    """Whether a passage has no place yet."""
    return reference.start == UNPLACED
