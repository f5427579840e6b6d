"""Places of passages that a file of questions gives without them."""

from collections.abc import Sequence
from dataclasses import replace

from engine.documents.document import Document
from engine.evaluation.passage_search import SearchableText
from engine.evaluation.questions import UNLOCATED, Question, Reference, names_for, stem

MOST_PLACES = 20  # of one passage in a document


def located(questions: Sequence[Question], documents: Sequence[Document]) -> list[Question]:
    """Return questions in their order, with their unlocated passages found in the documents.

    A passage is searched in the document that the question names, in the rows of the file that it names, or
    in all; white space, quotation marks and dashes may differ. Every place where it stands counts. A question
    whose passages stand in no document, in several, or in more than `MOST_PLACES` places of one, is returned
    as it is.
    """
    texts = [SearchableText(document.name, document.text) for document in documents]
    return [
        located_in(question, texts) if any(is_unlocated(one) for one in question.references) else question
        for question in questions
    ]


def located_in(question: Question, texts: Sequence[SearchableText]) -> Question:
    """Return a question with its passages at their places in the one document that holds them all."""
    found = [
        (stem(text.name), [places(text, one) if is_unlocated(one) else (one,) for one in question.references])
        for text in texts
        if question.corpus_id in ("", *names_for(text.name))
    ]
    # A document may be there twice, cut by the app and with given vectors: the places are the same.
    holding = {(name, tuple(each)) for name, each in found if all(each)}
    if len(holding) != 1:
        return question
    [(name, each)] = holding
    references = tuple(dict.fromkeys(one for places in each for one in places))
    return replace(question, corpus_id=name, references=references)


def places(text: SearchableText, passage: Reference) -> tuple[Reference, ...]:
    """Return where a text holds a passage; none where that is more than `MOST_PLACES`."""
    spans = text.everywhere(passage.content)
    if len(spans) > MOST_PLACES:
        return ()
    return tuple(Reference(text.text[slice(*span)], *span) for span in spans)


def is_unlocated(reference: Reference) -> bool:
    """Whether a passage has no place yet."""
    return reference.start == UNLOCATED
