"""The encoder: texts in, one vector each out, as sentence-transformers does it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from engine.errors import InputError, ModelFileError
from engine.layers.norm import l2_normalize
from engine.layers.pooling import POOLINGS, cls_pooling, mean_pooling, pooler_pooling
from engine.layers.tracing import Array, Tracer
from engine.models.bert import EncoderConfig, EncoderWeights, encoder_forward, read_config, read_weights
from engine.models.parallel import run_parallel
from engine.tokenizers.encoding import Encoding, check_vocab_size
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.trace import Trace
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import Progress, model_path
from engine.weights.tensors import config_size, read_json, read_safetensors

BATCH_TOKENS = 1024


@dataclass(frozen=True)
class Encoder:
    """A BERT-family encoder: texts in, one vector each out.

    ``max_tokens`` is how many tokens of a text are read where a call does not say otherwise,
    [CLS] and [SEP] included; ``config.max_positions`` is the most that can be asked for.
    """

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    tokenizer: WordPieceTokenizer
    max_tokens: int

    @classmethod
    def load(
        cls,
        source: str | Path = DEFAULT_ENCODER,
        dtype: type[np.floating] = np.float32,
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
        on_progress
            Called with bytes done and bytes in all while downloading.

        Raises
        ------
        ModelUnavailableError
            The model cannot be found or downloaded.
        ModelFileError
            Its files are damaged, incomplete, or of another architecture.
        """
        folder = model_path(source, on_progress)
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is a file: an encoder is a folder with config.json")
        config = read_config(folder)
        weights = read_weights(read_safetensors(folder / "model.safetensors"), config, np.dtype(dtype))
        tokenizer = WordPieceTokenizer(folder / "tokenizer.json")
        check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
        return cls(str(source), config, weights, tokenizer, read_max_tokens(folder, config))

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or this encoder's own limit for None, checked against its positions."""
        limit = self.max_tokens if max_tokens is None else max_tokens
        shortest = self.tokenizer.n_special + 1
        if not shortest <= limit <= self.config.max_positions:
            raise InputError(
                f"max_tokens is {limit}: {self.name} takes {shortest} to {self.config.max_positions}"
            )
        return limit

    def truncate(self, encoding: Encoding, max_tokens: int | None = None) -> list[int]:
        """Ids the model reads of a text: the first ``max_tokens``, the last of them [SEP]."""
        limit = self.token_limit(max_tokens)
        if len(encoding) <= limit:
            return encoding.ids
        return encoding.ids[: limit - 1] + encoding.ids[-1:]

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
            The texts; what is beyond ``max_tokens`` of one is not read.
        pooling
            One strategy (``mean``, ``cls`` or ``pooler``), or several for the same pass.
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
        if isinstance(texts, str):
            raise InputError("encode takes a list of texts: pass [text] for a single one")
        limit = self.token_limit(max_tokens)
        encodings = self.tokenizer.encode_batch(list(texts))
        sequences = [self.truncate(encoding, limit) for encoding in encodings]
        return self.encode_ids(sequences, pooling, normalize, on_progress)

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
        dtype = self.weights.token_table.dtype
        vectors = {s: np.empty((len(sequences), self.config.d_model), dtype) for s in strategies}

        def embed(batch: slice) -> None:
            token_vectors = encoder_forward(sequences[batch], self.weights, self.config)
            for strategy in strategies:
                vectors[strategy][batch] = [self.pool(tokens, strategy) for tokens in token_vectors]

        n_done = 0
        for batch in run_parallel(embed, list(packs(sequences, BATCH_TOKENS))):
            n_done += batch.stop - batch.start
            if on_progress is not None:
                on_progress(n_done, len(sequences))
        if normalize:
            vectors = {strategy: l2_normalize(v) for strategy, v in vectors.items()}
        return vectors[pooling] if isinstance(pooling, str) else vectors

    def pool(self, token_vectors: Array, strategy: str) -> Array:
        """Pool one text's token vectors: ``(n_tokens, d_model) -> (d_model,)``."""
        if strategy == "mean":
            return mean_pooling(token_vectors)
        if strategy == "cls":
            return cls_pooling(token_vectors)
        assert self.weights.pooler is not None, "checked by check_poolings"
        return pooler_pooling(token_vectors, self.weights.pooler)

    def check_poolings(self, strategies: Sequence[str]) -> None:
        """Raise `InputError` for a strategy that is unknown or that this model has no weights for."""
        if not strategies:
            raise InputError(f"no pooling was asked for: give one or more of {', '.join(POOLINGS)}")
        for strategy in strategies:
            if strategy not in POOLINGS:
                raise InputError(f"pooling {strategy!r} is not one of {', '.join(POOLINGS)}")
            if strategy == "pooler" and self.weights.pooler is None:
                raise InputError(f"{self.name} has no pooler weights: use mean or cls")

    def trace(self, text: str, pooling: str = "mean", max_tokens: int | None = None) -> Trace:
        """Run one text and keep every intermediate.

        The names are ``tokens``, ``ids``, ``embeddings.*``, ``layers.{i}.attention.*``,
        ``layers.{i}.ffn.*``, ``layers.{i}.output``, ``pooled.{strategy}`` for every strategy, and
        ``normalized`` for ``pooling``. Per-head arrays are ``(n_heads, n_tokens, d_head)`` or
        ``(n_heads, n_query, n_key)``.
        """
        self.check_poolings([pooling])
        encoding = self.tokenizer.encode(text)
        ids = self.truncate(encoding, max_tokens)
        trace = Trace()
        trace("tokens", np.array(encoding.tokens[: len(ids) - 1] + encoding.tokens[-1:]))
        trace("ids", np.array(ids))
        self.inspect(ids, trace, pooling)
        return trace

    def inspect(self, ids: Sequence[int], trace: Tracer, pooling: str = "mean") -> Array:
        """Run one text under a tracer, which sees every pooling; return its normalised vector."""
        [token_vectors] = encoder_forward([ids], self.weights, self.config, trace)
        pooled = {
            strategy: trace(f"pooled.{strategy}", self.pool(token_vectors, strategy))
            for strategy in POOLINGS
            if strategy != "pooler" or self.weights.pooler is not None
        }
        return trace("normalized", l2_normalize(pooled[pooling]))


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


def read_max_tokens(folder: Path, config: EncoderConfig) -> int:
    """Return the limit sentence-transformers uses: its own config's, else the position table."""
    path = folder / "sentence_bert_config.json"
    limits = read_json(path) if path.is_file() else {}
    return min(config_size(limits, "max_seq_length", default=config.max_positions), config.max_positions)
