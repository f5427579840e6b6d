"""The cross-encoder: question and passage read together, one score out (Nogueira and Cho 2019).

An encoder embeds each text alone, so that a search only compares vectors. A cross-encoder reads both as one
sequence: every token of the passage attends to the question, at the price of a forward pass for each pair.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFileError
from engine.kernels.primitives import NUMPY, best_primitives, prepare_compiled
from engine.layers.activation import sigmoid
from engine.layers.linear import Linear, linear
from engine.layers.tracing import Array, Tracer, no_trace
from engine.models.bert import EncoderConfig, EncoderWeights, encoder_forward, trace_shapes
from engine.models.encoder import check_several, encoder_family, packs
from engine.models.parallel import run_parallel
from engine.tokenizers.encoding import Encoding, check_vocab_size
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.trace import MAX_TRACE_BYTES, Trace, check_trace
from engine.weights.fetch import Progress, model_path
from engine.weights.tensors import read_json, read_safetensors, require, shaped

BATCH_TOKENS = 1024  # of a pack, the pairs that one core reads at once
OUTPUTS: dict[str, Callable[[Array], Array]] = {"Sigmoid": sigmoid, "Identity": np.positive}


@dataclass(frozen=True)
class Head:
    """From the vector of the first token to a score: ``output(w tanh(W x + b) + c)``.

    ``dense`` is ``(d_model, d_model)``, ``score`` ``(1, d_model)``; ``output`` a key of `OUTPUTS`.
    """

    dense: Linear
    score: Linear
    output: str

    def logits(self, first: Array, trace: Tracer = no_trace) -> Array:
        """Score texts by their first tokens' vectors: ``(n_texts, d_model) -> (n_texts,)``."""
        pooled = trace("pooled", np.tanh(linear(first, *self.dense)))  # (n_texts, d_model)
        return trace("logit", linear(pooled, *self.score)[:, 0])


@dataclass(frozen=True)
class Reranker:
    """A BERT cross-encoder: the score of a passage for a question, larger is better.

    Attributes
    ----------
    max_tokens
        Limit of the tokens of question and passage together, [CLS] and both [SEP] included.
    segments
        Whether the model is told the two texts apart by segments, as its tokenizer's settings say.
    compiled
        Use compiled kernels as soon as they are loaded, if numba is installed.
    """

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    head: Head = field(repr=False)
    tokenizer: WordPieceTokenizer
    max_tokens: int
    segments: bool = True
    compiled: bool = False

    @classmethod
    def load(
        cls,
        source: str | Path,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
    ) -> "Reranker":
        """Load a cross-encoder from a folder (config.json, model.safetensors, tokenizer.json) or a Hub id.

        Parameters
        ----------
        source
            The folder or Hub id.
        dtype
            Precision of the weights and so of every score.
        compiled
            As in `Encoder.load`.
        on_progress
            Called with bytes done and bytes in all while downloading.

        Raises
        ------
        ModelUnavailableError
            The model cannot be found or downloaded.
        ModelFileError
            Its files are damaged, incomplete, of another architecture, or give more than one score.
        """
        compiled = compiled and np.dtype(dtype) == np.float32
        if compiled:
            prepare_compiled()
        folder = model_path(source, on_progress)
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is a file: a cross-encoder is a folder with config.json")
        family, settings = encoder_family(folder), read_json(folder / "config.json")
        config = family.read_config(folder)
        tensors = read_safetensors(folder / "model.safetensors")
        weights = family.read_weights(tensors, config, np.dtype(dtype))
        head = read_head(tensors, settings, weights, np.dtype(dtype), folder)
        tokenizer = WordPieceTokenizer(folder / "tokenizer.json")
        check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
        path = folder / "tokenizer_config.json"
        usage = read_json(path) if path.is_file() else {}
        max_tokens, segments = read_limit(usage, config), has_segments(usage)
        return cls(str(source), config, weights, head, tokenizer, max_tokens, segments, compiled)

    def read(self, question: str, passage: str) -> Encoding:
        """Return the tokens of a pair, ``[CLS] question [SEP] passage [SEP]``, cut at the limit."""
        return self.tokenizer.encode_pair(question, passage, self.max_tokens)

    def score(self, question: str, passages: Sequence[str], on_progress: Progress | None = None) -> Array:
        """Score passages for a question: ``(n_passages,)``, equal to sentence-transformers' `CrossEncoder`.

        Parameters
        ----------
        question, passages
            Each pair is cut at ``max_tokens``, the longer text first.
        on_progress
            Called with passages read and passages in all.

        Raises
        ------
        InputError
            A bare string for the passages, or something else than a text.
        """
        check_several(passages)
        return self.score_ids([self.read(question, passage) for passage in passages], on_progress)

    def score_ids(self, pairs: Sequence[Encoding], on_progress: Progress | None = None) -> Array:
        """Score pairs that are tokenized already: ``(n_pairs,)``."""
        logits = np.empty(len(pairs), self.weights.token_table.dtype)
        ids = [pair.ids for pair in pairs]

        def run(batch: slice) -> None:
            logits[batch] = self.logits(pairs[batch])

        n_done = 0
        for batch in run_parallel(run, list(packs(ids, BATCH_TOKENS))):
            n_done += batch.stop - batch.start
            if on_progress is not None:
                on_progress(n_done, len(pairs))
        return OUTPUTS[self.head.output](logits)

    def logits(self, pairs: Sequence[Encoding], trace: Tracer = no_trace) -> Array:
        """Run one pack of pairs through the model: ``(n_pairs,)``. Tracing runs NumPy's functions."""
        ops = best_primitives() if self.compiled and trace is no_trace else NUMPY
        ids, types = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        hidden = encoder_forward(ids, self.weights, self.config, trace, ops, types if self.segments else None)
        return self.head.logits(np.stack([each[0] for each in hidden]), trace)

    def trace(
        self, question: str, passage: str, keep: Sequence[str] = ("*",), max_bytes: int = MAX_TRACE_BYTES
    ) -> Trace:
        """Run one pair and keep its intermediates.

        The names are those of `Encoder.trace` up to the last layer, then ``pooled``, ``logit`` and ``score``.

        Raises
        ------
        InputError
            The trace would be larger than ``max_bytes``, or a pattern matches nothing.
        """
        pair, one = self.read(question, passage), (1,)
        ends = {"pooled": (1, self.config.d_model), "logit": one, "score": one}
        shapes = trace_shapes(self.config, len(pair)) | ends
        check_trace(shapes, keep, self.weights.token_table.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array(pair.tokens))
        trace("ids", np.array(pair.ids))
        trace("score", OUTPUTS[self.head.output](self.logits([pair], trace)))
        return trace


def read_head(
    tensors: Mapping[str, Array],
    settings: Mapping[str, Any],
    weights: EncoderWeights,
    dtype: np.dtype,
    folder: Path,
) -> Head:
    """Read the part behind the encoder: BERT's pooler, and the classifier.

    Raises
    ------
    ModelFileError
        The folder holds no classifier, or one with several labels.
    """
    if "classifier.weight" not in tensors or weights.pooler is None:
        raise ModelFileError(
            f"{folder} has no classifier behind a pooler: a reranker is a model for sequence classification, "
            f"such as cross-encoder/ms-marco-MiniLM-L6-v2"
        )
    n_labels, d_model = len(tensors["classifier.weight"]), weights.pooler[0].shape[0]
    if n_labels != 1:
        raise ModelFileError(f"{folder} classifies into {n_labels} labels: a reranker gives a single score")
    score = Linear(
        shaped(require(tensors, "classifier.weight"), "classifier.weight", (1, d_model), dtype),
        shaped(require(tensors, "classifier.bias"), "classifier.bias", (1,), dtype),
    )
    return Head(weights.pooler, score, read_output(settings, folder))


def read_limit(usage: Mapping[str, Any], config: EncoderConfig) -> int:
    """Return the token limit in a tokenizer's settings, at most the positions of the model."""
    limit = usage.get("model_max_length")
    if isinstance(limit, int | float) and limit > 0:
        return int(min(limit, config.max_positions))
    return config.max_positions


def has_segments(usage: Mapping[str, Any]) -> bool:
    """Whether a tokenizer tells two texts apart; without a setting, those of the generic class do not."""
    inputs = usage.get("model_input_names")
    if isinstance(inputs, list):
        return "token_type_ids" in inputs
    return usage.get("tokenizer_class") not in ("PreTrainedTokenizerFast", "TokenizersBackend")


def read_output(settings: Mapping[str, Any], folder: Path) -> str:
    """Return the function of the logit that sentence-transformers saved with the model; else the sigmoid."""
    library = settings.get("sentence_transformers")
    name = library.get("activation_fn") if isinstance(library, dict) else None
    name = (
        name or settings.get("sbert_ce_default_activation_function") or "torch.nn.modules.activation.Sigmoid"
    )
    kind = str(name).rpartition(".")[2]
    if not str(name).startswith("torch.nn.") or kind not in OUTPUTS:
        raise ModelFileError(f"{folder}: the score's function {name!r} is not one of {', '.join(OUTPUTS)}")
    return kind
