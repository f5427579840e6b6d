"""Places of the passages in a prompt, and the prompt without some of them."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import InputError
from engine.generation.decoder import Decoder
from engine.generation.prompt import Prompt, passage_frame
from engine.layers.tracing import Array


@dataclass(frozen=True)
class PassageSpan:
    """Span of a passage in the prompt's last message, with label and quotes, and of only its text."""

    start: int
    text_start: int
    text_end: int
    end: int


def passage_spans(prompt: Prompt) -> tuple[PassageSpan, ...]:
    """Find each passage of a prompt, in characters of its last message."""
    content, spans, place = prompt.messages[-1]["content"], [], 0
    for source in prompt.sources:
        label, quotes = passage_frame(source.number)
        start = content.find(f"{label}{source.text}{quotes}", place)
        if start < 0:
            raise InputError(f"passage {source.number} is not in the prompt: assemble the prompt again")
        text_end = start + len(label) + len(source.text)
        place = text_end + len(quotes)
        spans.append(PassageSpan(start, start + len(label), text_end, place))
    return tuple(spans)


def passage_of_tokens(prompt: Prompt, decoder: Decoder) -> Array:
    """Return which passage each token of a prompt belongs to: ``(n_tokens,)``.

    Passages count from 0; -1 is outside of all passages, as labels and quotes are.
    """
    chat, encoding = decoder.chat_encoding(prompt.messages)
    starts, ends = np.array(encoding.offsets).T - chat.contents[-1][0]  # (n_tokens,) each
    passage = np.full(len(prompt.ids), -1)
    for number, span in enumerate(passage_spans(prompt)):
        passage[(starts < span.text_end) & (ends > span.text_start)] = number
    return passage


def ids_without(prompt: Prompt, numbers: Collection[int], decoder: Decoder) -> list[int]:
    """Return the ids of a prompt without some passages, given by their numbers from 1.

    A passage is removed with its label and quotes. The others keep their numbers, and all other wording
    stays.
    """
    *before, last = prompt.messages
    content = last["content"]
    for source, span in reversed([*zip(prompt.sources, passage_spans(prompt), strict=True)]):
        if source.number in numbers:
            content = content[: span.start] + content[span.end :]
    return decoder.chat_encoding([*before, {**last, "content": content}])[1].ids


def without_thinking(prompt: Prompt, decoder: Decoder) -> Prompt:
    """Return a prompt as it is for an answer without a thought.

    A thought repeats the passages, so an answer behind it hardly needs them. What an answer rests on is
    measured without the thought.
    """
    chat, encoding = decoder.chat_encoding(prompt.messages)
    return replace(prompt, text=chat.text, ids=tuple(encoding.ids))
