"""A question asked of documents under some settings, and again under others, as cures are tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...documents.document import Document
from ...documents.splitters import Splitting
from ...evaluation.answers import ShortAnswer, normalized
from ...generation.answer import Answer
from ...generation.answering import find_answer
from ...generation.conversation import Turn, follow_up
from ...generation.reading import AnswerSpan
from ...models.reader import Reader
from ...retrieval.embedding_model import Model, cut_documents
from ...retrieval.evidence import Quote
from ...retrieval.index import Index, build_index
from ...retrieval.relevance import NullScores, null_scores_of
from ...retrieval.vector_cache import VectorCache
from ...settings import answer_settings
from .location import Location
from .table_rows import cells_of

# Settings that documents are cut anew for, when they change.
CUTTING = ("splitter", "chunk_tokens", "overlap", "context", "parent_tokens", "max_tokens")
MOST_WORDS, MOST_TIMES = 2, 4  # of words that hold an answer of so many, to count as that answer
WHOLE_SPAN = 16  # words that may hold it where they are of the passage itself
MOST_OTHERS = 1  # numbers that words with a number as the answer may hold besides


@dataclass(frozen=True)
class Searched:
    """Documents as they are searched and answered from."""

    index: Index
    model: Model
    reader: Reader | None
    settings: Mapping[str, Any]  # in use, by their keys in `SETTINGS`; thresholds of confidence in percent
    null_scores: NullScores = field(repr=False)
    documents: Sequence[Document] = ()  # to cut anew; none where chunks were given
    cache: VectorCache = field(default_factory=VectorCache, repr=False)

    @property
    def text_limit(self) -> int:
        """Tokens that are read of a chunk, without the prompt before it."""
        return self.index.encoder(self.model).text_limit(self.index.spec.max_tokens)

    def under(self, changes: Mapping[str, Any]) -> "Searched":
        """Return the same documents under changed settings, cut and embedded anew where these ask for it."""
        settings = {**self.settings, **changes}
        if all(settings[key] == self.settings[key] for key in CUTTING):
            return replace(self, settings=settings)
        size, parents = settings["chunk_tokens"], settings["parent_tokens"]
        splitting = Splitting(
            settings["splitter"], size, min(settings["overlap"], size // 2), settings["context"]
        )
        pieces = cut_documents(self.documents, self.model, splitting, parents and max(parents, size))
        chunks = [chunk for own in pieces for chunk in own]
        pooling, model = self.index.spec.pooling, self.index.encoder(self.model)
        limit = settings["max_tokens"]
        index = build_index(chunks, model, pooling, limit, None, self.cache, self.documents)
        null_scores = null_scores_of(index, model, self.cache)
        return replace(self, settings=settings, index=index, null_scores=null_scores)

    def answer(self, question: str, turns: Sequence[Turn] = ()) -> Answer:
        """Answer a question, as one that may follow on ``turns`` if the settings say so."""
        own, values = question, self.settings
        if turns and values["follow_ups"]:
            own, _ = follow_up(question, turns, self.index, self.model, self.null_scores)
        settings = answer_settings(values)
        return find_answer(own, self.index, self.model, settings, self.null_scores, self.reader)


def is_right(answer: Answer, wanted: ShortAnswer, place: Location) -> bool:
    """Whether the reader's words, or else a quote, are ``wanted``, or of the passage if that is empty."""
    if answer.judged.status == "refused":
        return False
    if (words := answer.reading) is None:
        quotes = [quote for quote in answer.quotes if touches(quote, place)]
        return bool(quotes) and (not wanted or wanted.is_in("\n".join(cells(quote.text) for quote in quotes)))
    return are_right(words, wanted, place)


def are_right(words: AnswerSpan, wanted: ShortAnswer, place: Location) -> bool:
    """Whether the reader's words are ``wanted``, or of the passage if that is empty."""
    is_own, is_within = touches(words, place), place.start <= words.start and words.end <= place.end
    most_words = WHOLE_SPAN * (is_own and is_within)
    is_said = bool(wanted) and says(wanted, cells(words.text), most_words)
    return is_said or (is_own and (not wanted or is_part(words.text, wanted)))


def cells(text: str) -> str:
    """Return a row without the names of its columns, which answer nothing; any other text as it is."""
    is_row = all(": " in line for line in text.split("\n"))
    return "\n".join(cell for _, cell in cells_of(text)) if is_row else text


def says(wanted: ShortAnswer, text: str, most_words: int = 0) -> bool:
    """Whether words hold an answer, not many besides (but for ``most_words``), nor one number of several."""
    numbers = [word for word in normalized(text).split() if word.isdigit()]
    own = {word for part in wanted.parts for each in part for word in normalized(each).split()}
    is_short = len(normalized(text).split()) <= max(most_words, MOST_WORDS + MOST_TIMES * len(own))
    return wanted.is_in(text) and is_short and (len(numbers) <= MOST_OTHERS or {*numbers} <= own)


def is_part(text: str, wanted: ShortAnswer) -> bool:
    """Whether words are part of an answer, as "8" is of "8 kilograms"."""
    words = f" {normalized(text)} "
    return bool(words.strip()) and any(
        words in f" {normalized(each)} " for part in wanted.parts for each in part
    )


def touches(piece: Quote | Any, place: Location) -> bool:
    """Whether a piece of a document, a quote or a span, shares characters with a passage."""
    return piece.document == place.document and piece.start < place.end and place.start < piece.end
