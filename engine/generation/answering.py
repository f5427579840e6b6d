"""Answer a question from passages, with the passages and the time of each stage."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Literal

from engine.errors import InputError
from engine.generation.expansion import expanded
from engine.generation.generated_token import FinishReason, GeneratedToken
from engine.generation.prompt import Prompt, Source, assemble_prompt
from engine.generation.server import Piece
from engine.generation.settings import DEFAULT_ANSWER, DEFAULT_SEARCH, AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.models.encoder import Encoder
from engine.retrieval.embedding_spec import EmbeddingSpec, Query
from engine.retrieval.index import Hit, Index
from engine.retrieval.parents import search_parents
from engine.retrieval.ranking import best_first, candidates
from engine.retrieval.relevance import NullScores, null_scores_of
from engine.retrieval.retrievers import index_scores

NOTHING_FOUND = "Nothing in these documents comes close enough to this question to answer it."

AnswerEnd = FinishReason | Literal["stopped"]


@dataclass(frozen=True)
class Timings:
    """Seconds of each stage, and the tokens of prompt and answer.

    ``search_s`` is the retriever's time, BM25 and token vectors included; ``expand_s`` the decoder's time to
    expand the question, before everything else. ``prompt_s`` is the time to the first token, ``generate_s``
    the time of those after it. Of the prompt's tokens, ``reused_tokens`` did not have to be read again; of
    the answer's, ``guessed_tokens`` were read before they were chosen (`PromptLookup`). For a server the
    tokens are counted by the built-in decoder's tokenizer, so they are approximate.
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
    expand_s: float = 0.0

    @property
    def prompt_tokens_per_s(self) -> float | None:
        """Prompt tokens read per second, without those that were reused."""
        return (self.prompt_tokens - self.reused_tokens) / self.prompt_s if self.prompt_s else None

    @property
    def answer_tokens_per_s(self) -> float | None:
        """Tokens generated per second after the first; None where there was only one."""
        return (self.answer_tokens - 1) / self.generate_s if self.answer_tokens > 1 else None


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

    ``prompt``, ``finish_reason`` and ``model`` are None where nothing relevant was found and no model ran.
    ``hits`` are all passages of the search, whatever their score, with ``margins`` and ``null_scores`` as in
    `Retrieval`. ``retriever`` decided their order; ``searched_for`` is the text it searched for, None for the
    question itself.

    ``model`` is the name of the model that wrote the text, ``server`` its address, None for the built-in
    decoder. ``ids`` are the built-in decoder's tokens, including the one that ended the answer; those of a
    server are not known.
    """

    question: str
    text: str
    prompt: Prompt | None
    hits: tuple[Hit, ...]
    margins: tuple[float | None, ...]
    null_scores: NullScores = field(repr=False)
    min_relevance: float
    finish_reason: AnswerEnd | None
    timings: Timings
    model: str | None = None
    server: str | None = None
    ids: tuple[int, ...] = ()
    retriever: str = "dense"
    searched_for: str | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages in the prompt."""
        return self.prompt.sources if self.prompt else ()

    @property
    def relevant(self) -> tuple[int, ...]:
        """Places of the relevant hits among all; the sources are the first of them, in order."""
        return relevant_places(self.hits, self.null_scores, self.min_relevance)


def relevant_places(hits: Sequence[Hit], null_scores: NullScores, min_relevance: float) -> tuple[int, ...]:
    """Places of the hits that are close enough to count as relevant."""
    return tuple(place for place, hit in enumerate(hits) if null_scores.relevance(hit.score) >= min_relevance)


def retrieve(
    question: str,
    index: Index,
    encoder: Encoder,
    settings: SearchSettings = DEFAULT_SEARCH,
    null_scores: NullScores | None = None,
    searched_for: str | None = None,
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
        How to search; ``expand`` is for `ask` alone.
    null_scores
        Scores of unrelated questions in this index; None computes them here, at the cost of embedding about
        a hundred questions.
    searched_for
        The text to search for in the question's place, such as the question `expanded`; None for itself.
        Relevance still depends on the question: a passage that a model made up proves nothing.

    Raises
    ------
    InputError
        A blank question, ``k`` below 1, or an index of another encoder.
    """
    if not question.strip():
        raise InputError("the question is empty: ask something")
    null_scores = null_scores_of(index, encoder) if null_scores is None else null_scores
    encoder, spec, k = index.encoder(encoder), index.spec, settings.k
    start = perf_counter()
    texts = [question] if searched_for is None else [question, searched_for]
    ids = [encoder.truncate(each, spec.max_tokens) for each in encoder.tokenizer.ids_batch(texts)]
    tokenized = perf_counter()
    vectors = encoder.encode_ids(ids, spec.pooling)  # (n_texts, d_model)
    encoded = perf_counter()
    stamp = EmbeddingSpec.of(encoder, spec.pooling, spec.max_tokens)
    by_cosine = settings.retriever == "dense" and searched_for is None
    order = None
    if not by_cosine:
        scores = index_scores(settings.retriever, texts[-1], Query(vectors[-1], stamp), index, encoder)
        order = candidates(best_first(scores[None])[0], scores, len(scores))  # (n_found,)
    # One more, for the margin of the last.
    found = search_parents(index, Query(vectors[0], stamp), k + 1 if k > 0 else k, order)
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
    encoder: Encoder,
    writer: Writer,
    settings: AnswerSettings = DEFAULT_ANSWER,
    null_scores: NullScores | None = None,
    on_text: Callable[[str], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Answer:
    """Answer a question from the best passages of an index; without a relevant one no model runs.

    Parameters
    ----------
    question, index, encoder, null_scores
        As in `retrieve`.
    writer
        The model that writes the answer.
    settings
        How to search and to write.
    on_text
        Called with each piece of the answer as it is written.
    stop
        Called after each piece; once it returns true the answer ends there, and its ``finish_reason`` is
        ``"stopped"``.

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
    start = perf_counter()
    searched_for = expanded(question, writer.decoder) if search.expand else None
    expand_s = perf_counter() - start if search.expand else 0.0
    found = retrieve(question, index, encoder, search, null_scores, searched_for)
    unanswered = Answer(
        question=question,
        text=NOTHING_FOUND,
        prompt=None,
        hits=found.hits,
        margins=found.margins,
        null_scores=found.null_scores,
        min_relevance=search.min_relevance,
        finish_reason=None,
        timings=replace(found.timings, expand_s=expand_s),
        retriever=search.retriever,
        searched_for=searched_for,
    )
    if not found.relevant:
        if on_text is not None:
            on_text(NOTHING_FOUND)
        return unanswered

    start = perf_counter()
    prompt = assemble_prompt(question, found.relevant, writer.decoder, settings.max_prompt_tokens)
    written = collect(writer.write(prompt, settings, stop), on_text, stop)
    end = perf_counter()
    first = end if written.first_at is None else written.first_at
    n_tokens = len(writer.decoder.tokenizer.encode(written.text)) if writer.server else len(written.ids)
    return replace(
        unanswered,
        text=written.text,
        prompt=prompt,
        finish_reason=written.finish_reason,
        timings=replace(
            unanswered.timings,
            prompt_s=first - start,
            prompt_tokens=len(prompt.ids),
            reused_tokens=writer.reused_tokens,
            generate_s=end - first,
            answer_tokens=n_tokens,
            guessed_tokens=written.n_guessed,
        ),
        model=writer.name,
        server=writer.url,
        ids=written.ids,
    )


@dataclass(frozen=True)
class _Written:
    """Text and tokens of an answer, how it ended, when it began (None: never), and its guessed tokens."""

    text: str
    ids: tuple[int, ...]
    finish_reason: AnswerEnd
    first_at: float | None
    n_guessed: int


def collect(
    pieces: Iterable[GeneratedToken | Piece],
    on_text: Callable[[str], None] | None,
    stop: Callable[[], bool],
) -> _Written:
    """Consume tokens or pieces until they end or ``stop()`` is true."""
    text, ids, first_at, n_guessed = "", [], None, 0
    reason: AnswerEnd = "stopped"
    for piece in pieces:
        first_at = first_at or perf_counter()
        text += piece.text
        if isinstance(piece, GeneratedToken):
            ids.append(piece.token_id)
            n_guessed += piece.guessed
        if on_text is not None and piece.text:
            on_text(piece.text)
        reason = piece.finish_reason or "stopped"
        if stop():
            break
    return _Written(text.strip(), tuple(ids), reason, first_at, n_guessed)
