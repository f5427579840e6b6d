"""Texts and token ids of requests, as the model reads them; every truncation is reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..models.reranker import Reranker
from .bodies import RequestError
from .served import Limits, Served

SHOWN = 3  # texts named in a message


@dataclass(frozen=True)
class Reading:
    """The token ids of a request's texts, truncated where needed."""

    items: Sequence[Any]  # token ids of each text, or pair of texts, cut at the limit
    cut: Mapping[int, int]  # numbers of the texts that were cut, and their tokens before

    @property
    def sizes(self) -> list[int]:
        """Tokens that are read of each text."""
        return [len(each) for each in self.items]

    def truncation(self, name: str = "truncated") -> dict[str, Any]:
        """Return the field of the response that lists the texts cut; empty if there are none."""
        cut = [
            {"index": number, "tokens": n_tokens, "read": len(self.items[number])}
            for number, n_tokens in self.cut.items()
        ]
        return {name: cut} if cut else {}


def read_texts(
    texts: Sequence[str], served: Served, truncate: bool | None, field: str, prompt: str = ""
) -> Reading:
    """Tokenize texts behind a prompt, for a request that says whether to ``truncate`` them.

    A document to be scored may be empty, as one of many may be that a client did not look at.
    """
    for number, text in enumerate(texts):
        if not text and field != "documents":
            raise RequestError(400, f"{field}: text {number} is empty: leave it out", field)
    ids = served.encoder.tokenizer.ids_batch([prompt + text for text in texts])
    return read_ids(ids, served, truncate, field)


def read_ids(ids: Sequence[Sequence[int]], served: Served, truncate: bool | None, field: str) -> Reading:
    """Check token ids, and cut them where they may be; errors are those of `read_texts`."""
    encoder = served.encoder
    limit, vocab_size = encoder.token_limit(None), encoder.config.vocab_size
    for number, each in enumerate(ids):
        if not each:
            raise RequestError(400, f"{field}: text {number} has no tokens: leave it out", field)
        if max(each) >= vocab_size:
            raise RequestError(
                400,
                f"{field}: token id {max(each)} of text {number} is not of {encoder.name}, which has "
                f"{vocab_size:,}: send texts, or ids of its own tokenizer",
                field,
            )
    cut = {number: len(each) for number, each in enumerate(ids) if len(each) > limit}
    if cut and not served.cuts(truncate):
        raise too_long(cut, limit, encoder.name, field)
    read = [encoder.truncate(each, limit) if number in cut else list(each) for number, each in enumerate(ids)]
    check_tokens(sum(map(len, read)), served.limits, field)
    return Reading(read, cut)


def read_pairs(
    question: str, passages: Sequence[str], reranker: Reranker, served: Served, truncate: bool | None
) -> Reading:
    """Tokenize a question with each passage; errors are those of `read_texts`."""
    pairs = [reranker.tokenizer.encode_pair(question, passage) for passage in passages]
    limit = reranker.max_tokens
    cut = {number: len(pair) for number, pair in enumerate(pairs) if len(pair) > limit}
    if cut and not served.cuts(truncate):
        raise too_long(cut, limit, reranker.name, "documents", "with the query ")
    pairs = [
        reranker.read(question, passages[number]) if number in cut else pair
        for number, pair in enumerate(pairs)
    ]
    check_tokens(sum(map(len, pairs)), served.limits, "documents")
    return Reading(pairs, cut)


def too_long(cut: Mapping[int, int], limit: int, model: str, field: str, what: str = "") -> RequestError:
    """Return the error of texts beyond the token limit."""
    named = ", ".join(f"text {number} has {what}{cut[number]:,} tokens" for number in list(cut)[:SHOWN])
    more = f" and {len(cut) - SHOWN:,} more texts" if len(cut) > SHOWN else ""
    return RequestError(
        400,
        f'{field}: {named}{more}, over the {limit} that {model} reads: cut them, or send "truncate": true '
        "to have the rest left out and named in the answer",
        field,
        "context_length_exceeded",
    )


def check_tokens(n_tokens: int, limits: Limits, field: str) -> None:
    """Raise `RequestError` for a request of too many tokens."""
    if n_tokens > limits.tokens:
        raise RequestError(
            400,
            f"{field}: {n_tokens:,} tokens, over the {limits.tokens:,} of a request: send fewer texts",
            field,
        )


def check_texts(n_texts: int, limits: Limits, field: str) -> None:
    """Raise `RequestError` for a request of no texts or too many."""
    if not n_texts:
        raise RequestError(400, f"{field} is empty: give one text or more", field)
    if n_texts > limits.texts:
        raise RequestError(
            400, f"{field}: {n_texts:,} texts, over the {limits.texts:,} of a request: send fewer", field
        )
