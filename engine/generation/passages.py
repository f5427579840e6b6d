"""Places of the passages in a prompt, and the prompt without some of them."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ..layers.tracing import Array
from .decoder import Decoder
from .prompt import Prompt
from .prompt_words import passage_frame


def passage_of_tokens(prompt: Prompt, decoder: Decoder) -> Array:
    """Return the passage of each token of a prompt, from 0, -1 outside of passages: ``(n_tokens,)``."""
    chat, encoding = decoder.chat_encoding(prompt.messages)
    starts, ends = np.array(encoding.offsets).T - chat.contents[-1][0]  # (n_tokens,) each
    passage = np.full(len(prompt.ids), -1)
    for number, (start, end) in enumerate(prompt.spans):
        passage[(starts < end) & (ends > start)] = number
    return passage


def ids_without(prompt: Prompt, numbers: Collection[int], decoder: Decoder) -> list[int]:
    """Return the ids of a prompt without some passages, by numbers from 1, their labels and quotes."""
    *before, last = prompt.messages
    content = last["content"]
    for source, (start, end) in reversed([*zip(prompt.sources, prompt.spans, strict=True)]):
        if source.number in numbers:
            label, quotes = passage_frame(source.number)
            content = content[: start - len(label)] + content[end + len(quotes) :]
    return decoder.chat_encoding([*before, {**last, "content": content}])[1].ids


def without_thinking(prompt: Prompt, decoder: Decoder) -> Prompt:
    """Return a prompt as it is for an answer without a thought.

    A thought repeats the passages, so an answer behind it hardly needs them. What an answer rests on is
    measured without the thought.
    """
    chat, encoding = decoder.chat_encoding(prompt.messages)
    return replace(prompt, text=chat.text, ids=tuple(encoding.ids))
