"""An answer, with the passages, quotes, text, checks and times that led to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..documents.language import is_english
from ..retrieval.evidence import Quote
from ..retrieval.index import Hit
from ..retrieval.relevance import NullScores
from .checks import CheckedSentence
from .confidence import AnswerStatus
from .generated_token import FinishReason
from .prompt import Prompt, Source
from .reading import CLOSE, AnswerSpan, answers_in_words, next_reading

NOTHING_FOUND = "Nothing in these documents comes close enough to this question to answer it."

AnswerEnd = FinishReason | Literal["content_filter", "unfinished", "stopped"]

# Quoted sentences, and those that the model reads.
N_QUOTES, N_READ = 2, 3
LEAST_SHARE = 0.001  # of the best sentence's probability, for another to be quoted or read


def best_sentences(evidence: Sequence[Quote], n: int) -> tuple[Quote, ...]:
    """Return the first ``n`` sentences, without those that lie far behind the best one."""
    return tuple(each for each in evidence[:n] if each.probability >= LEAST_SHARE * evidence[0].probability)


@dataclass(frozen=True)
class SearchTimes:
    """Seconds of a search; ``search_s`` is the retriever's time, BM25 and token vectors included."""

    tokenize_s: float
    encode_s: float
    search_s: float


@dataclass(frozen=True)
class WritingTimes:
    """Seconds to write a text, and the tokens of prompt and text; all 0 where no model ran."""

    prompt_s: float = 0.0  # to the first token
    prompt_tokens: int = 0  # for a server counted by the built-in decoder's tokenizer, so approximate
    reused_tokens: int = 0  # of the prompt, taken from the prefix cache
    generate_s: float = 0.0  # of the tokens after the first, those of a thought included
    answer_tokens: int = 0
    guessed_tokens: int = 0  # of the answer, guessed by prompt lookup
    thought_tokens: int = 0

    @property
    def prompt_tokens_per_s(self) -> float | None:
        """Prompt tokens read per second, without those that were reused."""
        return (self.prompt_tokens - self.reused_tokens) / self.prompt_s if self.prompt_s else None

    @property
    def answer_tokens_per_s(self) -> float | None:
        """Tokens generated per second after the first, thought included; None where there was only one."""
        n_tokens = self.thought_tokens + self.answer_tokens
        return (n_tokens - 1) / self.generate_s if n_tokens > 1 else None


@dataclass(frozen=True)
class Timings:
    """The seconds of an answer."""

    search: SearchTimes
    evidence_s: float = 0.0  # to rank the sentences of the passages
    reader_s: float = 0.0  # of the reader
    writing: WritingTimes = WritingTimes()
    check_s: float = 0.0  # to read the text again without the passages

    @property
    def until_quotes_s(self) -> float:
        """Seconds from the question to the reader's answer and the quotes."""
        search = self.search
        return search.tokenize_s + search.encode_s + search.search_s + self.evidence_s + self.reader_s


@dataclass(frozen=True)
class Retrieval:
    """The result of a search: its hits, in the order of the retriever, and how close they are."""

    hits: tuple[Hit, ...]  # in the order of the retriever
    # differences between each hit's cosine and the next passage's, which need not be among the hits; None
    # where there is no next one, or where the order is not by cosines
    margins: tuple[float | None, ...]
    # say how close the hits are, and with ``min_relevance`` which of them are relevant
    null_scores: NullScores = field(repr=False)
    min_relevance: float
    retriever: str
    times: SearchTimes
    answering: tuple[int, ...] = ()  # where no cosine says so, the hit whose words the reader is sure of

    @property
    def relevant(self) -> tuple[int, ...]:
        """Places of the hits that are close enough to count as relevant, or else `answering`."""
        relevance = self.null_scores.relevance
        close = (place for place, hit in enumerate(self.hits) if relevance(hit.score) >= self.min_relevance)
        return tuple(close) or self.answering


@dataclass(frozen=True)
class Written:
    """A text that a model wrote, and the thought within ``<think>`` before it, which no check uses."""

    text: str
    finish_reason: AnswerEnd  # a server: "content_filter" left out the rest, "unfinished" gave no reason
    model: str
    server: str | None  # its address, None for the built-in decoder
    prompt: Prompt
    source_places: tuple[int, ...]  # the place among the hits of each of the prompt's sources
    ids: tuple[int, ...] = ()  # with the one that ended the answer; those of a server are unknown
    thought: str = ""
    thought_ids: tuple[int, ...] = ()  # with its tags

    @property
    def read_ids(self) -> tuple[int, ...]:
        """The tokens before the answer: those of the prompt and of the thought."""
        return (*self.prompt.ids, *self.thought_ids)


@dataclass(frozen=True)
class Judged:
    """How far an answer can be relied on."""

    # an answer, only the closest sentences, or a refusal; it follows from the confidence
    status: AnswerStatus = "refused"
    confidence: float = 0.0  # probability that what is shown is right (`engine.generation.confidence`)
    sentences: tuple[CheckedSentence, ...] = ()  # checks of the written text


@dataclass(frozen=True)
class Answer:
    """An answer, and all that led to it."""

    question: str
    retrieved: Retrieval
    evidence: tuple[Quote, ...]  # sentences of the passages, best first; none without a relevant passage
    written: Written | None  # None where no language model ran
    judged: Judged
    timed: Timings
    spans: tuple[AnswerSpan, ...] = ()  # the reader's, best first; none without a reader
    # what reading left out of the files that the passages are from, by their names; none without a note
    file_notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the words found, or else the sentences quoted, or that nothing is close enough."""
        if self.reading:
            return " ".join(self.reading.text.split())
        return " ".join(quote.text for quote in self.quotes) or NOTHING_FOUND

    @property
    def is_english(self) -> bool:
        """Whether question and passages are in the language that the reader was trained on."""
        passages = "\n".join(hit.chunk.text for hit in self.retrieved.hits)
        return is_english(self.question) and is_english(passages)

    @property
    def reading(self) -> AnswerSpan | None:
        """The words that the reader takes for the answer; None where no few words are one."""
        return self.best_span if self.judged.status != "refused" else None

    @property
    def best_span(self) -> AnswerSpan | None:
        """The reader's best span, also where it is refused; None where no few words can answer."""
        best = self.spans[0] if self.spans else None
        return best if best and answers_in_words(self.question, best) else None

    @property
    def other_reading(self) -> AnswerSpan | None:
        """The reader's second answer in other words, where it is close to the first."""
        other = next_reading(self.spans) if self.reading else None
        return other if other and self.spans[0].total - other.total <= CLOSE else None

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The best sentences, before them the one that the reader's answer stands in."""
        best = best_sentences(self.evidence, N_QUOTES)
        if self.reading is None:
            return best
        own = [quote for quote in self.evidence if quote.holds(self.reading.document, self.reading.start)][:1]
        return (*own, *(quote for quote in best if quote not in own))

    @property
    def notes(self) -> dict[str, tuple[str, ...]]:
        """The notes of the files that its words, quotes and sources stand in, or else of those found."""
        words = [each for each in (self.reading, self.other_reading) if each]
        names = [each.document for pieces in (words, self.quotes, self.sources) for each in pieces]
        names = names or [hit.chunk.document for hit in self.retrieved.hits]
        return {name: self.file_notes[name] for name in names if name in self.file_notes}

    @property
    def text(self) -> str:
        """What the model wrote, empty where none did."""
        return self.written.text if self.written else ""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages in the prompt."""
        return self.written.prompt.sources if self.written else ()

    @property
    def supported_text(self) -> str:
        """The supported sentences of the text, empty if none is."""
        supported = (self.text[each.start : each.end] for each in self.judged.sentences if each.is_supported)
        return "".join(supported).strip()

    @property
    def shown_text(self) -> str:
        """What was shown, for the prompts of later questions: the supported text, or the first quote."""
        if self.judged.status == "refused":
            return ""
        return self.supported_text or " ".join(quote.text for quote in self.quotes[:1])
