"""Learned sparse retrieval: a text as weights of the words of a vocabulary (SPLADE, Formal et al. 2021).

A masked language model says at each token which words fit there. The weight of a word is the largest of
``log(1 + ReLU(logit))`` over the tokens, so most are 0, and words that the text does not hold may have one:
the text is expanded by them. As of words, an inverted index finds the texts with the largest inner product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelFileError, check_several
from ..layers.activation import ACTIVATIONS, relu
from ..layers.linear import Linear, linear
from ..layers.norm import LayerNorm, layer_norm
from ..layers.tracing import Array
from ..tokenizers.encoding import Encoding
from ..weights.catalog import DEFAULT_SPARSE
from ..weights.fetch import Progress
from ..weights.tensors import TensorReader, config_activation, config_size, damaged_files, read_json
from .encoder_families import FAMILIES
from .fingerprint import arrays_in, parts_digest
from .m3_heads import SPARSE, TokenHead, head_file, read_token_head
from .parallel import run_packs
from .prompts import Role
from .sentence_transformer_folder import list_modules, read_settings, read_transformer_settings
from .transformer import Transformer, model_folder, prepared, read_transformer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BATCH_TOKENS = 1024  # of a pack, the texts that one core reads at once
MODULE_KINDS = ("Transformer", "MLMTransformer", "SpladePooling")


@dataclass(frozen=True)
class WordHead:
    """From token vectors to a logit for each word of the vocabulary: ``E norm(f(W x + b)) + c``."""

    dense: Linear  # ``(d_model, d_model)``
    activation: str  # a key of `ACTIVATIONS`
    norm: LayerNorm
    words: Linear  # with the table E, ``(vocab_size, d_model)``
    eps: float

    def strongest(self, vectors: Array, ids: Array) -> Array:
        """Return the token, a place in the text, that gives each word most: ``(vocab_size,)``."""
        places: Array = self.logits(vectors).argmax(axis=0)
        return places

    def logits(self, vectors: Array) -> Array:
        """``(n_tokens, d_model)`` to ``(n_tokens, vocab_size)``."""
        inner = ACTIVATIONS[self.activation].forward(linear(vectors, *self.dense))
        return linear(layer_norm(inner, *self.norm, self.eps), *self.words)


@dataclass(frozen=True)
class Expansion:
    """The weights of a text's words ``(vocab_size,)``, and the token that gives each most, a place in it."""

    encoding: Encoding
    weights: Array = field(repr=False)
    tokens: Array = field(repr=False)  # ``(vocab_size,)``


@dataclass(frozen=True)
class SparseEncoder:
    """A learned sparse model."""

    transformer: Transformer
    head: WordHead | TokenHead = field(repr=False)
    # whether a word's weights are summed over the tokens, as in the first version of SPLADE
    sums: bool = False
    twice: bool = False  # whether the weights are ``log(1 + log(1 + ReLU(logit)))`` (Shen et al. 2025)
    most: int | None = None  # words that a text keeps, those with the largest weights; None for all

    @classmethod
    def load(
        cls,
        source: str | Path = DEFAULT_SPARSE,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
    ) -> "SparseEncoder":
        """Load a model from a known name, a folder or a Hub id; arguments are those of `Encoder.load`.

        The folder is a masked language model of transformers, a `SparseEncoder` of sentence-transformers, or
        BGE-M3's with its ``sparse_linear``.
        """
        compiled = prepared(compiled, dtype)
        folder = model_folder(source, "a learned sparse model", on_progress)
        with damaged_files(folder):
            if (of_m3 := head_file(folder, SPARSE)) is not None:
                own = read_transformer_settings(folder)
                transformer, _ = read_transformer(source, folder, np.dtype(dtype), compiled, own)
                return cls(transformer, read_token_head(of_m3, transformer))
            settings, prompts = read_settings(folder)
            if settings.get("similarity_fn_name") not in (None, "dot"):
                raise ModelFileError(
                    f"{folder} compares by {settings['similarity_fn_name']!r}: only the dot product is read"
                )
            modules = list_modules(folder, MODULE_KINDS)
            if modules and [kind == "SpladePooling" for kind, _ in modules] != [False, True]:
                raise ModelFileError(
                    f"{folder} has the modules {', '.join(kind for kind, _ in modules)}: only a masked "
                    "language model, then SpladePooling are read"
                )
            base = folder / modules[0][1] if modules else folder
            pooling = read_json(folder / modules[1][1] / "config.json") if modules else {}
            transformer, tensors = read_transformer(
                source,
                base,
                np.dtype(dtype),
                compiled,
                read_transformer_settings(base, transformer_task=(None, "fill-mask")),
                prompts,
            )
            head = read_word_head(transformer, tensors, read_json(base / "config.json"), base)
            most = settings.get("max_active_dims")
            return cls(
                transformer,
                head,
                one_of(pooling, "pooling_strategy", ("max", "sum"), folder) == "sum",
                one_of(pooling, "activation_function", ("relu", "log1p_relu"), folder) == "log1p_relu",
                None if most is None else config_size(settings, "max_active_dims"),
            )

    @property
    def name(self) -> str:
        """The name, folder or Hub id that it was loaded from."""
        return self.transformer.name

    @property
    def max_tokens(self) -> int:
        """Tokens that are read of a text."""
        return self.transformer.max_tokens

    @property
    def weights(self) -> tuple[object, ...]:
        """All parameters."""
        return self.transformer.weights, *vars(self.head).values()

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of everything that weights of words depend on."""
        transformer = self.transformer
        prompts = sorted(transformer.prompts.in_search.items())
        settings = (transformer.config, transformer.max_tokens, prompts, self.sums, self.twice, self.most)
        parts = parts_digest(transformer.weights, transformer.tokenizer)
        digest = sha256(f"{settings} {getattr(self.head, 'activation', 'token')} {parts}".encode())
        for array in arrays_in(self.head):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def encode(
        self, texts: Sequence[str], role: Role = "document", on_progress: Progress | None = None
    ) -> "csr_matrix":
        """Return the weights of the words of questions or documents: a sparse ``(n_texts, vocab_size)``.

        They are those of sentence-transformers' `SparseEncoder`. ``on_progress`` is called with texts done
        and in all.
        """
        from scipy.sparse import csr_matrix  # imported only when needed: it takes 0.1 s

        check_several(texts)
        prompted = self.transformer.prompts.before(role, texts)
        sequences = self.transformer.ids_of(prompted)
        rows: list[Any] = [None] * len(sequences)

        def run(batch: slice) -> None:
            for place, vectors in enumerate(self.transformer.vectors(sequences[batch]), batch.start):
                weights = self.word_weights(vectors, np.asarray(sequences[place]))
                words = np.flatnonzero(weights)
                rows[place] = words.astype(np.int32), weights[words]

        run_packs(run, sequences, BATCH_TOKENS, on_progress)
        shape = (len(rows), self.transformer.config.vocab_size)
        if not rows:
            return csr_matrix(shape, dtype=self.transformer.weights.token_table.dtype)
        starts = np.cumsum([0, *(len(words) for words, _ in rows)])
        words, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return csr_matrix((weights, words, starts), shape)

    def word_weights(self, vectors: Array, ids: Array) -> Array:
        """Return the weight of each word: ``(n_tokens, d_model)`` of a text to ``(vocab_size,)``."""
        if isinstance(self.head, TokenHead):
            return self.head.word_weights(vectors, ids)
        logits = self.head.logits(vectors)
        # Of the largest: both functions rise.
        weights = self._weigh(logits).sum(axis=0) if self.sums else self._weigh(logits.max(axis=0))
        if self.most is None or np.count_nonzero(weights) <= self.most:
            return weights
        kept = np.argpartition(-weights, self.most)[: self.most]
        largest = np.zeros_like(weights)
        largest[kept] = weights[kept]
        return largest

    def _weigh(self, logits: Array) -> Array:
        weights = np.log1p(relu(logits))
        return np.log1p(weights) if self.twice else weights

    def expand(self, text: str, role: Role = "document") -> Expansion:
        """Return the words of one text, and the token that each comes from; offsets count its prompt."""
        [prompted] = self.transformer.prompts.before(role, [text])
        encoding = self.transformer.read(prompted)
        [vectors] = self.transformer.vectors([encoding.ids])
        ids = np.asarray(encoding.ids)
        return Expansion(encoding, self.word_weights(vectors, ids), self.head.strongest(vectors, ids))


def read_word_head(
    transformer: Transformer, tensors: Mapping[str, Array], settings: Mapping[str, Any], folder: Path
) -> WordHead:
    """Read the head of a masked language model; without a table of its own it has that of the embeddings.

    Raises `ModelFileError` where the folder has no such head, or one of another vocabulary.
    """
    names, config = FAMILIES[transformer.model_type].words, transformer.config
    if names is None or f"{names.dense}.weight" not in tensors:
        known = [name for name, family in FAMILIES.items() if family.words]
        raise ModelFileError(
            f"{folder} has no head of a masked language model of the families {', '.join(known)}: a learned "
            "sparse model is one, such as naver/splade-cocondenser-ensembledistil"
        )
    table_name, bias_name = f"{names.words}.weight", f"{names.words}.bias"
    bias_name = bias_name if bias_name in tensors else names.bias
    for name in (table_name, bias_name):
        if name in tensors and len(tensors[name]) != config.vocab_size:
            raise ModelFileError(
                f"{folder}: the head has {len(tensors[name]):,} words, the vocabulary {config.vocab_size:,}: "
                "the files are not of one model"
            )
    table = transformer.weights.token_table
    read = TensorReader(tensors, table.dtype)
    if table_name in tensors:
        table = read.tensor(table_name, config.vocab_size, config.d_model)
    bias = read.tensor(bias_name, config.vocab_size) if bias_name in tensors else None
    return WordHead(
        read.dense(names.dense, config.d_model, config.d_model, f"{names.dense}.bias" in tensors),
        config_activation(settings, names.activation),  # GELU where the name is a function's
        read.norm(names.norm, config.d_model, f"{names.norm}.bias" in tensors),
        Linear(table, np.zeros(config.vocab_size, table.dtype) if bias is None else bias),
        config.norm_eps,
    )


def one_of(settings: Mapping[str, Any], key: str, known: Sequence[str], folder: Path) -> str:
    """Return a setting, the first of the known values where there is none."""
    value = settings.get(key, known[0])
    if value not in known:
        raise ModelFileError(f"{folder} has {key} {value!r}: only {', '.join(known)} are read")
    return str(value)
