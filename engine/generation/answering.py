"""A question in, an answer out, with the passages it was given and the time each stage took."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Literal

from engine.errors import ContextLengthError, InputError
from engine.generation.decoder import Decoder
from engine.generation.expansion import expanded
from engine.generation.prefix_cache import PrefixCache
from engine.generation.prompt import Prompt, Source, assemble_prompt
from engine.generation.sampling import Sampling
from engine.generation.server import Piece, Server
from engine.generation.step import FinishReason, Step
from engine.models.encoder import Encoder
from engine.retrieval.background import Background, background_of
from engine.retrieval.index import Hit, Index
from engine.retrieval.parents import search_parents
from engine.retrieval.ranking import best_first, candidates
from engine.retrieval.retrievers import check_retriever, index_scores
from engine.retrieval.vector_kind import Query, VectorKind

# Of ten questions that have nothing to do with the documents about one is answered. benchmarks/threshold.py
# counts how many are, and what share of the answerable ones, under several poolings and chunk sizes.
DEFAULT_MIN_RELEVANCE = 90.0
NOTHING_FOUND = "Nothing in these documents comes close enough to this question to answer it."

AnswerEnd = FinishReason | Literal["stopped"]


@dataclass(frozen=True)
class Timings:
    """Seconds of each stage, and the tokens that the two stages of the decoder went through.

    ``search_s`` is all that the retriever does, BM25 and tokens included; ``expand_s`` is what the decoder
    took to expand the question, before everything else. ``prompt_s`` is the time to the first token,
    ``generate_s`` the time of those after it. Of the prompt's tokens ``reused_tokens`` did not have to be
    read again; of the answer's ``guessed_tokens`` were read before they were chosen (`PromptLookup`).
    Where a server answers, the tokens are counted by the built-in decoder's tokenizer, which is about
    right.
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
    """What a search found: all hits, best first, and those of them that are relevant, in the same order.

    ``margins`` are by how much the cosine of each hit exceeds that of the next passage, which need not be
    among the hits; None where there is no next one, and where it is not cosines that give the order: ranks
    and words in common have scales of their own. ``background`` says how close the hits are.
    """

    hits: tuple[Hit, ...]
    relevant: tuple[Hit, ...]
    margins: tuple[float | None, ...]
    background: Background = field(repr=False)
    timings: Timings


@dataclass(frozen=True)
class Answer:
    """An answer with everything it rests on.

    ``prompt``, ``finish_reason`` and ``model`` are None where nothing relevant was found and no model
    was asked; ``hits`` are all passages that the search gave, whatever their score, with ``margins`` and
    ``background`` as in `Retrieval`. ``retriever`` gave their order, ``searched_for`` is what it searched
    for where that is not the question itself.

    ``model`` is the name of the one that wrote the text, and ``server`` the address it runs at, None for
    the built-in decoder. ``ids`` are the built-in decoder's tokens, with the one that ended the answer;
    those of a server are not known.
    """

    question: str
    text: str
    prompt: Prompt | None
    hits: tuple[Hit, ...]
    margins: tuple[float | None, ...]
    background: Background = field(repr=False)
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
        """The passages the decoder was given."""
        return self.prompt.sources if self.prompt else ()

    @property
    def relevant(self) -> tuple[int, ...]:
        """Places among the hits of those that are relevant; the sources are the first of them, in order."""
        return relevant_places(self.hits, self.background, self.min_relevance)


def relevant_places(hits: Sequence[Hit], background: Background, min_relevance: float) -> tuple[int, ...]:
    """Places among hits of those that are close enough to count."""
    return tuple(place for place, hit in enumerate(hits) if background.relevance(hit.score) >= min_relevance)


def retrieve(
    question: str,
    index: Index,
    encoder: Encoder,
    k: int,
    min_relevance: float = DEFAULT_MIN_RELEVANCE,
    background: Background | None = None,
    retriever: str = "dense",
    searched_for: str | None = None,
) -> Retrieval:
    """Find the ``k`` best passages for a question, and those of them that are relevant.

    The question is embedded as the index was: its pooling and token limit. A passage is a chunk, or its
    parent where it has one. ``min_relevance`` and ``background`` are as in `ask`.

    The retriever decides which passages are found, and their order; how close a passage has to be to count
    as relevant is a matter of its cosine with the question, whatever found it. So one that has the words
    of the question and another subject is found by its words, and still is not relevant.

    Parameters
    ----------
    retriever
        One of `RETRIEVERS`.
    searched_for
        What is searched for in the question's place, such as the question `expanded`; None for itself. How
        close a passage is stays a matter of the question: what a model made up proves nothing.
    """
    if not question.strip():
        raise InputError("the question is empty: ask something")
    if not 0 <= min_relevance <= 100:
        raise InputError(f"min_relevance is {min_relevance}: give 0 (every passage counts) to 100 percent")
    check_retriever(retriever)
    background = background_of(index, encoder) if background is None else background
    encoder, kind = index.encoder(encoder), index.kind
    start = perf_counter()
    texts = [question] if searched_for is None else [question, searched_for]
    ids = [encoder.truncate(each, kind.max_tokens) for each in encoder.tokenizer.ids_batch(texts)]
    tokenized = perf_counter()
    vectors = encoder.encode_ids(ids, kind.pooling)  # (n_texts, d_model)
    encoded = perf_counter()
    stamp = VectorKind.of(encoder, kind.pooling, kind.max_tokens)
    by_cosine = retriever == "dense" and searched_for is None
    order = None
    if not by_cosine:
        scores = index_scores(retriever, texts[-1], Query(vectors[-1], stamp), index, encoder)
        order = candidates(best_first(scores[None])[0], scores, len(scores))  # (n_found,)
    # One more, for the margin of the last.
    found = search_parents(index, Query(vectors[0], stamp), k + 1 if k > 0 else k, order)
    searched = perf_counter()
    hits = tuple(found[:k])
    return Retrieval(
        hits=hits,
        relevant=tuple(hits[place] for place in relevant_places(hits, background, min_relevance)),
        margins=(margins(found) if by_cosine else (None,) * len(found))[:k],
        background=background,
        timings=Timings(tokenized - start, encoded - tokenized, searched - encoded),
    )


def margins(hits: Sequence[Hit]) -> tuple[float | None, ...]:
    """By how much each hit's score exceeds the next one's; None for the last."""
    return (*(hit.score - following.score for hit, following in pairwise(hits)), None)


def ask(
    question: str,
    index: Index,
    encoder: Encoder,
    decoder: Decoder,
    k: int = 4,
    min_relevance: float = DEFAULT_MIN_RELEVANCE,
    max_prompt_tokens: int = 1024,
    max_new_tokens: int = 128,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    reuse: PrefixCache | None = None,
    server: Server | None = None,
    background: Background | None = None,
    retriever: str = "dense",
    expand: bool = False,
    on_text: Callable[[str], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Answer:
    """Answer a question from the best passages of an index.

    Parameters
    ----------
    question, index, encoder, decoder
        The question, where to look, and the two models; the encoder is the one of the index.
    k
        Passages to search for.
    min_relevance
        Lowest `Background.relevance` of a passage that counts as relevant, 0 to 100: the share of unrelated
        questions, in percent, of which even the best passage is further away. Without a relevant passage
        no model is asked.
    max_prompt_tokens, max_new_tokens
        Budgets of prompt and answer; together they fit the decoder's context.
    temperature, top_k, top_p, min_p, repetition_penalty, seed, reuse
        As in `Decoder.generate`. Prompts of the same passages begin alike, so that with ``reuse`` the
        second one is read sooner.
    server
        Writes the answer in the decoder's place; the decoder's tokenizer still counts the prompt. Of the
        settings above a server has ``temperature``, ``top_p`` and ``seed``.
    background
        What unrelated questions score in this index; None makes it here, at the cost of about a hundred
        questions embedded.
    retriever
        One of `RETRIEVERS`: it finds the passages, and their order is its own. What counts as relevant
        stays a matter of cosines.
    expand
        Search for the question as the decoder has `expanded` it, also where a server answers.
    on_text
        Called with each piece of the answer as it is written.
    stop
        Asked after each piece: where it says so, the answer ends with what there is, and its
        ``finish_reason`` is ``"stopped"``.

    Raises
    ------
    InputError
        A blank question, a setting outside its range, or one that a server does not have.
    ContextLengthError
        The budgets exceed the decoder's context, or the question exceeds the prompt's.
    ModelUnavailableError
        The server does not answer as it should.
    """
    sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    if server is not None:
        check_server_settings(sampling)
    elif max_prompt_tokens + max_new_tokens > decoder.max_tokens:
        raise ContextLengthError(
            f"{max_prompt_tokens} prompt tokens and {max_new_tokens} new ones exceed the "
            f"{decoder.max_tokens} positions of {decoder.name}: lower one of them"
        )
    start = perf_counter()
    searched_for = expanded(question, decoder) if expand else None
    expand_s = perf_counter() - start if expand else 0.0
    found = retrieve(question, index, encoder, k, min_relevance, background, retriever, searched_for)
    timings = replace(found.timings, expand_s=expand_s)
    if not found.relevant:
        if on_text is not None:
            on_text(NOTHING_FOUND)
        return Answer(
            question=question,
            text=NOTHING_FOUND,
            prompt=None,
            hits=found.hits,
            margins=found.margins,
            background=found.background,
            min_relevance=min_relevance,
            finish_reason=None,
            timings=timings,
            retriever=retriever,
            searched_for=searched_for,
        )

    start = perf_counter()
    prompt = assemble_prompt(question, found.relevant, decoder, max_prompt_tokens)
    steps: Iterable[Step | Piece]
    if server is None:
        steps = decoder.generate(prompt.ids, max_new_tokens, **asdict(sampling), seed=seed, reuse=reuse)
    else:
        steps = server.generate(prompt.messages, max_new_tokens, temperature, top_p, seed, is_stopped=stop)
    written = write(steps, on_text, stop)
    end = perf_counter()
    first = end if written.first_at is None else written.first_at
    return Answer(
        question=question,
        text=written.text,
        prompt=prompt,
        hits=found.hits,
        margins=found.margins,
        background=found.background,
        min_relevance=min_relevance,
        finish_reason=written.finish_reason,
        timings=replace(
            timings,
            prompt_s=first - start,
            prompt_tokens=len(prompt.ids),
            reused_tokens=reuse.reused_tokens if reuse is not None and server is None else 0,
            generate_s=end - first,
            answer_tokens=len(written.ids) if server is None else len(decoder.tokenizer.encode(written.text)),
            guessed_tokens=written.n_guessed,
        ),
        model=decoder.name if server is None else server.model,
        server=None if server is None else server.url,
        ids=written.ids,
        retriever=retriever,
        searched_for=searched_for,
    )


@dataclass(frozen=True)
class _Written:
    """What a model wrote: text and tokens, how it ended, when (None: never) it began, how many it guessed."""

    text: str
    ids: tuple[int, ...]
    finish_reason: AnswerEnd
    first_at: float | None
    n_guessed: int


def write(
    steps: Iterable[Step | Piece], on_text: Callable[[str], None] | None, stop: Callable[[], bool]
) -> _Written:
    """Go through the steps of a decoder or the pieces of a server, until they or somebody's patience end."""
    text, ids, first_at, n_guessed = "", [], None, 0
    reason: AnswerEnd = "stopped"
    for step in steps:
        first_at = first_at or perf_counter()
        text += step.text
        if isinstance(step, Step):
            ids.append(step.token_id)
            n_guessed += step.guessed
        if on_text is not None and step.text:
            on_text(step.text)
        reason = step.finish_reason or "stopped"
        if stop():
            break
    return _Written(text.strip(), tuple(ids), reason, first_at, n_guessed)


def check_server_settings(sampling: Sampling) -> None:
    """Raise `InputError` for a setting that OpenAI-compatible servers do not share."""
    plain = Sampling()
    for name in ("top_k", "min_p", "repetition_penalty"):
        if getattr(sampling, name) != getattr(plain, name):
            raise InputError(
                f"{name} is {getattr(sampling, name)}, and a server has temperature, top_p and seed alone: "
                "leave it out"
            )
