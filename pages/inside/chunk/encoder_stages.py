"""The stages of every encoder family's pipeline, with the equation of each tensor that a pass records."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from engine import Encoder
from engine.errors import InputError
from engine.models.gemma3 import Gemma3Config
from engine.tokenizers.text_tokenizer import TextTokenizer
from engine.tokenizers.tokenizer_file import BytePairEncoderTokenizer
from engine.tokenizers.unigram import UnigramTokenizer
from engine.tokenizers.wordpiece import WordPieceTokenizer
from pages.inside.chunk.decoder_stages import gemma3_stages, llama_stages
from pages.inside.chunk.head_stages import pooling_stage, vector_stage
from pages.inside.chunk.tensor_equations import (
    ACTIVATIONS,
    ADDED,
    BYTE_PAIRS,
    EQUATIONS,
    MASKED,
    Stage,
    attention,
    embeddings,
    feed_forward,
    final_norm,
    gated_equations,
)

TOKENIZERS: dict[type[TextTokenizer], str] = {
    WordPieceTokenizer: "WordPiece cuts the text into words, and each word into the longest pieces that its "
    "vocabulary has.",
    BytePairEncoderTokenizer: BYTE_PAIRS,
    UnigramTokenizer: "Unigram knows the log-probability of every piece of its vocabulary, and cuts a word "
    "into the pieces whose sum is the largest.",
}
ALL_TOKENS = (
    "The query of each token is compared with the keys of all tokens, and the values of those that match are "
    "mixed. Each head has its own queries, keys and values."
)
ROTATED = " Position comes in here: queries and keys are rotated by it (RoPE)."
WIDE = "Each token on its own goes through a wide layer and back. The result is added to the input."
GATED = (
    "{} Each token on its own goes through a wide layer and back; one half of the layer opens or closes "
    "gates for the other half. The result is added to the input."
)
TOKEN, SEGMENT = r"E_{tok} = T_{token}[\mathrm{ids}]", r"E_{seg} = T_{segment}[\mathrm{segments}]"

BERT_ATTENTION = EQUATIONS["bert attention"]
MPNET_ATTENTION = BERT_ATTENTION | EQUATIONS["mpnet attention"]
NOMIC_ATTENTION = BERT_ATTENTION | EQUATIONS["nomic attention"]
MODERN_ATTENTION = NOMIC_ATTENTION | EQUATIONS["modernbert attention"]
GTE_ATTENTION = BERT_ATTENTION | EQUATIONS["gte attention"]
JINA_ATTENTION = BERT_ATTENTION | EQUATIONS["jina attention"]


def bert_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of BERT, and of DistilBERT, which has no segments."""
    what = "Each token's id selects a row of a table; its position and its segment select two more. "
    if not config.n_types:
        what = "Each token's id selects a row of a table, its position a row of another. "
    return summed_stages(config, what, r"0, 1, \dots, n-1")


def roberta_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of RoBERTa and XLM-RoBERTa: positions are counted behind the padding's id."""
    first = config.padding_id + 1
    what = (
        "Each token's id selects a row of a table, its position a row of another, counted behind the id of "
        f"the padding token: the first token has row {first}. "
    )
    if config.n_types:
        what += "Segments are not distinguished: all tokens have the same row of the last table. "
    rows = rf"{first}, {first + 1}, \dots, n + {config.padding_id}"
    return summed_stages(config, what, rows)


def summed_stages(config: Any, description: str, rows: str) -> tuple[Stage, ...]:
    """Stages of an encoder that adds positions, and segments if it has them, with norms behind sublayers."""
    total = r"E_{tok} + E_{pos}" + (r" + E_{seg}" if config.n_types else "")
    sums = {
        "output": rf"X = \mathrm{{LayerNorm}}({total})",
        "token": TOKEN,
        "position": rf"E_{{pos}} = T_{{position}}[{rows}]",
        **({"segment": SEGMENT} if config.n_types else {}),
        "sum": total,
    }
    wide = {
        "hidden": r"H = X' W_1^\top + b_1",
        "activation": rf"G = {ACTIVATIONS[config.activation]}(H)",
        "output": r"F = G W_2^\top + b_2",
    }
    return (
        embeddings(description + "Their sum is normed.", sums),
        attention(ALL_TOKENS, BERT_ATTENTION),
        feed_forward(WIDE, r"X_{next} = \mathrm{LayerNorm}(X' + F)", wide),
    )


def mpnet_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of MPNet: RoBERTa with a bias by distance on the scores."""
    before, _, after = roberta_stages(config, layer)
    bias = (
        " Before the softmax, a number is added to each score by how far apart the two tokens are, one for "
        "each head and distance; farther distances share one."
    )
    return before, attention(ALL_TOKENS + bias, MPNET_ATTENTION), after


def jina_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of Jina's BERT: ALiBi and gates."""
    lost = (
        " Position comes in here: each score loses an amount that grows with the distance of the two tokens, "
        "at a pace of its own in each head (ALiBi)."
    )
    equations = JINA_ATTENTION | (EQUATIONS["newer jina attention"] if config.is_newer else {})
    return gated_stages(config, layer, equations, "", ALL_TOKENS + lost)


def gated_stages(
    config: Any, layer: int, equations: dict[str, str], gates: str, description: str = ALL_TOKENS + ROTATED
) -> tuple[Stage, ...]:
    """Stages of an encoder without position vectors, with gates, and norms behind sublayers."""
    what, total = "Each token's id selects a row of a table", r"E_{tok}"
    if config.n_types:
        what, total = f"{what}, its segment a row of another", r"E_{tok} + E_{seg}"
    sums = {
        "output": rf"X = \mathrm{{LayerNorm}}({total})",
        "token": TOKEN,
        **({"segment": SEGMENT} if config.n_types else {}),
        "sum": total,
    }
    wide = gated_equations("X'", config.activation)
    return (
        embeddings(f"{what}. {'Their sum' if config.n_types else 'It'} is normed.", sums),
        attention(description, equations),
        feed_forward(GATED.format(gates).strip(), r"X_{next} = \mathrm{LayerNorm}(X' + F)", wide),
    )


def modern_bert_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of ModernBERT: RoPE, GeGLU, norms in front, local attention in most layers."""
    what = "Each token's id selects a row of a table, which is normed. There are no positions or segments."
    normed = {"output": r"X = \mathrm{LayerNorm}(E_{tok})", "token": TOKEN}
    equations, reach = dict(MODERN_ATTENTION), f"Layer {layer} attends to the whole text."
    if not config.is_global[layer]:
        reach = f"Layer {layer} is local: a token sees at most {config.reach} tokens to each side."
        equations["weights"] = r"A = \mathrm{softmax}(S + \mathrm{mask})"
    if layer == 0:
        equations["norm"] = r"\tilde X = X"
        reach += " Its input is normed already."
    return (
        embeddings(what, normed),
        attention(f"{ALL_TOKENS} {reach}{ROTATED}", equations),
        feed_forward(
            GATED.format("GeGLU."),
            ADDED,
            {"norm": r"\tilde X' = \mathrm{LayerNorm}(X')"}
            | gated_equations(r"\tilde X'", config.activation),
        ),
        final_norm(r"\mathrm{LayerNorm}"),
    )


def decoder_encoder_stages(config: Any, layer: int) -> tuple[Stage, ...]:
    """Stages of a decoder that embeds texts: those of the language model, up to the last norm."""
    stages = gemma3_stages if isinstance(config, Gemma3Config) else llama_stages
    _, inputs, attended, wide, norm, _ = stages(config, layer)
    what = ALL_TOKENS
    if config.is_causal:
        what = (
            "The query of each token is compared with the keys of itself and of the tokens before it: the "
            "rest is masked, as in a decoder."
        )
    what += attended.description.removeprefix(MASKED)
    return inputs, replace(attended, description=what), wide, norm


# The stages between the tokens and the pooling, from a config and a layer, by family.
FAMILY_STAGES: dict[str, Callable[[Any, int], tuple[Stage, ...]]] = {
    "bert": bert_stages,
    "roberta": roberta_stages,
    "xlm-roberta": roberta_stages,
    "camembert": roberta_stages,
    "mpnet": mpnet_stages,
    "distilbert": bert_stages,
    "modernbert": modern_bert_stages,
    "nomic_bert": partial(gated_stages, equations=NOMIC_ATTENTION, gates="SwiGLU."),
    **dict.fromkeys(("qwen3", "qwen2", "mistral", "llama", "gemma3_text"), decoder_encoder_stages),
    **dict.fromkeys(("gte", "new"), partial(gated_stages, equations=GTE_ATTENTION, gates="GeGLU.")),
    "jina_bert": jina_stages,
}


def encoder_stages(encoder: Encoder, layer: int) -> tuple[Stage, ...]:
    """Return the stages of an encoder, with the tensors of a layer."""
    tokens = TOKENIZERS.get(type(encoder.tokenizer), "") + " From here on the model sees only these numbers."
    if encoder.model_type not in FAMILY_STAGES:
        raise InputError(f"{encoder.model_type} has no stages to show yet: write them for FAMILY_STAGES")
    return (
        Stage("Tokens", tokens.strip()),
        *FAMILY_STAGES[encoder.model_type](encoder.config, layer),
        pooling_stage(encoder),
        vector_stage(encoder.head),
    )
