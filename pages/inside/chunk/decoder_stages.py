"""The stages of every decoder family's pipeline, with the equation of each tensor that a pass records."""

from dataclasses import replace

from engine.models.decoders import DecoderConfig
from engine.models.gemma3 import Gemma3Config
from engine.models.llama import LlamaConfig
from pages.inside.chunk.encoder_stages import (
    ACTIVATIONS,
    NORMED_HEADS,
    attention,
    embeddings,
    feed_forward,
    gated_equations,
)
from pages.inside.chunk.tensor_equations import GPT2_STAGES, LLAMA_STAGES, Stage


def decoder_stages(config: DecoderConfig, layer: int) -> tuple[Stage, ...]:
    """Return the stages of a decoder, with what is particular to a layer."""
    if isinstance(config, Gemma3Config):
        return gemma3_stages(config, layer)
    return llama_stages(config, layer) if isinstance(config, LlamaConfig) else GPT2_STAGES


def llama_stages(config: LlamaConfig, layer: int) -> tuple[Stage, ...]:
    """Stages of Llama and its descendants."""
    tokens, inputs, usual, *rest = LLAMA_STAGES
    equations, particular = {tensor.label: tensor.equation for tensor in usual.tensors}, ""
    if config.head_norms:
        first = {label: equations.pop(label) for label in ("weights", "norm")}
        others = {label: equation for label, equation in equations.items() if label not in NORMED_HEADS}
        equations = first | NORMED_HEADS | others
        particular += " The queries and keys of each head are normed before they are rotated."
    if (d_rotary := 2 * len(config.rope.factors)) < config.d_head:
        particular += f" Of the {config.d_head} dimensions of a head, the first {d_rotary} are rotated."
    if not config.rotated[layer]:
        equations |= {"query": r"Q = \tilde X W_Q^\top", "key": r"K = \tilde X W_K^\top"}
        particular += f" Layer {layer} leaves out the rotations: it does not know positions."
    if window := config.windows[layer]:
        particular += f" In layer {layer} a token sees the last {window} tokens at most."
    return tokens, inputs, attention(usual.description + particular, equations), *rest


def gemma3_stages(config: Gemma3Config, layer: int) -> tuple[Stage, ...]:
    """Stages of Gemma 3: those of Llama, with norms behind both sublayers, and GeGLU."""
    tokens, _, attending, _, norm, next_token = llama_stages(config, layer)
    equations = {tensor.label: tensor.equation for tensor in attending.tensors} | {
        "scores": rf"S = Q K^\top / \sqrt{{{config.query_scalar:g}}}",
        "post norm": r"O' = \mathrm{RMSNorm}(O)",
    }
    what = attending.description + " The output is normed before it is added."
    if config.windows[layer] is None:
        what += f" Layer {layer} attends to the whole text, and rotates more slowly than those with a window."
    if config.logit_cap is not None:
        capped = f" Scores z are bounded softly: {config.logit_cap:g} tanh(z / {config.logit_cap:g})."
        next_token = replace(next_token, description=next_token.description + capped)
    return (
        tokens,
        embeddings(
            "Each token's id selects a row of a table, which is multiplied by the square root of its length. "
            "Position comes in later, by rotating queries and keys.",
            {
                "output": rf"X = \sqrt{{{config.d_model}}}\, E_{{tok}}",
                "token": r"E_{tok} = T_{token}[\mathrm{ids}]",
            },
        ),
        attention(what, equations),
        feed_forward(
            "GeGLU: one half of a wide layer opens or closes gates for the other half. The output is normed "
            "before it is added.",
            r"X_{next} = X' + F', \quad X' = X + O'",
            {"norm": r"\tilde X' = \mathrm{RMSNorm}(X')"}
            | gated_equations(r"\tilde X'", ACTIVATIONS["gelu_new"])
            | {"post norm": r"F' = \mathrm{RMSNorm}(F)"},
        ),
        norm,
        next_token,
    )
