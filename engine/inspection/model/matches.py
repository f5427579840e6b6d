"""The parts of a match: words of a learned sparse model, tokens of late interaction."""

from dataclasses import dataclass, field

import numpy as np

from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...models.multi_vector import MultiVectorEncoder, PlacedToken
from ...models.prompts import Role
from ...models.sparse_encoder import SparseEncoder
from ...models.token_reader import TokenReader
from ...retrieval.maxsim import unit_vectors
from ...tokenizers.encoding import Encoding


@dataclass(frozen=True)
class ExpandedWord:
    """A word that a text was expanded by."""

    number: int
    word: str
    weight: float
    token: int  # the one that gives it most, a place among those of the text
    stands_in_text: bool  # whether the word is one of them


@dataclass(frozen=True)
class ExpandedText:
    """A text with the words that it was expanded by, the largest weight first."""

    tokens: tuple[PlacedToken, ...]
    words: tuple[ExpandedWord, ...] = field(repr=False)


@dataclass(frozen=True)
class SharedWord:
    """A word of both texts; it adds the product of its weights to the score."""

    question: ExpandedWord
    passage: ExpandedWord

    @property
    def adds(self) -> float:
        """What the word adds to the score."""
        return self.question.weight * self.passage.weight

    @property
    def place(self) -> str:
        """Where the word itself stands."""
        places = {"question": self.question.stands_in_text, "passage": self.passage.stands_in_text}
        return " and ".join(name for name, stands in places.items() if stands) or "neither"


def expanded_text(model: SparseEncoder, text: str, role: Role) -> ExpandedText:
    """Expand a question or a document."""
    found, tokenizer = model.expand(text, role), model.transformer.tokenizer
    own = set(found.encoding.ids)
    words = tuple(
        ExpandedWord(n, tokenizer.readable(n), float(found.weights[n]), int(found.tokens[n]), n in own)
        for n in np.argsort(-found.weights, kind="stable").tolist()
        if found.weights[n] > 0
    )
    n_prompt = len(model.transformer.prompts.of(role))
    return ExpandedText(placed(found.encoding, model.transformer, n_prompt), words)


def placed(read: Encoding, model: TokenReader, n_prompt: int = 0) -> tuple[PlacedToken, ...]:
    """Return tokens with their characters in a text behind a prompt of ``n_prompt`` characters."""
    return tuple(
        PlacedToken(name, max(start - n_prompt, 0), max(end - n_prompt, 0))
        for name, (start, end) in zip(model.tokenizer.readable_tokens(read), read.offsets, strict=True)
    )


def shared_words(question: ExpandedText, passage: ExpandedText) -> list[SharedWord]:
    """Return the words of both texts, what adds most first: together they add the whole score."""
    read = {each.number: each for each in passage.words}
    shared = [SharedWord(each, read[each.number]) for each in question.words if each.number in read]
    return sorted(shared, key=lambda each: -each.adds)


@dataclass(frozen=True)
class TokenMatches:
    """The tokens of question and passage, and the cosine of each pair: ``(n_question, n_passage)``."""

    question: tuple[PlacedToken, ...]
    passage: tuple[PlacedToken, ...]
    cosines: Array = field(repr=False)

    @property
    def best(self) -> Array:
        """The passage's token that matches each of the question best: ``(n_question,)``."""
        return self.cosines.argmax(axis=1)

    @property
    def score(self) -> float:
        """The sum of the best matches."""
        return float(self.cosines.max(axis=1).sum())


def token_matches(model: MultiVectorEncoder | Encoder, question: str, passage: str) -> TokenMatches:
    """Compare the tokens of two texts, by a late-interaction model, or by an encoder's own token vectors."""
    if isinstance(model, Encoder):
        first, second = (model.read(text) for text in (question, passage))
        asked, found = (unit_vectors([each.ids], model) for each in (first, second))
        return TokenMatches(placed(first, model), placed(second, model), asked @ found.T)
    [asked], [found] = model.vectors([question], "query"), model.vectors([passage])
    return TokenMatches(
        tuple(model.placed_tokens(question, "query")),
        tuple(model.placed_tokens(passage, "document")),
        asked @ found.T,
    )
