"""Late interaction: a vector for every token, and the best match of each (ColBERT, Khattab & Zaharia 2020).

A marker behind [CLS] tells questions from documents. A question is filled up with [MASK] to a fixed length,
whose vectors are words that the model adds to it. A linear layer makes the vectors short, and those of a
document's punctuation are left out. The score is the sum, over the question's tokens, of the largest cosine
with a token of the document.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import check_several
from ..layers.attention import attention, window_mask
from ..layers.norm import l2_normalize
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Tracer, no_trace
from ..weights.fetch import Progress
from ..weights.tensors import damaged_files
from .embedding_head import Dense
from .multi_vector_folder import LENGTHS, Expansion, Settings, TextForm, read_layers, read_modules
from .parallel import run_packs, run_parallel
from .prompts import Role
from .sentence_transformer_folder import read_transformer_settings
from .transformer import Transformer, model_folder, prepared, read_transformer

T = TypeVar("T")

BATCH_TOKENS = 1024  # of a pack, the documents that one core reads at once


class PlacedToken(NamedTuple):
    """A token, and its characters ``[start, end)`` in a text; none for one that stands for none of it."""

    token: str
    start: int
    end: int


@dataclass(frozen=True)
class MultiVectorEncoder:
    """A late-interaction model: `vectors` of texts, one a token, and `score`."""

    transformer: Transformer
    dense: tuple[Dense, ...] = field(repr=False)
    query: TextForm
    document: TextForm
    expansion: Expansion | None
    normalize: bool = True

    @classmethod
    def load(
        cls,
        source: str | Path,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
    ) -> "MultiVectorEncoder":
        """Load a model from a folder or a Hub id; arguments are those of `Encoder.load`.

        The folder is one of ColBERT's own library, of PyLate, a `MultiVectorEncoder` of
        sentence-transformers, or BGE-M3's with its ``colbert_linear``.
        """
        compiled = prepared(compiled, dtype)
        folder = model_folder(source, "a late-interaction model", on_progress)
        with damaged_files(folder):
            modules = read_modules(folder)
            base = folder / modules[0][1] if modules else folder
            of_transformer = read_transformer_settings(base, **dict.fromkeys(LENGTHS))
            transformer, tensors = read_transformer(source, base, np.dtype(dtype), compiled, of_transformer)
            settings = Settings.read(folder, modules, of_transformer)
            dense = read_layers(folder, modules, tensors, transformer.config.d_model, np.dtype(dtype))
            query, document, expansion = settings.forms(transformer, base)
            return cls(transformer, dense, query, document, expansion, settings.normalize)

    @property
    def name(self) -> str:
        """The folder or Hub id that it was loaded from."""
        return self.transformer.name

    @property
    def max_tokens(self) -> int:
        """Tokens that are read of a document."""
        return self.document.max_tokens

    @property
    def weights(self) -> tuple[object, ...]:
        """All parameters."""
        return self.transformer.weights, *(each.parameters for each in self.dense)

    def vectors(
        self, texts: Sequence[str], role: Role = "document", on_progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of each text's tokens that count: ``(n_tokens, width)`` each."""
        check_several(texts)
        sequences, form = self.ids(texts, role), getattr(self, role)
        found: list[Any] = [None] * len(sequences)

        def keep(place: int, vectors: Array) -> None:
            kept = ~np.isin(sequences[place], sorted(form.skipped))
            kept[: form.n_skipped] = False
            found[place] = self.project(vectors)[kept]

        def read(batch: slice) -> None:
            for place, vectors in enumerate(self.transformer.vectors(sequences[batch]), batch.start):
                keep(place, vectors)

        def expand(place: int) -> None:
            keep(place, self.expanded(sequences, place))

        if role == "query" and self.expansion is not None:
            for _ in run_parallel(expand, range(len(sequences))):
                pass
        else:
            run_packs(read, sequences, BATCH_TOKENS, on_progress)
        return found

    def expanded(self, sequences: list[list[int]], place: int) -> Array:
        """Add the tokens that fill up a question to its ids, and read it: ``(n_tokens, d_model)``."""
        expansion, ids = self.expansion, sequences[place]
        assert expansion is not None, "checked before"
        sequences[place] = [*ids, *[expansion.token] * (expansion.length - len(ids))]
        ops = None if expansion.attended else first_keys(len(ids))
        return self.transformer.vectors([sequences[place]], ops)[0]

    def project(self, vectors: Array) -> Array:
        """Send token vectors through the linear layers, and scale them to length 1: ``(n_tokens, width)``."""
        for layer in self.dense:
            vectors = layer(vectors)
        return l2_normalize(vectors) if self.normalize else vectors

    def ids(self, texts: Sequence[str], role: Role) -> list[list[int]]:
        """Return the ids of questions or documents, with their marker and cut, but not filled up."""
        form: TextForm = getattr(self, role)
        marker = [] if form.marker is None else [form.marker]
        read = self.transformer.tokenizer.ids_batch([form.prefix + text for text in texts])
        return [self._framed(ids, marker, form) for ids in read]

    def _framed(self, tokens: Sequence[T], marker: list[T], form: TextForm) -> list[T]:
        """Put the marker behind the first special tokens, and cut what is between these and the last."""
        before, own, after = self.transformer.tokenizer.around(tokens)
        room = form.max_tokens - len(before) - len(after)
        return [*before, *[*marker, *own][:room], *after]

    def placed_tokens(self, text: str, role: Role) -> list[PlacedToken]:
        """Return the tokens that have a vector, in the order of `vectors`, with their characters."""
        form, tokenizer = getattr(self, role), self.transformer.tokenizer
        encoding, n_prefix = tokenizer.encode(form.prefix + text), len(form.prefix)
        names, places = tokenizer.readable_tokens(encoding), encoding.offsets
        rows = [
            (number, PlacedToken(name, max(start - n_prefix, 0), max(end - n_prefix, 0)))
            for number, name, (start, end) in zip(encoding.ids, names, places, strict=True)
        ]
        added = [number for number in (form.marker, self.expansion and self.expansion.token) if number]
        nowhere = {number: (number, PlacedToken(tokenizer.readable(number), 0, 0)) for number in added}
        rows = self._framed(rows, [] if form.marker is None else [nowhere[form.marker]], form)
        if role == "query" and self.expansion is not None:
            rows += [nowhere[self.expansion.token]] * (self.expansion.length - len(rows))
        return [token for number, token in rows[form.n_skipped :] if number not in form.skipped]

    def score(self, question: str, passages: Sequence[str], on_progress: Progress | None = None) -> Array:
        """Score passages for a question: the sum of the best matches of its tokens, ``(n_passages,)``."""
        [asked] = self.vectors([question], "query")
        return late_scores(asked, self.vectors(passages, "document", on_progress))


def late_scores(question: Array, passages: Sequence[Array]) -> Array:
    """``sum_i max_j q_i · k_j``: ``(n_query, d)``, and ``(n_tokens, d)`` a passage, to ``(n_passages,)``."""
    return np.array([(question @ each.T).max(axis=1).sum() for each in passages], question.dtype)


def first_keys(n: int) -> Primitives:
    """Return NumPy's functions with an attention in which every token sees only the first ``n`` tokens."""

    def attend(
        query: Array, key: Array, value: Array, mask: Array | None = None, trace: Tracer = no_trace
    ) -> Array:
        return attention(query, key[:, :n], value[:, :n], None if mask is None else mask[..., :n], trace)

    def attend_near(
        query: Array, key: Array, value: Array, before: int, after: int, trace: Tracer = no_trace
    ) -> Array:
        places = np.arange(query.shape[1])
        seeing = places < n + before  # of the others the context is 0
        mask = window_mask(places[seeing], places[:n], before, after, query.dtype)
        context = np.zeros_like(query)
        context[:, seeing] = attention(query[:, seeing], key[:, :n], value[:, :n], mask, trace)
        return context

    return replace(NUMPY, attention=attend, windowed_attention=attend_near)
