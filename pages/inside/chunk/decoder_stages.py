"""The stages of every decoder family's pipeline, with the equation of each tensor that a pass records."""

from engine.models.decoders import DecoderConfig
from engine.models.llama import LlamaConfig
from pages.inside.chunk.encoder_stages import NORMED_HEADS, attention
from pages.inside.chunk.tensor_equations import GPT2_STAGES, LLAMA_STAGES, Stage


def decoder_stages(config: DecoderConfig, layer: int) -> tuple[Stage, ...]:
    """Return the stages of a decoder, with what is particular to a layer."""
    return llama_stages(config, layer) if isinstance(config, LlamaConfig) else GPT2_STAGES


def llama_stages(config: LlamaConfig, layer: int) -> tuple[Stage, ...]:
    """Stages of Llama and its descendants."""
    tokens, embeddings, usual, *rest = LLAMA_STAGES
    equations, particular = {tensor.label: tensor.equation for tensor in usual.tensors}, ""
    if config.head_norms:
        equations |= NORMED_HEADS
        particular += " The queries and keys of each head are normed before they are rotated."
    if (d_rotary := 2 * len(config.rope.factors)) < config.d_head:
        particular += f" Of the {config.d_head} dimensions of a head, the first {d_rotary} are rotated."
    if not config.rotated[layer]:
        equations |= {"query": r"Q = \tilde X W_Q^\top", "key": r"K = \tilde X W_K^\top"}
        particular += f" Layer {layer} leaves out the rotations: it does not know positions."
    if window := config.windows[layer]:
        particular += f" In layer {layer} a token sees the last {window} tokens at most."
    return tokens, embeddings, attention(usual.description + particular, equations), *rest
