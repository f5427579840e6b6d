"""One set of questions for search and answers: labels as short answers, and short answers as labels."""

import re
from collections.abc import Sequence

from ..documents.document import Document
from ..documents.sentences import sentence_spans, stripped
from .answers import AnswerQuestion, ShortAnswer, normalized
from .questions import Question, Reference, names_for, stem


def as_answers(questions: Sequence[Question]) -> list[AnswerQuestion]:
    """Return labelled questions by short answers or places, and drafts that no document answers."""
    found = []
    for each in questions:
        if each.references or each.is_unanswered:
            places = tuple((one.start, one.end) for one in each.references)
            answer = ShortAnswer(((each.answer.content,),) if each.answer and places else ())
            found.append(AnswerQuestion(each.text, answer, each.corpus_id, places, each.status))
    return found


def as_labels(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> list[Question]:
    """Return the questions whose answer has one place in the documents, with its sentence as the passage.

    The place is the one that is given, or that of the only words of the documents that are the answer; of
    several, the one whose sentence has most words of the question. An answer of several parts without places
    has none.
    """
    sentences = {document.name: sentence_spans(document.text) for document in documents}
    named: dict[str, list[Document]] = {}
    for document in documents:
        for name in dict.fromkeys(names_for(document.name)):
            named.setdefault(name, []).append(document)
    found = []
    for each in questions:
        own = named.get(each.about, []) if each.about else documents
        places = [
            (document, *span)
            for document in own
            for span in (each.spans if each.fits(document.text) else occurrences(each, document.text))
        ]
        if not each.spans and len(places) > 1:
            asked = set(normalized(each.text).split())
            shared = [
                len(
                    asked
                    & set(normalized(passage(text.text, start, end, sentences[text.name]).content).split())
                )
                for text, start, end in places
            ]
            places = [place for place, n in zip(places, shared, strict=True) if n == max(shared)]
        if places and (each.spans or len(places) == 1):
            document = places[0][0]
            references = tuple(
                dict.fromkeys(
                    passage(document.text, start, end, sentences[document.name])
                    for one, start, end in places
                    if one is document
                )
            )
            found.append(Question(each.text, stem(document.name), references))
    return found


def occurrences(question: AnswerQuestion, text: str) -> list[tuple[int, int]]:
    """Return where a text has the words of an answer of one part; none where places are given."""
    if question.spans or len(question.answer.parts) != 1:
        return []
    spellings = "|".join(re.escape(each) for each in question.answer.parts[0])
    return [match.span() for match in re.finditer(rf"(?<!\w)(?:{spellings})(?!\w)", text, re.IGNORECASE)]


def passage(text: str, start: int, end: int, sentences: Sequence[tuple[int, int]]) -> Reference:
    """Return the sentences that share a character with a span, without the blanks around them."""
    own = [span for span in sentences if span[0] < end and start < span[1]]
    first, last = stripped(text, own[0][0], own[-1][1])
    return Reference(text[first:last], first, last)
