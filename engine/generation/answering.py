"""A question in, an answer out, with the passages it was given and the time each stage took."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from engine.errors import ContextLengthError, InputError
from engine.generation.decoder import Decoder, FinishReason
from engine.generation.prompt import Prompt, Source, assemble_prompt
from engine.models.encoder import Encoder
from engine.retrieval.index import Hit, Index

# On the bundled corpus the best passage of every labelled question reaches this, and that of nine in
# ten unanswerable ones does not: benchmarks/threshold.py prints both shares.
DEFAULT_THRESHOLD = 0.3
NOTHING_FOUND = "Nothing in these documents comes close enough to this question to answer it."


@dataclass(frozen=True)
class Timings:
    """Seconds of each stage, and the tokens that the two stages of the decoder went through.

    ``prompt_s`` is the time to the first token, ``generate_s`` the time of those after it.
    """

    tokenize_s: float
    encode_s: float
    search_s: float
    prompt_s: float = 0.0
    prompt_tokens: int = 0
    generate_s: float = 0.0
    answer_tokens: int = 0

    @property
    def prompt_tokens_per_s(self) -> float | None:
        """Prompt tokens read per second."""
        return self.prompt_tokens / self.prompt_s if self.prompt_s else None

    @property
    def answer_tokens_per_s(self) -> float | None:
        """Tokens generated per second after the first; None where there was only one."""
        return (self.answer_tokens - 1) / self.generate_s if self.answer_tokens > 1 else None


@dataclass(frozen=True)
class Retrieval:
    """What a search found: hits at or above the threshold, and all of them."""

    hits: tuple[Hit, ...]
    relevant: tuple[Hit, ...]
    timings: Timings


@dataclass(frozen=True)
class Answer:
    """An answer with everything it rests on.

    ``prompt`` and ``finish_reason`` are None where nothing relevant was found and the decoder was
    not asked; ``hits`` are all passages that the search gave, whatever their score.
    """

    question: str
    text: str
    prompt: Prompt | None
    hits: tuple[Hit, ...]
    threshold: float
    finish_reason: FinishReason | None
    timings: Timings

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages the decoder was given."""
        return self.prompt.sources if self.prompt else ()


def retrieve(question: str, index: Index, encoder: Encoder, k: int, threshold: float) -> Retrieval:
    """Find the ``k`` nearest chunks to a question, and those of them scoring ``threshold`` or more.

    The question is embedded as the index was: its pooling and token limit.
    """
    if not question.strip():
        raise InputError("the question is empty: ask something")
    if encoder.name != index.model:
        raise InputError(f"the index holds vectors of {index.model}, not of {encoder.name}: build it again")
    start = perf_counter()
    ids = encoder.truncate(encoder.tokenizer.ids_batch([question])[0], index.max_tokens)
    tokenized = perf_counter()
    [vector] = encoder.encode_ids([ids], pooling=index.pooling)
    encoded = perf_counter()
    hits = tuple(index.search(vector, k))
    searched = perf_counter()
    return Retrieval(
        hits=hits,
        relevant=tuple(hit for hit in hits if hit.score >= threshold),
        timings=Timings(tokenized - start, encoded - tokenized, searched - encoded),
    )


def ask(
    question: str,
    index: Index,
    encoder: Encoder,
    decoder: Decoder,
    k: int = 4,
    threshold: float = DEFAULT_THRESHOLD,
    max_prompt_tokens: int = 1024,
    max_new_tokens: int = 128,
    temperature: float = 0.0,
    seed: int | None = None,
    on_text: Callable[[str], None] | None = None,
) -> Answer:
    """Answer a question from the nearest passages of an index.

    Parameters
    ----------
    question, index, encoder, decoder
        The question, where to look, and the two models; the encoder is the one of the index.
    k
        Passages to search for.
    threshold
        Lowest cosine of a passage that counts as relevant. Without one the decoder is not asked.
    max_prompt_tokens, max_new_tokens
        Budgets of prompt and answer; together they fit the decoder's context.
    temperature, seed
        As in `Decoder.generate`.
    on_text
        Called with each piece of the answer as it is generated.

    Raises
    ------
    InputError
        A blank question, or a setting outside its range.
    ContextLengthError
        The budgets exceed the decoder's context, or the question exceeds the prompt's.
    """
    if max_prompt_tokens + max_new_tokens > decoder.max_tokens:
        raise ContextLengthError(
            f"{max_prompt_tokens} prompt tokens and {max_new_tokens} new ones exceed the "
            f"{decoder.max_tokens} positions of {decoder.name}: lower one of them"
        )
    found = retrieve(question, index, encoder, k, threshold)
    if not found.relevant:
        if on_text is not None:
            on_text(NOTHING_FOUND)
        return Answer(question, NOTHING_FOUND, None, found.hits, threshold, None, found.timings)

    start = perf_counter()
    prompt = assemble_prompt(question, found.relevant, decoder, max_prompt_tokens)
    first_token = start
    pieces: list[str] = []
    reason: FinishReason | None = None
    steps = decoder.generate(prompt.ids, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed)
    for step in steps:
        if not pieces:
            first_token = perf_counter()
        pieces.append(step.text)
        reason = step.finish_reason
        if on_text is not None and step.text:
            on_text(step.text)
    timings = replace(
        found.timings,
        prompt_s=first_token - start,
        prompt_tokens=len(prompt.ids),
        generate_s=perf_counter() - first_token,
        answer_tokens=len(pieces),
    )
    return Answer(question, "".join(pieces).strip(), prompt, found.hits, threshold, reason, timings)
