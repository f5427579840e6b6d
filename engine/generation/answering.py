"""Answer a question from passages, with the passages and the time of each stage."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Literal

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.generation.checks import CheckedSentence, check_sentences
from engine.generation.confidence import AnswerStatus, confidence_figures, confidence_of, status_of
from engine.generation.conversation import Turn
from engine.generation.decoder import Decoder
from engine.generation.generated_token import GeneratedToken
from engine.generation.passages import ids_without, without_thinking
from engine.generation.prompt import Prompt, Source, assemble_prompt
from engine.generation.sentences import sentences_of
from engine.generation.server import Piece, PieceEnd
from engine.generation.settings import DEFAULT_ANSWER, DEFAULT_SEARCH, AnswerSettings, SearchSettings
from engine.generation.thinking import ThoughtSplitter, opens_thought
from engine.generation.writer import Writer
from engine.retrieval.embedding_model import Model, embedding_spec, encode_by
from engine.retrieval.embedding_spec import Query
from engine.retrieval.evidence import Quote, find_evidence
from engine.retrieval.index import Hit, Index
from engine.retrieval.parents import search_parents
from engine.retrieval.relevance import NullScores, null_scores_of
from engine.retrieval.retrievers import found_rows, reason_unavailable

NOTHING_FOUND = "Nothing in these documents comes close enough to this question to answer it."

AnswerEnd = PieceEnd | Literal["stopped"]

# Quoted sentences, and those that the model reads.
N_QUOTES, N_READ = 2, 3
LEAST_SHARE = 0.001  # of the best sentence's probability, for another to be quoted or read


@dataclass(frozen=True)
class Timings:
    """Seconds of each stage, and the tokens of prompt and answer.

    ``search_s`` is the retriever's time, BM25 and token vectors included. ``prompt_s`` is the time to the
    first token, ``generate_s`` the time of those after it. Of the prompt's tokens, ``reused_tokens`` were
    taken from the prefix cache; of the answer's, ``guessed_tokens`` were guessed by prompt lookup. For a
    server the tokens are counted by the built-in decoder's tokenizer, so they are approximate.
    A thought's ``thought_tokens`` are generated within ``generate_s``, too.
    ``evidence_s`` is the time to rank the sentences of the passages, ``check_s`` that to read the text again
    without the passages.
    """

    tokenize_s: float
    encode_s: float
    search_s: float
    prompt_s: float = 0.0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    generate_s: float = 0.0
    answer_tokens: int = 0
    guessed_tokens: int = 0
    evidence_s: float = 0.0
    check_s: float = 0.0
    thought_tokens: int = 0

    @property
    def until_quotes_s(self) -> float:
        """Seconds from the question to the first quote."""
        return self.tokenize_s + self.encode_s + self.search_s + self.evidence_s

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
class Retrieval:
    """The result of a search: all hits, best first, and the relevant ones among them, in the same order.

    ``margins`` are the differences between each hit's cosine and the next passage's, which need not be among
    the hits; None where there is no next one, or where the order is not by cosines. ``null_scores`` say how
    close the hits are.
    """

    hits: tuple[Hit, ...]
    relevant: tuple[Hit, ...]
    margins: tuple[float | None, ...]
    null_scores: NullScores = field(repr=False)
    timings: Timings


@dataclass(frozen=True)
class Answer:
    """An answer, the search and the prompt that led to it.

    ``status`` says what is shown: an answer, only the closest sentences, or a refusal; it follows from
    ``confidence``, the probability that what is shown is right (`engine.generation.confidence`). ``evidence``
    are the sentences of the passages, best first; ``text`` is what the model wrote, and ``sentences`` are the
    checks of its sentences.

    ``prompt``, ``finish_reason`` and ``model`` are None where nothing relevant was found and no model ran.
    ``hits`` are all passages of the search, whatever their score, with ``margins`` and ``null_scores`` as in
    `Retrieval`. ``retriever`` decided their order.

    ``model`` is the name of the model that wrote the text, ``server`` its address, None for the built-in
    decoder. ``ids`` are the built-in decoder's tokens, including the one that ended the answer; those of a
    server are not known.

    ``thought`` is what the model wrote within ``<think>`` before its answer, ``thought_ids`` are its tokens,
    the tags included; quotes and checks do not use it. Without a text, ``finish_reason`` ``"length"`` means
    that the thought did not end. ``"content_filter"`` means that a server left out the rest.
    """

    question: str
    text: str
    prompt: Prompt | None
    hits: tuple[Hit, ...]
    margins: tuple[float | None, ...]
    null_scores: NullScores = field(repr=False)
    min_relevance: float
    status: AnswerStatus
    finish_reason: AnswerEnd | None
    timings: Timings
    model: str | None = None
    server: str | None = None
    ids: tuple[int, ...] = ()
    retriever: str = "dense"
    confidence: float = 0.0
    evidence: tuple[Quote, ...] = field(default=(), repr=False)
    sentences: tuple[CheckedSentence, ...] = ()
    thought: str = ""
    thought_ids: tuple[int, ...] = ()

    @property
    def read_ids(self) -> tuple[int, ...]:
        """The tokens before the answer: those of the prompt and of the thought."""
        return (*(self.prompt.ids if self.prompt else ()), *self.thought_ids)

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The sentences that the answer opens with."""
        return leading(self.evidence, N_QUOTES)

    @property
    def supported_text(self) -> str:
        """The sentences of the text that hold, empty if none does."""
        held = (self.text[each.start : each.end] for each in self.sentences if each.holds)
        return "".join(held).strip()

    @property
    def shown_text(self) -> str:
        """What was shown, for the prompts of later questions: the text that holds, or the first quote."""
        if self.status == "refused":
            return ""
        return self.supported_text or " ".join(quote.text for quote in self.quotes[:1])

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages in the prompt."""
        return self.prompt.sources if self.prompt else ()

    @property
    def relevant(self) -> tuple[int, ...]:
        """Places of the relevant hits among all."""
        return relevant_places(self.hits, self.null_scores, self.min_relevance)

    @property
    def source_places(self) -> tuple[int, ...]:
        """Place of the hit that each source is from."""

        def shared(source: Source, place: int) -> int:
            """Count the characters that a source has in common with a hit."""
            chunk = self.hits[place].chunk
            is_same = chunk.document == source.document
            return (min(chunk.end, source.end) - max(chunk.start, source.start)) * is_same

        places = range(len(self.hits))
        return tuple(max(places, key=lambda place: shared(source, place)) for source in self.sources)


def leading(evidence: Sequence[Quote], n: int) -> tuple[Quote, ...]:
    """Return the first ``n`` sentences, without those that lie far behind the best one."""
    return tuple(
        quote for quote in evidence[:n] if quote.probability >= LEAST_SHARE * evidence[0].probability
    )


def relevant_places(hits: Sequence[Hit], null_scores: NullScores, min_relevance: float) -> tuple[int, ...]:
    """Places of the hits that are close enough to count as relevant."""
    return tuple(place for place, hit in enumerate(hits) if null_scores.relevance(hit.score) >= min_relevance)


def retrieve(
    question: str,
    index: Index,
    encoder: Model,
    settings: SearchSettings = DEFAULT_SEARCH,
    null_scores: NullScores | None = None,
) -> Retrieval:
    """Find the ``settings.k`` best passages for a question, and those of them that are relevant.

    The question is embedded as the index was: its pooling and token limit. A passage is a chunk, or its
    parent where it has one.

    The retriever decides which passages are found, and their order; whether a passage counts as relevant
    depends on its cosine with the question alone. So a passage with the words of the question and another
    subject is found by BM25, and still is not relevant.

    Parameters
    ----------
    question, index, encoder
        The question, the index to search, and the index's encoder.
    settings
        How to search.
    null_scores
        Scores of unrelated questions in this index; None computes them here, at the cost of embedding about
        a hundred questions.

    Raises
    ------
    InputError
        A blank question, ``k`` below 1, or an index of another encoder.
    """
    if not question.strip():
        raise InputError("the question is empty: ask something")
    if reason := reason_unavailable(settings.retriever, encoder):
        raise InputError(reason)
    null_scores = null_scores_of(index, encoder) if null_scores is None else null_scores
    encoder, k = index.encoder(encoder), settings.k
    pooling, max_tokens = index.spec.pooling, index.spec.max_tokens
    spec = embedding_spec(encoder, pooling, max_tokens)
    start = perf_counter()
    if (with_tokens := encoder.as_encoder) is not None:
        prompted = encoder.prompts.before("query", [question])
        ids = [with_tokens.truncate(each, max_tokens) for each in encoder.tokenizer.ids_batch(prompted)]
        tokenized = perf_counter()
        vectors = with_tokens.encode_ids(ids, pooling)  # (1, d_model)
    else:
        tokenized = start  # the time to tokenize is part of encode_s
        vectors = encode_by(spec, "query", [question], encoder)
    encoded = perf_counter()
    by_cosine, query, order = settings.retriever == "dense", Query(vectors[0], spec), None
    if not by_cosine:
        order = found_rows(settings.retriever, question, query, index, with_tokens, k + 1)
    # One more, for the margin of the last.
    found = search_parents(index, query, k + 1 if k > 0 else k, order)
    searched = perf_counter()
    hits = tuple(found[:k])
    places = relevant_places(hits, null_scores, settings.min_relevance)
    return Retrieval(
        hits=hits,
        relevant=tuple(hits[place] for place in places),
        margins=(margins(found) if by_cosine else (None,) * len(found))[:k],
        null_scores=null_scores,
        timings=Timings(tokenized - start, encoded - tokenized, searched - encoded),
    )


def margins(hits: Sequence[Hit]) -> tuple[float | None, ...]:
    """Difference between each hit's score and the next one's; None for the last."""
    return (*(hit.score - following.score for hit, following in pairwise(hits)), None)


def ask(
    question: str,
    index: Index,
    encoder: Model,
    writer: Writer,
    settings: AnswerSettings = DEFAULT_ANSWER,
    null_scores: NullScores | None = None,
    on_text: Callable[[str], None] | None = None,
    on_quotes: Callable[[Sequence[Quote]], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    turns: Sequence[Turn] = (),
    on_thought: Callable[[str], None] | None = None,
) -> Answer:
    """Answer a question from the best passages of an index; without a relevant one no model runs.

    If one passage is relevant, the sentences of all passages that answer best are quoted: the words of a
    passage can answer although its cosine is low. The model writes a text beside the quotes, and each of its
    sentences is checked against the passages.

    Parameters
    ----------
    question, index, encoder, null_scores
        As in `retrieve`.
    writer
        The model that writes the text.
    settings
        How to search, to write and to check.
    on_text
        Called with each piece of the text as it is written.
    on_quotes
        Called with the quotes, before the model writes.
    stop
        Called after each piece; once it returns true the text ends there, its ``finish_reason`` is
        ``"stopped"``, and it is not read again.
    turns
        Earlier turns of the conversation, for the prompt: `follow_up` returns them with the question.
    on_thought
        Called with each piece of the thought before the answer, if there is one.

    Raises
    ------
    InputError
        A blank question, ``k`` below 1, or a setting that a server does not have.
    ContextLengthError
        The budgets exceed the decoder's context, or the question exceeds the prompt's.
    ModelUnavailableError
        The server cannot be reached, or fails.
    """
    writer.check(settings)
    search = settings.search
    found = retrieve(question, index, encoder, search, null_scores)
    unanswered = Answer(
        question=question,
        text="",
        prompt=None,
        hits=found.hits,
        margins=found.margins,
        null_scores=found.null_scores,
        min_relevance=search.min_relevance,
        status="refused",
        finish_reason=None,
        timings=found.timings,
        retriever=search.retriever,
    )
    if not found.relevant:
        return unanswered

    start = perf_counter()
    evidence = find_evidence(question, found.hits, index, encoder)
    timings = replace(unanswered.timings, evidence_s=perf_counter() - start)
    quoted = replace(unanswered, evidence=evidence, timings=timings)
    if on_quotes is not None:
        on_quotes(quoted.quotes)
    answer = (
        write(quoted, found.relevant, encoder, writer, settings, on_text, stop, turns, on_thought)
        if settings.write
        else quoted
    )
    figures = confidence_figures(question, evidence, answer.text, N_QUOTES)
    confidence = confidence_of(figures)
    status = status_of(confidence, settings.answer_at, settings.refuse_below)
    return replace(answer, confidence=confidence, status=status)


def write(
    quoted: Answer,
    relevant: Sequence[Hit],
    encoder: Model,
    writer: Writer,
    settings: AnswerSettings,
    on_text: Callable[[str], None] | None,
    stop: Callable[[], bool],
    turns: Sequence[Turn],
    on_thought: Callable[[str], None] | None,
) -> Answer:
    """Have the model write a text from the evidence, or from the relevant passages, and check it."""
    start = perf_counter()
    question, budget = quoted.question, settings.max_prompt_tokens
    decoder = replace(writer.decoder, thinks=True) if settings.think else writer.decoder
    best = leading(quoted.evidence, N_READ) if settings.context == "sentences" else ()
    prompt = assemble_prompt(question, quoted_hits(best, quoted.hits) or relevant, decoder, budget, turns)
    while len(best) > 1 and (prompt.left_out or any(source.cut for source in prompt.sources)):
        best = best[:-1]  # without the worst
        prompt = assemble_prompt(question, quoted_hits(best, quoted.hits), decoder, budget, turns)
    opened = writer.server is None and opens_thought(prompt.text)
    pieces = writer.write(prompt, settings, stop)
    written = collect(pieces, on_text, stop, on_thought, opened, settings.max_new_tokens)
    end = perf_counter()
    first = end if written.first_at is None else written.first_at
    n_tokens = len(writer.decoder.tokenizer.encode(written.text)) if writer.server else len(written.ids)
    passages = [source.text for source in prompt.sources]
    sentences = check_sentences(written.text, passages, quoted.question, encoder.tokenizer)
    if settings.check and written.ids and written.finish_reason != "stopped":
        sentences = with_falls(sentences, written, prompt, writer.decoder)
    return replace(
        quoted,
        text=written.text,
        sentences=sentences,
        prompt=prompt,
        finish_reason=written.finish_reason,
        timings=replace(
            quoted.timings,
            prompt_s=first - start,
            prompt_tokens=len(prompt.ids),
            reused_tokens=writer.reused_tokens,
            generate_s=end - first,
            answer_tokens=n_tokens,
            thought_tokens=len(written.thought_ids),
            guessed_tokens=written.n_guessed,
            check_s=perf_counter() - end,
        ),
        model=writer.name,
        server=writer.url,
        ids=written.ids,
        thought=written.thought,
        thought_ids=written.thought_ids,
    )


def quoted_hits(quotes: Sequence[Quote], hits: Sequence[Hit]) -> list[Hit]:
    """Return sentences as passages of a prompt, the best last, each with the score of its passage.

    Next to the question, the best one counts most: on the half of the bundled questions that settings are
    chosen on, the default model is right in 32 % so, and in 24 % with the best first.
    """
    return [
        Hit(Chunk(quote.document, quote.start, quote.end, quote.text, 0), hits[quote.place].score)
        for quote in reversed(quotes)
    ]


def with_falls(
    sentences: Sequence[CheckedSentence], written: "_Written", prompt: Prompt, decoder: Decoder
) -> tuple[CheckedSentence, ...]:
    """Add to each sentence how much its log-probability falls when it is read again without the passages.

    Behind a thought, it is read again with the passages, too: both times without the thought.
    """
    ids = ids_without(prompt, [source.number for source in prompt.sources], decoder)
    without = decoder.log_probabilities([*ids, *written.ids], len(ids))  # (n_answer,)
    complete = np.array(written.log_probabilities)
    if written.thought_ids:
        read = without_thinking(prompt, decoder).ids
        complete = decoder.log_probabilities([*read, *written.ids], len(read))
    falls = complete - without
    pieces = sentences_of(written.ids, decoder.tokenizer)  # of the text with the white space around it
    offset = max("".join(piece.text for piece in pieces).find(written.text), 0)
    ends = [piece.end for piece in pieces[:-1]]
    found = []
    for each in sentences:
        piece = pieces[bisect_left(ends, each.end + offset)]  # a token may hold two ends, as ".\n" does
        found.append(replace(each, fall=float(falls[piece.first_token : piece.last_token].mean())))
    return tuple(found)


@dataclass(frozen=True)
class _Written:
    """Text of an answer, its tokens and their log-probabilities, how it ended, and when it began.

    ``first_at`` is None where there is no token; ``n_guessed`` of them were guessed. ``thought`` and
    ``thought_ids`` came before. Text and thought are without the white space around them.
    """

    text: str
    ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    finish_reason: AnswerEnd
    first_at: float | None
    n_guessed: int
    thought: str
    thought_ids: tuple[int, ...]


def collect(
    pieces: Iterable[GeneratedToken | Piece],
    on_text: Callable[[str], None] | None,
    stop: Callable[[], bool],
    on_thought: Callable[[str], None] | None = None,
    opened: bool = False,
    most_tokens: int | None = None,
) -> _Written:
    """Consume tokens or pieces until they end, ``stop()`` is true, or the answer has ``most_tokens``.

    A thought before the answer is kept apart; ``opened`` is whether the prompt ends within one. The token
    that ends a thought belongs to it, unless it also begins the answer.
    """
    splitter, thought, text = ThoughtSplitter(opened), "", ""
    first_at, n_guessed, n_thought = None, 0, 0
    tokens: list[GeneratedToken] = []
    reason: AnswerEnd = "stopped"

    def take(thought_piece: str, text_piece: str) -> None:
        nonlocal thought, text
        thought, text = thought + thought_piece, text + text_piece
        if on_thought is not None and thought_piece:
            on_thought(thought_piece)
        if on_text is not None and text_piece:
            on_text(text_piece)

    for piece in pieces:
        first_at = first_at or perf_counter()
        was_answer = splitter.part == "answer"
        thought_piece, text_piece = splitter.push(piece.text)
        take(thought_piece, text_piece)
        if isinstance(piece, GeneratedToken):
            tokens.append(piece)
            n_guessed += piece.guessed
            if splitter.part == "thought" or (splitter.thought_ended and not was_answer):
                n_thought = len(tokens) - bool(text_piece.strip())
        reason = piece.finish_reason or "stopped"
        if stop():
            break
        if most_tokens is not None and len(tokens) - n_thought >= most_tokens and n_thought:
            reason = piece.finish_reason or "length"
            break
    take(*splitter.finish())
    answered = tokens[n_thought:]
    return _Written(
        text.strip(),
        tuple(token.token_id for token in answered),
        tuple(token.log_probability for token in answered),
        reason,
        first_at,
        n_guessed,
        thought.strip(),
        tuple(token.token_id for token in tokens[:n_thought]),
    )
