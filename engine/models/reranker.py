"""The cross-encoder: question and passage read together, one score out (Nogueira and Cho 2019).

An encoder embeds each text by itself, so that a search only compares vectors. A cross-encoder reads both as
one sequence: every token of the passage attends to the question, at the price of a forward pass for each
pair.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import MadeByMethod, ModelFileError, check_several
from ..kernels.primitives import best_primitives
from ..layers.activation import ACTIVATIONS, sigmoid
from ..layers.linear import Linear, linear
from ..layers.norm import LayerNorm, layer_norm
from ..layers.primitives import NUMPY
from ..layers.tracing import Array, Tracer, no_trace
from ..tokenizers.encoding import Encoding
from ..tokenizers.text_tokenizer import TextTokenizer
from ..trace import MAX_TRACE_BYTES, Trace, check_trace
from ..weights.fetch import Progress
from ..weights.tensors import TensorReader, config_activation, damaged_files, read_json, read_optional
from .bert import EncoderConfig, EncoderWeights
from .encoder_families import FAMILIES
from .pair_template import MAX_TOKENS, TEMPLATES, PairTemplate, YesNoHead
from .parallel import run_packs
from .precision import in_precision
from .transformer import model_folder, prepared, read_transformer

BATCH_TOKENS = 1024  # of a pack, the pairs that one core reads at once
SIGMOID = "torch.nn.modules.activation.Sigmoid"
OUTPUTS: dict[str, Callable[[Array], Array]] = {"Sigmoid": sigmoid, "Identity": np.positive}


@dataclass(frozen=True)
class Head:
    """From a pair's token vectors to its score: ``output(w norm(f(W x + b)) + c)``."""

    dense: Linear  # ``(d_model, d_model)``
    activation: Callable[[Array], Array]
    norm: LayerNorm | None  # None in all families but ModernBERT
    score: Linear  # ``(1, d_model)``
    output: str  # a key of `OUTPUTS`
    eps: float = 1e-5
    is_mean: bool = False  # whether ``x`` is the mean over all token vectors, not that of the first

    def logits(self, hidden: Sequence[Array], trace: Tracer = no_trace) -> Array:
        """Score pairs by their token vectors, ``(n_tokens, d_model)`` each: ``(n_pairs,)``."""
        x = np.stack([own.mean(axis=0) if self.is_mean else own[0] for own in hidden])  # (n_pairs, d_model)
        pooled = self.activation(linear(x, *self.dense))
        if self.norm is not None:
            pooled = layer_norm(pooled, *self.norm, self.eps)
        return trace("logit", linear(trace("pooled", pooled), *self.score)[:, 0])


@dataclass(frozen=True)
class Reranker(MadeByMethod):
    """A cross-encoder: the score of a passage for a question, larger is better.

    Attributes
    ----------
    family
        The module of its forward pass, as of an `Encoder`.
    max_tokens
        Limit of the tokens of question and passage together, special tokens included.
    segments
        Whether the model reads segment ids of the two texts, by the settings of its tokenizer.
    template
        The prompt around a pair, of a language model; None for a classifier.
    compiled
        Use compiled kernels as soon as they are loaded, if numba is installed.
    precision
        Of the layers, a key of `PRECISIONS`: see `with_precision`.
    """

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    head: Head | YesNoHead = field(repr=False)
    family: ModuleType = field(repr=False)
    tokenizer: TextTokenizer
    max_tokens: int
    segments: bool = True
    template: PairTemplate | None = None
    compiled: bool = False
    precision: str = "float32"

    @classmethod
    def load(
        cls,
        source: str | Path,
        dtype: type[np.floating] = np.float32,
        compiled: bool = True,
        on_progress: Progress | None = None,
    ) -> "Reranker":
        """Load a cross-encoder from a folder (config.json, model.safetensors, tokenizer.json) or a Hub id.

        Arguments and errors are those of `Encoder.load`; a model that gives more than one score is refused.
        """
        compiled = prepared(compiled, dtype)
        folder = model_folder(source, "a cross-encoder", on_progress)
        with damaged_files(folder):
            own, tensors = read_transformer(source, folder, np.dtype(dtype), compiled)
            settings, template = read_json(folder / "config.json"), None
            head: Head | YesNoHead
            if (settings.get("architectures") or [""])[0].endswith("ForCausalLM"):
                template = TEMPLATES.get(own.model_type)
            if template is None:
                head = read_head(tensors, settings, own.config, np.dtype(dtype), folder)
            else:
                table = tensors.get("lm_head.weight", own.weights.token_table)
                head = YesNoHead.of(template, own.tokenizer, table.astype(dtype))
            segments = has_segments(read_optional(folder / "tokenizer_config.json"))
        return cls(
            own.name,
            own.config,
            own.weights,
            head,
            own.family,
            own.tokenizer,
            own.max_tokens if template is None else min(own.max_tokens, MAX_TOKENS),
            segments,
            template,
            compiled,
        )

    def with_precision(self, precision: str) -> "Reranker":
        """Return this float32 cross-encoder in a precision, as `Encoder.with_precision`; its head stays."""
        return in_precision(self, precision)

    def read(self, question: str, passage: str, is_whole: bool = False) -> Encoding:
        """Return the tokens of a pair, such as ``[CLS] question [SEP] passage [SEP]``.

        They are cut at the limit unless ``is_whole``.
        """
        limit = None if is_whole else self.max_tokens
        if self.template is not None:
            return self.template.read(self.tokenizer, question, passage, limit)
        return self.tokenizer.encode_pair(question, passage, limit)

    def score(self, question: str, passages: Sequence[str], on_progress: Progress | None = None) -> Array:
        """Score passages for a question: ``(n_passages,)``, equal to sentence-transformers' `CrossEncoder`.

        Each pair is cut at ``max_tokens``, the longer text first. ``on_progress`` is called with passages
        read and passages in all.

        Raises
        ------
        InputError
            A bare string for the passages, or something else than a text.
        """
        check_several(passages)
        return self.score_ids([self.read(question, passage) for passage in passages], on_progress)

    def score_ids(
        self, pairs: Sequence[Encoding], on_progress: Progress | None = None, as_logits: bool = False
    ) -> Array:
        """Score tokenized pairs, ``(n_pairs,)``; ``as_logits`` leaves out the last function."""
        logits = np.empty(len(pairs), self.weights.token_table.dtype)

        def run(batch: slice) -> None:
            logits[batch] = self.logits(pairs[batch])

        run_packs(run, [pair.ids for pair in pairs], BATCH_TOKENS, on_progress)
        return logits if as_logits else OUTPUTS[self.head.output](logits)

    def logits(self, pairs: Sequence[Encoding], trace: Tracer = no_trace) -> Array:
        """Run one pack of pairs through the model: ``(n_pairs,)``. Tracing runs NumPy's functions."""
        ops = best_primitives() if self.compiled and trace is no_trace else NUMPY
        ids, types = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        segments = types if self.segments else None
        hidden = self.family.encoder_forward(ids, self.weights, self.config, trace, ops, segments)
        return self.head.logits(hidden, trace)

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
        shapes = self.family.trace_shapes(self.config, len(pair)) | ends
        check_trace(shapes, keep, self.weights.token_table.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array(pair.tokens))
        trace("ids", np.array(pair.ids))
        trace("score", OUTPUTS[self.head.output](self.logits([pair], trace)))
        return trace


def read_head(
    tensors: Mapping[str, Array],
    settings: Mapping[str, Any],
    config: EncoderConfig,
    dtype: np.dtype,
    folder: Path,
) -> Head:
    """Read the part behind the encoder.

    Raises `ModelFileError` where the folder holds no classifier, one with several labels, or one whose form
    is not known.
    """
    names = FAMILIES[settings["model_type"]].classifier
    for prefix in ("bert.", "gte.", "new."):
        tensors = {name.removeprefix(prefix): array for name, array in tensors.items()}
    read = TensorReader(tensors, dtype)
    wanted = () if names is None else (f"{names.dense}.weight", f"{names.score}.weight")
    if names is None or not set(wanted) <= set(read.tensors):
        known = [name for name, family in FAMILIES.items() if family.classifier]
        raise ModelFileError(
            f"{folder} has no classifier of the families {', '.join(known)}: a reranker is a model for "
            f"sequence classification, such as cross-encoder/ms-marco-MiniLM-L6-v2"
        )
    if (n_labels := len(read.tensors[f"{names.score}.weight"])) != 1:
        raise ModelFileError(f"{folder} classifies into {n_labels} labels: a reranker gives a single score")

    def dense(name: str, d_out: int) -> Linear:
        return read.dense(name, config.d_model, d_out, f"{name}.bias" in read.tensors)

    norm, activation = None, names.activation
    if names.norm:  # ModernBERT, whose config names the function
        norm = read.norm(names.norm, config.d_model, f"{names.norm}.bias" in read.tensors)
        activation = ACTIVATIONS[config_activation(settings, "classifier_activation")].forward
    return Head(
        dense(names.dense, config.d_model),
        activation,
        norm,
        dense(names.score, 1),
        read_output(settings, folder),
        config.norm_eps,
        settings.get("classifier_pooling") == "mean",
    )


def has_segments(usage: Mapping[str, Any]) -> bool:
    """Whether a tokenizer returns segment ids; without a setting, those of the generic class do not."""
    inputs = usage.get("model_input_names")
    if isinstance(inputs, list):
        return "token_type_ids" in inputs
    return usage.get("tokenizer_class") not in ("PreTrainedTokenizerFast", "TokenizersBackend")


def read_output(settings: Mapping[str, Any], folder: Path) -> str:
    """Return the function of the logit that sentence-transformers saved with the model; else the sigmoid."""
    library = settings.get("sentence_transformers")
    name = library.get("activation_fn") if isinstance(library, dict) else None
    name = name or settings.get("sbert_ce_default_activation_function") or SIGMOID
    kind = str(name).rpartition(".")[2]
    if not str(name).startswith("torch.nn.") or kind not in OUTPUTS:
        raise ModelFileError(f"{folder}: the score's function {name!r} is not one of {', '.join(OUTPUTS)}")
    return kind
