"""The encoder: texts in, one vector each out, as sentence-transformers does it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

import numpy as np

from engine.errors import ContextLengthError, InputError, ModelFileError
from engine.kernels.primitives import NUMPY, best_primitives, prepare_compiled
from engine.layers.norm import l2_normalize
from engine.layers.pooling import POOLINGS, TokenStates, idf
from engine.layers.tracing import Array, Shapes, Tracer, no_trace
from engine.models import bert
from engine.models.bert import EncoderConfig, EncoderWeights, trace_shapes
from engine.models.parallel import run_parallel
from engine.models.streaming import VectorSpool, each_once
from engine.models.token_states import pooled, token_states
from engine.tokenizers.encoding import Encoding, check_vocab_size
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.trace import MAX_TRACE_BYTES, Trace, check_trace
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import Progress, model_path
from engine.weights.tensors import config_size, read_json, read_safetensors

T = TypeVar("T")

BATCH_TOKENS = 1024  # of a pack, the texts that one core reads at once

# Encoder families by config.json's model_type: modules with `read_config` and `read_weights`.
FAMILIES: dict[str, ModuleType] = {"bert": bert}


@dataclass(frozen=True)
class Encoder:
    """A BERT-family encoder: texts in, one vector each out.

    Attributes
    ----------
    max_tokens
        Default limit of the tokens read of a text, [CLS] and [SEP] included; at most
        ``config.max_positions``.
    compiled
        Use compiled kernels as soon as they are loaded, if numba is installed.
    idf
        Weight of every token in a corpus, ``(vocab_size,)``: see `with_idf`.
    pooling
        The strategy that the model was trained for (see `read_pooling`).
    """

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    tokenizer: WordPieceTokenizer
    max_tokens: int
    compiled: bool = False
    idf: Array | None = field(default=None, repr=False)
    pooling: str = field(default="mean", repr=False)

    @classmethod
    def load(
        cls,
        source: str | Path = DEFAULT_ENCODER,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
    ) -> "Encoder":
        """Load an encoder from a known name, a folder or a Hub id.

        Parameters
        ----------
        source
            A name of ``engine.weights.catalog``, a folder with config.json, model.safetensors and
            tokenizer.json, or a Hugging Face id.
        dtype
            Precision of the weights and so of every result.
        compiled
            Use compiled kernels (float32 only). They are loaded in the background; until then, or
            without numba, NumPy runs. The two differ by float32 rounding.
        on_progress
            Called with bytes done and bytes in all while downloading.

        Raises
        ------
        ModelUnavailableError
            The model cannot be found or downloaded.
        ModelFileError
            Its files are damaged, incomplete, or of another architecture.
        """
        compiled = compiled and np.dtype(dtype) == np.float32
        if compiled:
            prepare_compiled()
        folder = model_path(source, on_progress)
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is a file: an encoder is a folder with config.json")
        family = encoder_family(folder)
        config = family.read_config(folder)
        tensors = read_safetensors(folder / "model.safetensors")
        weights = family.read_weights(tensors, config, np.dtype(dtype))
        tokenizer = WordPieceTokenizer(folder / "tokenizer.json")
        check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
        max_tokens, pooling = read_max_tokens(folder, config), read_pooling(folder)
        return cls(str(source), config, weights, tokenizer, max_tokens, compiled, pooling=pooling)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the weights and of every result."""
        return self.weights.token_table.dtype

    def with_idf(self, texts: Sequence[str]) -> "Encoder":
        """Return this encoder with the idf of every token in a corpus, for pooling ``"idf"``.

        It is ``ln((1 + N) / (1 + df))`` for a token in ``df`` of the ``N`` texts, which are counted whole,
        without the token limit.
        """
        check_several(texts)
        frequency = np.zeros(self.config.vocab_size, np.int64)
        for ids in self.tokenizer.ids_batch(list(texts)):
            frequency[np.unique(ids)] += 1
        return replace(self, idf=idf(frequency, len(texts)).astype(self.dtype))

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or this encoder's own limit for None, checked against its positions."""
        limit = self.max_tokens if max_tokens is None else max_tokens
        shortest = self.tokenizer.n_special + 1
        if not shortest <= limit <= self.config.max_positions:
            raise InputError(
                f"max_tokens is {limit}: {self.name} takes {shortest} to {self.config.max_positions}"
            )
        return limit

    def truncate(self, tokens: Sequence[T], max_tokens: int | None = None) -> list[T]:
        """Cut a text's ids (or tokens, or offsets) at the token limit, with [SEP] kept at the end."""
        limit = self.token_limit(max_tokens)
        return list(tokens) if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]]

    @overload
    def encode(
        self,
        texts: Sequence[str],
        pooling: str = ...,
        normalize: bool = ...,
        max_tokens: int | None = ...,
        on_progress: Progress | None = ...,
    ) -> Array: ...

    @overload
    def encode(
        self,
        texts: Sequence[str],
        pooling: list[str],
        normalize: bool = ...,
        max_tokens: int | None = ...,
        on_progress: Progress | None = ...,
    ) -> dict[str, Array]: ...

    def encode(
        self,
        texts: Sequence[str],
        pooling: str | list[str] = "mean",
        normalize: bool = True,
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> Array | dict[str, Array]:
        """Embed texts.

        Parameters
        ----------
        texts
            The texts, each cut at ``max_tokens``.
        pooling
            A key of `POOLINGS`, or a list of them, for a single pass through the layers.
        normalize
            Scale each vector to length 1, so that inner products are cosines.
        max_tokens
            Tokens read of each text, [CLS] and [SEP] included; None for the model's own limit.
        on_progress
            Called with texts done and texts in all.

        Returns
        -------
        Array or dict
            ``(n_texts, d_model)``, or one such array per strategy where several were asked for.

        Raises
        ------
        InputError
            A bare string, something else among the texts, an unknown strategy, or a limit beyond the
            position table.
        """
        check_several(texts)
        texts = list(texts)

        def report(done: int, total: int) -> None:
            if on_progress is not None:
                on_progress(done, len(texts))

        blocks = list(self.encode_stream(texts, pooling, normalize, max_tokens, report))
        if isinstance(pooling, str):
            return np.concatenate([np.empty((0, self.config.d_model), self.dtype), *blocks])
        return {
            strategy: np.concatenate(
                [np.empty((0, self.config.d_model), self.dtype), *(block[strategy] for block in blocks)]
            )
            for strategy in pooling
        }

    def encode_stream(
        self,
        texts: Iterable[str],
        pooling: str | list[str] = "mean",
        normalize: bool = True,
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> Iterator[Any]:
        """Embed very many texts block by block, in order.

        Texts are taken from the iterator as they are needed, and equal texts are embedded once: for every
        distinct text, some 150 bytes stay in memory and its vector in a temporary file. The work stops
        when the iteration does.

        Parameters
        ----------
        texts, pooling, normalize, max_tokens
            As in `encode`; ``texts`` may be a generator.
        on_progress
            Called with texts done and 0, since their total is unknown.

        Yields
        ------
        Array or dict
            What `encode` returns for the next texts, a thousand or so of them.
        """
        check_several(texts)
        strategies = [pooling] if isinstance(pooling, str) else pooling
        self.check_poolings(strategies)
        limit = self.token_limit(max_tokens)

        def embed(new_texts: list[str], report: Progress) -> Array:
            """Embed a block's new texts: ``(n_texts, n_strategies * d_model)``."""
            sequences = [self.truncate(ids, limit) for ids in self.tokenizer.ids_batch(new_texts)]
            vectors = self.encode_ids(sequences, strategies, normalize, report)
            return np.hstack([vectors[strategy] for strategy in strategies])

        spool = VectorSpool(len(strategies) * self.config.d_model, self.dtype)
        blocks = each_once(texts, embed, spool, on_progress)
        if isinstance(pooling, str):
            return blocks
        return (dict(zip(strategies, np.hsplit(rows, len(strategies)), strict=True)) for rows in blocks)

    def encode_ids(
        self,
        sequences: Sequence[Sequence[int]],
        pooling: str | list[str] = "mean",
        normalize: bool = True,
        on_progress: Progress | None = None,
    ) -> Any:
        """Embed texts that are tokenized already; the rest is as in `encode`."""
        strategies = [pooling] if isinstance(pooling, str) else pooling
        self.check_poolings(strategies)
        vectors = {s: np.empty((len(sequences), self.config.d_model), self.dtype) for s in strategies}

        def embed(batch: slice) -> None:
            states = self.token_states(sequences[batch], strategies)
            for strategy in strategies:
                vectors[strategy][batch] = [self.pool(each, strategy) for each in states]

        n_done = 0
        for batch in run_parallel(embed, list(packs(sequences, BATCH_TOKENS))):
            n_done += batch.stop - batch.start
            if on_progress is not None:
                on_progress(n_done, len(sequences))
        if normalize:
            vectors = {strategy: l2_normalize(v) for strategy, v in vectors.items()}
        return vectors[pooling] if isinstance(pooling, str) else vectors

    def token_states(
        self, sequences: Sequence[Sequence[int]], strategies: Sequence[str] = ("mean",)
    ) -> list[TokenStates]:
        """Run a few tokenized texts as one pack, and keep the inputs of the strategies."""
        ops = best_primitives() if self.compiled else NUMPY
        return token_states(sequences, strategies, self.weights, self.config, no_trace, ops)

    def pool(self, states: TokenStates, strategy: str, mask: Array | None = None) -> Array:
        """Pool one text's tokens, or those in the mask ``(n_tokens,)``: ``(d_model,)``."""
        return pooled(states, strategy, self.weights.pooler, self.idf, mask)

    @property
    def poolings(self) -> tuple[str, ...]:
        """The strategies whose weights this encoder has."""
        missing = {"pooler": self.weights.pooler is None, "idf": self.idf is None}
        return tuple(name for name, each in POOLINGS.items() if not missing.get(each.needs or ""))

    def check_poolings(self, strategies: Sequence[str]) -> None:
        """Raise `InputError` for unknown strategies, and for those whose weights this encoder lacks."""
        if not strategies:
            raise InputError(f"no pooling was asked for: give one or more of {', '.join(POOLINGS)}")
        for strategy in strategies:
            if strategy not in POOLINGS:
                raise InputError(f"pooling {strategy!r} is not one of {', '.join(POOLINGS)}")
            if POOLINGS[strategy].needs == "pooler" and self.weights.pooler is None:
                raise InputError(f"{self.name} has no pooler weights: use mean or cls")
            if POOLINGS[strategy].needs == "idf" and self.idf is None:
                raise InputError(
                    f"pooling {strategy!r} weighs tokens by a corpus: make an encoder with with_idf(texts)"
                )

    def read(self, text: str, pair: str | None = None, max_tokens: int | None = None) -> Encoding:
        """Return the tokens of a text, or of a pair of texts, cut at ``max_tokens``.

        Raises
        ------
        ContextLengthError
            A pair has more tokens than the limit.
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

    def trace_shapes(self, n_tokens: int) -> Shapes:
        """Name and shape of every array in the trace of a text, besides its tokens and ids."""
        vectors = [f"pooled.{strategy}" for strategy in self.poolings] + ["normalized"]
        return trace_shapes(self.config, n_tokens) | dict.fromkeys(vectors, (self.config.d_model,))

    def trace(
        self,
        text: str,
        pooling: str = "mean",
        max_tokens: int | None = None,
        pair: str | None = None,
        keep: Sequence[str] = ("*",),
        max_bytes: int = MAX_TRACE_BYTES,
    ) -> Trace:
        """Run one text and keep its intermediates.

        The names are ``tokens``, ``ids``, ``embeddings.*``, ``layers.{i}.attention.*``,
        ``layers.{i}.ffn.*``, ``layers.{i}.output``, ``pooled.{strategy}`` for every strategy, and
        ``normalized`` for ``pooling``. Per-head arrays are ``(n_heads, n_tokens, d_head)`` or
        ``(n_heads, n_query, n_key)``.

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
        self.check_poolings([pooling])
        encoding = self.read(text, pair, max_tokens)
        check_trace(self.trace_shapes(len(encoding)), keep, self.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array(encoding.tokens))
        trace("ids", np.array(encoding.ids))
        self.inspect(encoding.ids, trace, pooling, encoding.type_ids)
        return trace

    def inspect(
        self,
        ids: Sequence[int],
        trace: Tracer,
        pooling: str = "mean",
        type_ids: Sequence[int] | None = None,
    ) -> Array:
        """Run one text under a tracer, which sees every pooling; return its normalised vector."""
        types = None if type_ids is None else [type_ids]
        [states] = token_states([ids], self.poolings, self.weights, self.config, trace, type_ids=types)
        vectors = {
            strategy: trace(f"pooled.{strategy}", self.pool(states, strategy)) for strategy in self.poolings
        }
        return trace("normalized", l2_normalize(vectors[pooling]))


def check_several(texts: object) -> None:
    """Raise `InputError` for a bare string, which would be read as a list of characters."""
    if isinstance(texts, str):
        raise InputError("a list of texts is wanted: pass [text] for a single one")


def packs(sequences: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Cut a list of sequences into runs of about ``batch_tokens`` tokens, at least one sequence each."""
    start = n_tokens = 0
    for number, sequence in enumerate(sequences):
        if number > start and n_tokens + len(sequence) > batch_tokens:
            yield slice(start, number)
            start, n_tokens = number, 0
        n_tokens += len(sequence)
    if start < len(sequences):
        yield slice(start, len(sequences))


def encoder_family(folder: Path) -> ModuleType:
    """Return the family of a model's folder; raise `ModelFileError` for unknown ones."""
    model_type = read_json(folder / "config.json").get("model_type")
    if isinstance(model_type, str) and model_type in FAMILIES:
        return FAMILIES[model_type]
    raise ModelFileError(
        f"{folder} is a {model_type!r} model, which the encoder does not read: "
        f"give one of the families {', '.join(FAMILIES)}"
    )


def read_pooling(folder: Path) -> str:
    """Return the pooling that a model was trained for: always the mean, as the files are not yet read."""
    return "mean"


def read_max_tokens(folder: Path, config: EncoderConfig) -> int:
    """Return the limit sentence-transformers uses: its own config's, else the position table."""
    path = folder / "sentence_bert_config.json"
    limits = read_json(path) if path.is_file() else {}
    return min(config_size(limits, "max_seq_length", default=config.max_positions), config.max_positions)
