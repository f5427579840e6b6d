"""What an encoder reads of a text: its tokens up to a limit, behind the prompt of the model."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from ..errors import ContextLengthError, InputError
from ..kernels.primitives import best_primitives
from ..layers.primitives import NUMPY, Primitives
from ..tokenizers.encoding import Encoding
from .bert import EncoderConfig
from .embedding_head import EmbeddingHead
from .encoder_families import FAMILIES
from .prompts import Prompts

T = TypeVar("T")


class TokenReader:
    """The part of an `Encoder` that turns texts into tokens, and knows what reads them."""

    name: str
    config: EncoderConfig
    tokenizer: Any
    max_tokens: int
    head: EmbeddingHead
    prompts: Prompts
    model_type: str
    compiled: bool

    @property
    def family(self) -> ModuleType:
        """The module of its forward pass."""
        return FAMILIES[self.model_type].forward

    @property
    def ops(self) -> Primitives:
        """What its layers run on: compiled kernels once they are loaded, else NumPy's functions."""
        return best_primitives() if self.compiled else NUMPY

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or this encoder's own limit for None, checked against its positions."""
        limit = self.max_tokens if max_tokens is None else max_tokens
        shortest = self.tokenizer.n_special + 1
        if not (isinstance(limit, int | np.integer) and shortest <= limit <= self.config.max_positions):
            raise InputError(
                f"max_tokens is {limit!r}: the model takes {shortest} to {self.config.max_positions}"
            )
        return limit

    def truncate(self, tokens: Sequence[T], max_tokens: int | None = None) -> list[T]:
        """Cut a text's ids (or tokens, or offsets) at the token limit, with [SEP] kept at the end.

        Raises `InputError` where there are none: the text is empty, and the model adds no special tokens.
        """
        if not tokens:
            raise InputError("a text has no tokens, and the model adds none: leave out texts that are empty")
        limit, n_after = self.token_limit(max_tokens), self.tokenizer.n_after
        if len(tokens) <= limit:
            return list(tokens)
        return [*tokens[: limit - n_after], *tokens[len(tokens) - n_after :]]

    def read(self, text: str, pair: str | None = None, max_tokens: int | None = None) -> Encoding:
        """Return the tokens of a text, or of a pair of texts, cut at ``max_tokens``.

        Raises `ContextLengthError` where a pair has more tokens than the limit.
        """
        if pair is None:
            return self.cut(self.tokenizer.encode(text), max_tokens)
        limit = self.token_limit(max_tokens)
        both = self.tokenizer.encode_pair(text, pair)
        if len(both) > limit:
            raise ContextLengthError(
                f"the two texts have {len(both)} tokens together, over the limit of {limit}: shorten one"
            )
        return both

    def cut(self, whole: Encoding, max_tokens: int | None = None) -> Encoding:
        """Cut the tokens of a whole text at ``max_tokens``."""
        return Encoding(
            self.truncate(whole.ids, max_tokens),
            self.truncate(whole.tokens, max_tokens),
            self.truncate(whole.offsets, max_tokens),
            self.truncate(whole.type_ids, max_tokens),
        )

    def text_limit(self, max_tokens: int | None = None) -> int:
        """Return how many tokens of a document are read, [CLS] and [SEP] included, behind its prompt.

        Raises `InputError` where the limit is out of its range, or the prompt leaves no room for a text.
        """
        limit, prompt = self.token_limit(max_tokens), self.prompts.of("document")
        return limit - len(self._prompt_ids(prompt, limit)) + self.tokenizer.n_special if prompt else limit

    def prompt_length(self, prompt: str, limit: int) -> int:
        """Return the number of a prompt's tokens that are not pooled: 0 unless the model leaves them out.

        Raises `InputError` where the prompt leaves no room for a text.
        """
        if not prompt:
            return 0
        ids = self._prompt_ids(prompt, limit)
        return 0 if self.head.include_prompt else len(ids) - (ids[-1] in self.tokenizer.special_ids)

    def _prompt_ids(self, prompt: str, limit: int) -> list[int]:
        """Return the tokens of a prompt, special ones included; errors are those of `prompt_length`."""
        ids: list[int] = self.tokenizer.ids_batch([prompt])[0]
        if len(ids) >= limit:
            raise InputError(
                f"the prompt has {len(ids)} tokens, which leaves no room for a text under the limit of "
                f"{limit}: raise max_tokens (up to {self.config.max_positions})"
            )
        return ids
