"""Cost of an encoder-decoder by part: its parameters, and the FLOPs of a forward pass."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

from engine.models.seq2seq import Seq2SeqConfig
from engine.models.seq2seq_params import parameter_shapes


@dataclass(frozen=True)
class PartSize:
    """Parameters and FLOPs of one part of a model, all its layers together.

    A FLOP is a multiplication or an addition. Only matrix products are counted: softmax, norms, biases and
    activations add a fraction of about ``1 / d_model``.
    """

    name: str
    n_parameters: int
    flops: int


def part_sizes(config: Seq2SeqConfig, n_source: int, n_target: int) -> list[PartSize]:
    """Cost of a forward pass over a source of ``n_source`` tokens and a target of ``n_target``.

    The decoder reads its whole target at once, as in training; greedy decoding repeats it for every token.
    """
    n_encoder, n_decoder = config.n_encoder_layers, config.n_decoder_layers
    counted = {
        "Embedding, which gives the logits too": (
            "embedding.*",
            linear_flops(n_target, config.d_model, config.vocab_size),
        ),
        "Encoder: self-attention": (
            "encoder.*.attention.[!n]*",
            n_encoder * attention_flops(config, n_source, n_source),
        ),
        "Encoder: feed-forward": ("encoder.*.ffn.[!n]*", n_encoder * ffn_flops(config, n_source)),
        "Decoder: masked self-attention": (
            "decoder.*.attention.[!n]*",
            n_decoder * attention_flops(config, n_target, n_target),
        ),
        "Decoder: cross-attention": (
            "decoder.*.cross_attention.[!n]*",
            n_decoder * attention_flops(config, n_target, n_source),
        ),
        "Decoder: feed-forward": ("decoder.*.ffn.[!n]*", n_decoder * ffn_flops(config, n_target)),
        "Norms": ("*.norm.*", 0),
    }
    return [PartSize(name, parameters(config, pattern), flops) for name, (pattern, flops) in counted.items()]


def parameters(config: Seq2SeqConfig, pattern: str) -> int:
    """Number of parameters whose names match a pattern."""
    shapes = parameter_shapes(config)
    return sum(prod(shape) for name, shape in shapes.items() if fnmatchcase(name, pattern))


def linear_flops(n_tokens: int, d_in: int, d_out: int) -> int:
    """A multiplication and an addition for each token, input and output."""
    return 2 * n_tokens * d_in * d_out


def attention_flops(config: Seq2SeqConfig, n_query: int, n_key: int) -> int:
    """Projections of queries, keys, values and output; scores; weighted sums of values."""
    width = config.n_heads * config.d_head
    projections = 2 * linear_flops(n_query, config.d_model, width)  # queries and output
    projections += 2 * linear_flops(n_key, config.d_model, width)  # keys and values
    return projections + 2 * linear_flops(n_query, width, n_key)


def ffn_flops(config: Seq2SeqConfig, n_tokens: int) -> int:
    """The two matrices of the feed-forward network."""
    return 2 * linear_flops(n_tokens, config.d_model, config.d_ff)
