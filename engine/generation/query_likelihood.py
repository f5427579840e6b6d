"""Query likelihood: passages ranked by the probability of the question after each, under a decoder.

Sachan et al. 2022, *Improving Passage Retrieval with Zero-Shot Question Generation*: a passage is scored by
the mean log-probability of the question's tokens after the passage and a request to write a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError, check_several
from engine.generation.decoder import Decoder
from engine.layers.tracing import Array
from engine.weights.fetch import Progress

BEFORE = "Passage: "
REQUEST = "\nPlease write a question based on this passage.\nQuestion:"
PASSAGE_TOKENS = 512


@dataclass(frozen=True)
class QueryLikelihood:
    """A decoder that scores passages for a question, as a `Reranker` does.

    ``max_tokens`` is the limit of the tokens of a passage; what is beyond it is not read.

    Raises
    ------
    InputError
        The limit is below 1.
    """

    decoder: Decoder
    max_tokens: int = PASSAGE_TOKENS

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}: read at least 1 token of a passage")

    def read(self, question: str, passage: str) -> tuple[list[int], int]:
        """Return the tokens of prompt and question, and the place of the question's first token."""
        texts = BEFORE, passage, REQUEST, f" {question.strip()}"
        encode = self.decoder.tokenizer.encode
        before, own, request, asked = (encode(text, literal=[(0, len(text))]).ids for text in texts)
        prompt = [*self.decoder.start_ids, *before, *own[: self.max_tokens], *request]
        return [*prompt, *asked], len(prompt)

    def score(self, question: str, passages: Sequence[str], on_progress: Progress | None = None) -> Array:
        """Score passages for a question: mean log-probability of its tokens, in nats, ``(n_passages,)``.

        Parameters
        ----------
        question, passages
            Each passage is read in a prompt of its own, whose keys and values are cached: only the tokens of
            the question are turned into logits.
        on_progress
            Called with passages read and passages in all.

        Raises
        ------
        InputError
            The question is blank, or a bare string is given for the passages.
        ContextLengthError
            A prompt is longer than the decoder's context.
        """
        check_several(passages)
        if not question.strip():
            raise InputError("the question is empty: ask something")
        scores = np.empty(len(passages), np.float32)
        for number, passage in enumerate(passages):
            scores[number] = self.decoder.log_probabilities(*self.read(question, passage)).mean()
            if on_progress is not None:
                on_progress(number + 1, len(passages))
        return scores
