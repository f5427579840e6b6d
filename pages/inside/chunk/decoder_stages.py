"""The stages of every decoder family's pipeline, with the equation of each tensor that a pass records."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.errors import InputError
from engine.models.decoders import DecoderConfig
from engine.models.gemma3 import Gemma3Config
from engine.models.gpt2 import GPT2Config
from engine.models.llama import LlamaConfig
from pages.inside.chunk.tensor_equations import (
    GPT2_STAGES,
    LLAMA_ATTENTION,
    LLAMA_STAGES,
    NORMED_HEADS,
    Stage,
    attention,
    embeddings,
    feed_forward,
    gated_equations,
)


def decoder_stages(config: DecoderConfig, layer: int) -> tuple[Stage, ...]:
    """Return the stages of a decoder, with what is particular to a layer."""
    if (stages := CONFIG_STAGES.get(type(config))) is None:
        raise InputError(f"{type(config).__name__} has no stages to show yet: write them for CONFIG_STAGES")
    return stages(config, layer)


def llama_stages(config: LlamaConfig, layer: int) -> tuple[Stage, ...]:
    """Stages of Llama and its descendants."""
    tokens, inputs, _, *rest = LLAMA_STAGES
    return tokens, inputs, attention(*llama_attention(config, layer)), *rest


def llama_attention(config: LlamaConfig, layer: int) -> tuple[str, dict[str, str]]:
    """Return the description and the equations of attention in a layer of Llama or a descendant."""
    equations, what = dict(LLAMA_ATTENTION), LLAMA_STAGES[2].description
    if config.head_norms:
        order = dict.fromkeys(("weights", "norm", *NORMED_HEADS), "")  # of the tensors on the page
        equations = order | equations | NORMED_HEADS
        what += " The queries and keys of each head are normed before they are rotated."
    if (d_rotary := 2 * len(config.rope.factors)) < config.d_head:
        what += f" Of the {config.d_head} dimensions of a head, the first {d_rotary} are rotated."
    if not config.rotated[layer]:
        equations |= {"query": r"Q = \tilde X W_Q^\top", "key": r"K = \tilde X W_K^\top"}
        what += f" Layer {layer} leaves out the rotations: it does not know positions."
    if window := config.windows[layer]:
        seen = f"the last {window} tokens" if config.is_causal else f"{window - 1} tokens to each side"
        what += f" In layer {layer} a token sees {seen} at most."
    return what, equations


def gemma3_stages(config: Gemma3Config, layer: int) -> tuple[Stage, ...]:
    """Stages of Gemma 3: those of Llama, with norms behind both sublayers, and GeGLU."""
    tokens, *_, norm, next_token = LLAMA_STAGES
    what, equations = llama_attention(config, layer)
    equations |= {
        "scores": rf"S = Q K^\top / \sqrt{{{config.query_scalar:g}}}",
        "post norm": r"O' = \mathrm{RMSNorm}(O)",
    }
    what += " The output is normed before it is added."
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
            | gated_equations(r"\tilde X'", "gelu_new")
            | {"post norm": r"F' = \mathrm{RMSNorm}(F)"},
        ),
        norm,
        next_token,
    )


# By the class of the sizes, as `FAMILIES` of engine.models.decoders has them.
CONFIG_STAGES: dict[type, Callable[[Any, int], tuple[Stage, ...]]] = {
    LlamaConfig: llama_stages,
    Gemma3Config: gemma3_stages,
    GPT2Config: lambda config, layer: GPT2_STAGES,
}
