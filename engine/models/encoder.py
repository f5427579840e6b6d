"""The encoder: one vector for each text, as in sentence-transformers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, overload
from warnings import warn

import numpy as np

from ..errors import InputError, MadeByMethod, check_choice, check_several
from ..layers.norm import l2_normalize
from ..layers.pooling import POOLINGS, TokenStates, idf
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from ..progress import progress
from ..trace import MAX_TRACE_BYTES, Trace, check_trace
from ..weights.catalog import DEFAULT_ENCODER
from ..weights.fetch import Progress
from ..weights.tensors import damaged_files
from ..wording import counted
from .bert import EncoderConfig, EncoderWeights
from .embedding_head import MODEL_DEFAULT, SIMILARITIES, EmbeddingHead, check_dimensions, check_widths
from .fingerprint import parts_digest
from .multi_vector import MultiVectorEncoder
from .parallel import run_packs
from .precision import in_precision
from .prompts import Prompts, Role
from .reranker import Reranker
from .sentence_transformer_folder import read_folder
from .sparse_encoder import SparseEncoder
from .streaming import VectorSpool, each_once
from .token_reader import TokenReader
from .token_states import pooled, token_states
from .transformer import model_folder, prepared, read_transformer

BATCH_TOKENS = 1024  # of a pack, the texts that one core reads at once
IDF_TEXTS = 4096  # whose tokens are counted at a time
# Options that sentence-transformers has besides those of `Encoder.encode`, and why they do nothing here.
WITHOUT_EFFECT = {
    "batch_size": "a core reads as many texts at once as fit",
    "chunk_size": "texts are divided among the cores",
    "convert_to_numpy": "vectors are NumPy arrays",
    "convert_to_tensor": "vectors are NumPy arrays; torch.from_numpy makes tensors of them",
    "device": "the engine computes on the processor",
    "output_value": "these are vectors of texts; Encoder.trace has those of tokens",
    "pool": "all cores are used",
    "precision": "vectors are float32",
}


@dataclass(frozen=True)
class Encoder(MadeByMethod, TokenReader):
    """An encoder, which turns each text into one vector.

    Attributes
    ----------
    tokenizer
        A `TextTokenizer`.
    max_tokens
        Default limit of the tokens read of a text, [CLS] and [SEP] included; at most
        ``config.max_positions``.
    compiled
        Use compiled kernels as soon as they are loaded, if numba is installed.
    idf
        Weight of every token in a corpus, ``(vocab_size,)``: see `with_idf`.
    head
        From the tokens of the last layer to a text's vector, as the model's maker set it.
    prompts
        The texts that the model was trained to read before questions and documents.
    model_type
        Its family, a key of `FAMILIES`.
    reranker
        The cross-encoder that reorders what a search with this encoder finds, if one is loaded.
    sparse, multi_vector
        The second models of a search, as in `SECOND_MODELS`, if they are loaded.
    precision
        Of the layers, a key of `PRECISIONS`: see `with_precision`.
    """

    sets_limit: ClassVar[bool] = True
    block_texts: ClassVar[int] = 64  # at which two threads are as fast as at a thousand

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    tokenizer: Any
    max_tokens: int
    compiled: bool = False
    idf: Array | None = field(default=None, repr=False)
    head: EmbeddingHead = field(default_factory=EmbeddingHead, repr=False)
    prompts: Prompts = field(default_factory=Prompts, repr=False)
    model_type: str = "bert"
    reranker: Reranker | None = field(default=None, repr=False)
    sparse: SparseEncoder | None = field(default=None, repr=False)
    multi_vector: MultiVectorEncoder | None = field(default=None, repr=False)
    precision: str = "float32"

    @classmethod
    def load(
        cls,
        source: str | Path = DEFAULT_ENCODER,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
        precision: str = "float32",
    ) -> "Encoder":
        """Load an encoder from a known name, a folder or a Hub id.

        Parameters
        ----------
        source
            A name of ``engine.weights.catalog``, a folder with config.json, model.safetensors and
            tokenizer.json, or a Hugging Face id. Files of sentence-transformers are read as the library
            reads them: see `engine.models.sentence_transformer_folder`.
        dtype
            Precision of the weights and so of every result.
        compiled
            Use compiled kernels (float32 only). They are loaded in the background; until then, or
            without numba, NumPy runs. The two differ by float32 rounding.
        on_progress
            Called with bytes done and bytes in all while downloading.
        precision
            As in `with_precision`.

        Raises
        ------
        ModelUnavailableError
            The model cannot be found or downloaded.
        ModelFileError
            Its files are damaged, incomplete, or of another architecture.
        InputError
            There is no such precision, or 8 bits are asked for with another ``dtype`` than float32.
        """
        compiled = prepared(compiled, dtype)
        folder = model_folder(source, "an encoder", on_progress)
        with damaged_files(folder):
            files = read_folder(folder, np.dtype(dtype))
            own, _ = read_transformer(source, files.model, np.dtype(dtype), compiled, files.settings)
            check_widths(files.head, own.config.d_model, folder)
        encoder = cls(
            own.name,
            own.config,
            own.weights,
            own.tokenizer,
            own.max_tokens,
            compiled,
            head=files.head,
            prompts=files.prompts,
            model_type=own.model_type,
        )
        return encoder.with_precision(precision)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the weights and of every result."""
        return self.weights.token_table.dtype

    @property
    def as_encoder(self) -> "Encoder":
        """The encoder itself, None of a model without token vectors: see `embedding_model.Model`."""
        return self

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of everything that vectors depend on, but for prompts, head and weights of `with_idf`.

        Two folders with the same weights, configuration and tokenizer have one fingerprint.
        """
        parts = parts_digest(self.weights, self.tokenizer)
        return sha256(f"{self.config!r} {self.compiled} {parts}".encode()).hexdigest()

    @property
    def is_causal(self) -> bool:
        """Whether attention is causal: a token sees only those before it."""
        return bool(self.config.is_causal)

    @property
    def pooling(self) -> str:
        """The strategy that the model was trained for, "own" if it is more than one of `POOLINGS`."""
        return self.head.pooling

    @property
    def similarity_fn_name(self) -> str:
        """The measure that the model was made for, a key of `SIMILARITIES`."""
        return self.head.similarity

    def similarity(self, first: Array, second: Array) -> Array:
        """Compare vectors ``(n, d)`` and ``(m, d)``, or single ones, by the model's measure: ``(n, m)``."""
        first, second = np.atleast_2d(first), np.atleast_2d(second)
        kinds = {first.dtype.kind, second.dtype.kind}
        if first.ndim != 2 or first.shape[1:] != second.shape[1:] or kinds != {"f"}:
            shapes = f"{first.dtype} {first.shape} and {second.dtype} {second.shape}"
            raise InputError(f"{shapes} cannot be compared: give vectors of one model, as of `encode`")
        return SIMILARITIES[self.similarity_fn_name].function(first, second)

    def width(self, pooling: str | None = None, dimensions: int | None = None) -> int:
        """Length of the vectors of a pooling, or of those cut to ``dimensions``."""
        if pooling not in (None, MODEL_DEFAULT):
            return dimensions or self.config.d_model
        return dimensions or self.head.dimensions or self.head.width(self.config.d_model)

    def with_idf(self, texts: Sequence[str], on_progress: Progress | None = None) -> "Encoder":
        """Return this encoder with the idf of every token in a corpus, for pooling ``"idf"``.

        It is ``ln((1 + N) / (1 + df))`` for a token in ``df`` of the ``N`` texts, which are counted whole,
        without the token limit. ``on_progress`` is called with texts counted and in all.
        """
        check_several(texts)
        frequency = np.zeros(self.config.vocab_size, int)
        for start in range(0, len(texts), IDF_TEXTS):
            if on_progress is not None:
                on_progress(start, len(texts))
            held = chain.from_iterable(map(set, self.tokenizer.ids_batch(texts[start : start + IDF_TEXTS])))
            frequency += np.bincount(np.fromiter(held, int), minlength=self.config.vocab_size)
        return replace(self, idf=idf(frequency, len(texts)).astype(self.dtype))

    @overload
    def encode(
        self, texts: str | Sequence[str], pooling: str | None = ..., *args: Any, **options: Any
    ) -> Array: ...

    @overload
    def encode(
        self, texts: str | Sequence[str], pooling: list[str], *args: Any, **options: Any
    ) -> dict[str, Array]: ...

    def encode(
        self,
        texts: str | Sequence[str],
        pooling: str | list[str] | None = None,
        normalize_embeddings: bool | None = None,
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
        show_progress_bar: bool = False,
        **without_effect: Any,
    ) -> Array | dict[str, Array]:
        """Embed texts, or one.

        Without options, the vectors are those of ``SentenceTransformer(source).encode(texts)``; options that
        both have are named as there.

        Parameters
        ----------
        texts
            The texts, each cut at ``max_tokens``; or one text.
        pooling
            None for the model's own head: its pooling and the modules behind it. Else a key of `POOLINGS` or
            ``"own"``, or a list of them, for a single pass through the layers.
        normalize_embeddings
            Scale each vector to length 1, so that inner products are cosines. None for the model's own way
            where ``pooling`` is None, and else for True.
        max_tokens
            Tokens read of each text, special tokens and prompt included; None for the model's own limit.
        on_progress
            Called with texts done and texts in all.
        prompt_name
            Name of the model's prompt to put before each text, "" for none; None for its default, if any.
        prompt
            The prompt itself, in place of a name.
        truncate_dim
            Cut each vector to its first dimensions, for models trained for it (Kusupati et al. 2022);
            ``normalize_embeddings=True`` scales what is left to length 1.
        show_progress_bar
            Show on standard error how many texts are done.
        without_effect
            The other options of sentence-transformers, such as ``batch_size`` and ``convert_to_tensor``, are
            taken with a warning that they have no effect.

        Returns
        -------
        Array or dict
            ``(n_texts, d)``, or ``(d,)`` of one text, or one such array per strategy where several were asked
            for; ``d`` is `width`.

        Raises
        ------
        InputError
            Something else among the texts, an unknown strategy, prompt or option, or a number out of its
            range.
        """
        for name in without_effect:
            check_choice("option", name, WITHOUT_EFFECT)
            warn(f"{name} has no effect: {WITHOUT_EFFECT[name]}", stacklevel=2)
        one = isinstance(texts, str)
        if not one:
            check_several(texts)
        texts = [texts] if isinstance(texts, str) else list(texts)
        label = f"Embedding {counted(len(texts), 'text')}"

        def report(done: int, total: int) -> None:
            for show in shown:
                show(done, len(texts))

        with progress(label) if show_progress_bar else nullcontext() as bar:
            shown = [each for each in (on_progress, bar) if each is not None]
            blocks = list(
                self.encode_stream(
                    texts,
                    pooling,
                    normalize_embeddings,
                    max_tokens,
                    report,
                    prompt_name=prompt_name,
                    prompt=prompt,
                    truncate_dim=truncate_dim,
                )
            )

        def joined(parts: list[Array], strategy: str | None) -> Array:
            rows = np.concatenate([np.empty((0, self.width(strategy, truncate_dim)), self.dtype), *parts])
            return rows[0] if one else rows

        if not isinstance(pooling, list):
            return joined(blocks, pooling)
        return {strategy: joined([block[strategy] for block in blocks], strategy) for strategy in pooling}

    def with_prompts(self, use: str) -> "Encoder":
        """Return this encoder with its prompts or none, by a key of `PROMPT_USES`."""
        return replace(self, prompts=self.prompts.used(use))

    def with_precision(self, precision: str) -> "Encoder":
        """Return this float32 encoder, with its reranker, in a precision: a key of `PRECISIONS`, or "auto".

        "int8" rounds matrices and activations of the layers to 8 bits (`Int8Matrix`); "auto" is int8 where
        the processor multiplies bytes, and else float32. A traced
        pass rounds, too; its results differ from those of the compiled pass by less than the rounding error.

        Raises
        ------
        InputError
            There is no such precision, or this encoder's weights are not float32.
        """
        encoder = in_precision(self, precision)
        if self.reranker is None or encoder is self:
            return encoder
        return replace(encoder, reranker=self.reranker.with_precision(precision))

    def encode_as(self, role: Role, texts: str | Sequence[str], *args: Any, **options: Any) -> Any:
        """Embed the questions or the documents of a search; the rest is as in `encode`."""
        name = self.prompts.query if role == "query" else self.prompts.document
        return self.encode(texts, *args, **{"prompt_name": name, **options})

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> Array:
        """Embed questions: `encode` with the model's prompt for questions, or none if it has none."""
        vectors: Array = self.encode_as("query", texts, **options)
        return vectors

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> Array:
        """Embed documents: `encode` with the model's prompt for documents, or none if it has none."""
        vectors: Array = self.encode_as("document", texts, **options)
        return vectors

    def encode_stream(
        self,
        texts: Iterable[str],
        pooling: str | list[str] | None = None,
        normalize_embeddings: bool | None = None,
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
    ) -> Iterator[Any]:
        """Embed very many texts block by block, in order.

        Texts are taken from the iterator as they are needed, and equal texts are embedded once: for every
        distinct text, some 150 bytes stay in memory and its vector in a temporary file. The work stops
        when the iteration does.

        Parameters
        ----------
        texts, pooling, normalize_embeddings, max_tokens, prompt_name, prompt, truncate_dim
            As in `encode`; ``texts`` may be a generator.
        on_progress
            Called with texts done and 0, since their total is unknown.

        Yields
        ------
        Array or dict
            What `encode` returns for the next texts, a thousand or so of them.
        """
        check_several(texts)
        strategies = self.check_poolings(pooling)
        limit = self.token_limit(max_tokens)
        before = self.prompts.text(prompt_name) if prompt is None else prompt
        n_prompt = self.prompt_length(before, limit)
        length_1 = True if normalize_embeddings is None and pooling is not None else normalize_embeddings
        for strategy in strategies:
            check_dimensions(truncate_dim, self._full_width(strategy))

        def embed(new_texts: list[str], report: Progress) -> Array:
            """Embed a block's new texts: ``(n_texts, widths of all strategies)``."""
            prompted = [before + text for text in new_texts] if before else new_texts
            sequences = [self.truncate(ids, limit) for ids in self.tokenizer.ids_batch(prompted)]
            vectors = self._embed(sequences, strategies, n_prompt, report)
            return np.hstack([finished(vectors[s], s) for s in strategies])

        def finished(rows: Array, strategy: str) -> Array:
            cut = self._finish(rows, strategy, length_1, None)[:, :truncate_dim]
            return l2_normalize(cut) if truncate_dim and length_1 else cut

        widths = [self.width(strategy, truncate_dim) for strategy in strategies]
        blocks = each_once(texts, embed, VectorSpool(sum(widths), self.dtype), on_progress)
        if not isinstance(pooling, list):
            return blocks
        borders = np.cumsum(widths)[:-1]
        return (dict(zip(strategies, np.split(rows, borders, axis=1), strict=True)) for rows in blocks)

    def encode_ids(
        self,
        sequences: Sequence[Sequence[int]],
        pooling: str | list[str] | None = None,
        on_progress: Progress | None = None,
        *,
        n_prompt: int = 0,
        dimensions: int | None = None,
    ) -> Any:
        """Embed texts that are tokenized already; the rest is as in `encode`.

        ``n_prompt`` tokens at the start of each, as `prompt_length` counts them, are not pooled.
        """
        strategies = self.check_poolings(pooling)
        for strategy in strategies:
            check_dimensions(dimensions, self._full_width(strategy))
        vectors = self._embed(sequences, strategies, n_prompt, on_progress)
        length_1 = None if pooling is None else True
        finished = {
            strategy: self._finish(v, strategy, length_1, dimensions) for strategy, v in vectors.items()
        }
        return finished if isinstance(pooling, list) else finished[strategies[0]]

    def _embed(
        self,
        sequences: Sequence[Sequence[int]],
        strategies: Sequence[str],
        n_prompt: int,
        on_progress: Progress | None,
    ) -> dict[str, Array]:
        """Vectors of each strategy, neither scaled nor cut; the first ``n_prompt`` tokens are not pooled."""
        vectors = {s: np.empty((len(sequences), self._full_width(s)), self.dtype) for s in strategies}

        def embed(batch: slice) -> None:
            states = self.token_states(sequences[batch], strategies)
            for strategy in strategies:
                vectors[strategy][batch] = [
                    self.pool(each, strategy, without_first(each, n_prompt)) for each in states
                ]

        run_packs(embed, sequences, BATCH_TOKENS, on_progress)
        return vectors

    def _full_width(self, strategy: str) -> int:
        """Length of a strategy's vectors before they are cut."""
        return self.head.width(self.config.d_model) if strategy == MODEL_DEFAULT else self.config.d_model

    def _finish(self, vectors: Array, strategy: str, length_1: bool | None, dimensions: int | None) -> Array:
        """Cut vectors ``(n_texts, width)``, and scale them to length 1; None is the model's own way."""
        own_cut = self.head.dimensions if strategy == MODEL_DEFAULT else None
        if length_1 is None and dimensions is None and self.head.normalize:
            return l2_normalize(vectors)[:, :own_cut]  # in this order, as the library does
        cut = vectors[:, : dimensions or own_cut]
        return l2_normalize(cut) if (self.head.normalize if length_1 is None else length_1) else cut

    def token_states(
        self, sequences: Sequence[Sequence[int]], strategies: Sequence[str] = ("mean",)
    ) -> list[TokenStates]:
        """Run a few tokenized texts as one pack, and keep the inputs of the strategies."""
        own = self.head.poolings
        strategies = [each for s in strategies for each in (own if s == MODEL_DEFAULT else [s])]
        return token_states(
            sequences, strategies, self.weights, self.config, no_trace, self.ops, family=self.family
        )

    def pool(self, states: TokenStates, strategy: str, mask: Array | None = None) -> Array:
        """Pool one text's tokens, or those in the mask ``(n_tokens,)``: ``(d_model,)``, or the head's width.

        Not scaled to length 1, and not cut.
        """
        if strategy == MODEL_DEFAULT:
            return self.head.vector(lambda each: self.pool(states, each, mask))
        return pooled(states, strategy, self.weights.pooler, self.idf, mask)

    @property
    def poolings(self) -> tuple[str, ...]:
        """The strategies whose weights this encoder has."""
        missing = {"pooler": self.weights.pooler is None, "idf": self.idf is None}
        return tuple(name for name, each in POOLINGS.items() if not missing.get(each.needs or ""))

    def check_poolings(self, pooling: str | Sequence[str] | None) -> list[str]:
        """Return the strategies of a ``pooling`` as in `encode`.

        Raises
        ------
        InputError
            A strategy is unknown, or this encoder lacks its weights; or there is none.
        """
        pooling = MODEL_DEFAULT if pooling is None else pooling
        strategies = [pooling] if isinstance(pooling, str) else list(pooling)
        if not strategies:
            raise InputError(f"no pooling was asked for: give one or more of {', '.join(POOLINGS)}")
        for strategy in strategies:
            if strategy == MODEL_DEFAULT:
                continue
            check_choice("pooling", strategy, (*POOLINGS, MODEL_DEFAULT))
            if POOLINGS[strategy].needs == "pooler" and self.weights.pooler is None:
                raise InputError("the model has no pooler weights: use mean or cls")
            if POOLINGS[strategy].needs == "idf" and self.idf is None:
                raise InputError(
                    f"pooling {strategy!r} weighs tokens by a corpus: make an encoder with with_idf(texts)"
                )
        return strategies

    def trace_shapes(self, n_tokens: int, pooling: str | None = None) -> Shapes:
        """Name and shape of every array in the trace of a text, besides its tokens and ids."""
        shapes: Shapes = self.family.trace_shapes(self.config, n_tokens)
        shapes |= {f"pooled.{strategy}": (self.config.d_model,) for strategy in self.poolings}
        own = (self.head.width(self.config.d_model),)
        if self.pooling == MODEL_DEFAULT:
            shapes[f"pooled.{MODEL_DEFAULT}"] = own
        return shapes | {"normalized": own if pooling in (None, MODEL_DEFAULT) else (self.config.d_model,)}

    def trace(
        self,
        text: str,
        pooling: str | None = None,
        max_tokens: int | None = None,
        pair: str | None = None,
        keep: Sequence[str] = ("*",),
        max_bytes: int = MAX_TRACE_BYTES,
    ) -> Trace:
        """Run one text and keep its intermediates.

        The names are ``tokens``, ``ids``, ``embeddings.*``, ``layers.{i}.attention.*``,
        ``layers.{i}.ffn.*``, ``layers.{i}.output``, ``pooled.{strategy}`` for every strategy, and
        ``normalized`` for ``pooling``, always of length 1. Per-head arrays are
        ``(n_heads, n_tokens, d_head)`` or ``(n_heads, n_query, n_key)``.

        Parameters
        ----------
        text
            The text, cut at ``max_tokens``.
        pooling, max_tokens
            As in `encode`.
        pair
            A second text, read with the first as segment 1 behind a [SEP].
        keep
            Patterns of the names to keep, such as ``layers.3.*``.
        max_bytes
            The most that the trace may hold.

        Raises
        ------
        InputError
            The trace would be larger than ``max_bytes``, a pattern matches nothing, or an argument
            is out of its range.
        ContextLengthError
            A pair has more tokens than the limit.
        """
        self.check_poolings(pooling)
        encoding = self.read(text, pair, max_tokens)
        check_trace(self.trace_shapes(len(encoding), pooling), keep, self.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array(encoding.tokens))
        trace("ids", np.array(encoding.ids))
        self.inspect(encoding.ids, trace, pooling, encoding.type_ids)
        return trace

    def inspect(
        self,
        ids: Sequence[int],
        trace: Tracer,
        pooling: str | None = None,
        type_ids: Sequence[int] | None = None,
    ) -> Array:
        """Run one text under a tracer, with every pooling; return its normalised vector."""
        types = None if type_ids is None else [type_ids]
        [states] = token_states(
            [ids], self.poolings, self.weights, self.config, trace, type_ids=types, family=self.family
        )
        strategies = [*self.poolings, *([MODEL_DEFAULT] if self.pooling == MODEL_DEFAULT else [])]
        vectors = {
            strategy: trace(f"pooled.{strategy}", self.pool(states, strategy)) for strategy in strategies
        }
        chosen = self.pooling if pooling is None or pooling == MODEL_DEFAULT else pooling
        return trace("normalized", l2_normalize(vectors[chosen]))


def without_first(states: TokenStates, n_tokens: int) -> Array | None:
    """Return the mask ``(n_tokens,)`` of a text without its first tokens, or None for all tokens."""
    return np.arange(len(states.ids)) >= n_tokens if n_tokens else None


def check_float32(encoder: Encoder, work: str) -> None:
    """Raise `InputError` for an encoder whose matrices are rounded, which ``work`` cannot change."""
    if encoder.precision != "float32":
        raise InputError(f"{work} needs the weights in float32: choose that, not {encoder.precision}")


def check_bert(encoder: Encoder, work: str) -> None:
    """Raise `InputError` unless an encoder has BERT's own architecture, which ``work`` needs."""
    if encoder.model_type != "bert":
        raise InputError(
            f"the encoder is a {encoder.model_type} model, and {work} knows only BERT: choose one of BERT"
        )
