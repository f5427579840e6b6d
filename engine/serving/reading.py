"""Texts and token ids of requests, as the model reads them; every truncation is reported."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..models.reranker import Reranker
from ..wording import model_name
from .bodies import FORMS, RequestError
from .served import RequestLimits, Served

T = TypeVar("T")

INLINE_CHARACTERS = 400  # of texts that are tokenized at once, which takes a tenth of a millisecond
SHOWN = 3  # texts named in a message
TOKEN_CHARACTERS = 32  # tokenized of a text for each token of the limit; English has 4 or 5 a token
GROUP_CHARACTERS = 100_000  # tokenized at once: the tokenizer takes a hundred bytes for each


@dataclass(frozen=True)
class Reading:
    """The token ids of a request's texts, truncated where needed."""

    items: list[Any]  # token ids of each text, or pair of texts, cut at the limit
    cut: dict[int, "Cut"]  # by the numbers of the texts that were cut

    @property
    def sizes(self) -> list[int]:
        """Tokens that are read of each text."""
        return [len(each) for each in self.items]

    def truncation(self) -> dict[str, Any]:
        """Return the field of the response that lists the texts cut; empty if there are none."""
        found = [
            {"index": number, "tokens": cut.n_tokens, "read": len(self.items[number])}
            | ({"characters": cut.n_characters, "tokenized": cut.n_tokenized} if cut.is_partial else {})
            for number, cut in self.cut.items()
        ]
        return {"truncated": found} if found else {}


@dataclass(frozen=True)
class Cut:
    """A text beyond the limit: its characters, the first ones, which were tokenized, and their tokens."""

    n_characters: int
    n_tokenized: int
    n_tokens: int

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the text was tokenized."""
        return self.n_tokenized < self.n_characters

    def __str__(self) -> str:
        if not self.is_partial:
            return f"{self.n_tokens:,} tokens"
        first = f"{self.n_tokenized:,} have {self.n_tokens:,} tokens"
        return f"{self.n_characters:,} characters, whose first {first}"


def read_texts(
    texts: Sequence[str],
    served: Served,
    truncate: bool | None,
    field: str,
    prompt: str = "",
    is_stopped: Callable[[], bool] = lambda: False,
) -> Reading:
    """Tokenize texts behind a prompt, for a request that says whether to ``truncate`` them.

    Work and memory are bounded by the limits of tokens: of each text so many characters are tokenized as the
    limit can fill, and no more texts once their tokens exceed those of a request. A document to be scored
    may be empty, as one of many may be that a client did not look at.
    """
    encoder, limit = served.encoder, served.encoder.token_limit(None)
    for number, text in enumerate(texts):
        if not text and field != "documents":
            raise RequestError(400, f"{field}: text {number} is empty: leave it out", field)
    reading, n_tokens = Reading([], {}), 0
    for start, group in groups(texts, limit * TOKEN_CHARACTERS):
        if is_stopped():
            break
        ids = encoder.tokenizer.ids_batch([prompt + text for text in group])
        for number, (text, each) in enumerate(zip(group, ids, strict=True), start):
            if not each:
                raise RequestError(400, f"{field}: text {number} has no tokens: leave it out", field)
            if len(each) > limit or len(text) < len(texts[number]):
                reading.cut[number] = Cut(len(texts[number]), len(text), len(each))
        if reading.cut and not served.cuts(truncate):
            raise too_long(reading.cut, limit, encoder.name, field)
        reading.items.extend(encoder.truncate(each, limit) if len(each) > limit else each for each in ids)
        n_tokens += sum(map(len, reading.items[start:]))
        check_tokens(n_tokens, served.limits, field, is_all=len(reading.items) == len(texts))
    return reading


def groups(texts: Sequence[str], most: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the beginnings of texts in groups of `GROUP_CHARACTERS`, with the number of the first."""
    group, n_characters = list[str](), 0
    for number, text in enumerate(texts):
        group.append(text[:most])
        n_characters += len(group[-1])
        if n_characters >= GROUP_CHARACTERS or number == len(texts) - 1:
            yield number + 1 - len(group), group
            group, n_characters = [], 0


def read_ids(ids: Sequence[Any], served: Served, truncate: bool | None, field: str) -> Reading:
    """Check token ids, and cut them where they may be; errors are those of `read_texts`."""
    encoder = served.encoder
    limit, vocab_size = encoder.token_limit(None), encoder.config.vocab_size
    for number, each in enumerate(ids):
        if not isinstance(each, list) or any(type(token) is not int or token < 0 for token in each):
            raise RequestError(400, f"{field}: {FORMS[field]}", field)
        if not each:
            raise RequestError(400, f"{field}: text {number} has no tokens: leave it out", field)
        if max(each) >= vocab_size:
            raise RequestError(
                400,
                f"{field}: token id {max(each)!s:.80} of text {number} is not of {model_name(encoder.name)}, "
                f"which has {vocab_size:,}: send texts, or ids of its own tokenizer",
                field,
            )
    cut = {number: Cut(0, 0, len(each)) for number, each in enumerate(ids) if len(each) > limit}
    if cut and not served.cuts(truncate):
        raise too_long(cut, limit, encoder.name, field)
    read = [encoder.truncate(each, limit) if number in cut else each for number, each in enumerate(ids)]
    check_tokens(sum(map(len, read)), served.limits, field)
    return Reading(read, cut)


def read_pairs(
    question: str,
    passages: Sequence[str],
    reranker: Reranker,
    served: Served,
    truncate: bool | None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Reading:
    """Tokenize a question with each passage; bounds and errors are those of `read_texts`."""
    limit, reading, n_tokens = reranker.max_tokens, Reading([], {}), 0
    most = limit * TOKEN_CHARACTERS
    asked, n_question = question[:most], len(question)
    for number, passage in enumerate(passages):
        if is_stopped():
            break
        pair = reranker.read(asked, passage[:most], is_whole=True)
        if len(pair) > limit or len(asked) < n_question or len(passage) > most:
            n_tokenized = len(asked) + min(most, len(passage))
            reading.cut[number] = Cut(n_question + len(passage), n_tokenized, len(pair))
            if not served.cuts(truncate) and (len(reading.cut) > SHOWN or number == len(passages) - 1):
                break
            pair = reranker.read(asked, passage[:most])
        reading.items.append(pair)
        n_tokens += len(pair)
        check_tokens(n_tokens, served.limits, "documents", is_all=number == len(passages) - 1)
    if reading.cut and not served.cuts(truncate):
        raise too_long(reading.cut, limit, reranker.name, "documents", "with the query ")
    return reading


def too_long(cut: Mapping[int, Cut], limit: int, model: str, field: str, what: str = "") -> RequestError:
    """Return the error of texts beyond the token limit."""
    named = ", ".join(f"text {number} has {what}{cut[number]}" for number in list(cut)[:SHOWN])
    more = f" and {len(cut) - SHOWN:,} more texts" if len(cut) > SHOWN else ""
    return RequestError(
        400,
        f'{field}: {named}{more}, over the {limit} that {model} reads: cut them, or send "truncate": true '
        "to have the rest left out and named in the answer",
        field,
        "context_length_exceeded",
    )


def check_tokens(n_tokens: int, limits: RequestLimits, field: str, is_all: bool = True) -> None:
    """Raise `RequestError` for a request of too many tokens; ``is_all``: all of them were counted."""
    if n_tokens > limits.tokens:
        more = "" if is_all else " or more"
        raise RequestError(
            400,
            f"{field}: {n_tokens:,} tokens{more}, over the {limits.tokens:,} of a request: send fewer texts",
            field,
        )


def check_texts(n_texts: int, limits: RequestLimits, field: str) -> None:
    """Raise `RequestError` for a request of no texts or too many."""
    if not n_texts:
        raise RequestError(400, f"{field} is empty: give one text or more", field)
    if n_texts > limits.texts:
        raise RequestError(
            400, f"{field}: {n_texts:,} texts, over the {limits.texts:,} of a request: send fewer", field
        )


async def in_thread(n_characters: int, read: Callable[..., T], *arguments: Any) -> T:
    """Read texts in a thread, until the request is cancelled; a few words at once, which is faster."""
    if n_characters <= INLINE_CHARACTERS:
        return read(*arguments)
    left = threading.Event()
    try:
        return await asyncio.to_thread(read, *arguments, is_stopped=left.is_set)
    finally:
        left.set()
