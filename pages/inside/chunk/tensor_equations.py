"""Stages of a pipeline with the equation of every tensor, and those of the decoders."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """One named array of a trace; ``{i}`` in its name stands for the layer."""

    label: str
    name: str
    equation: str

    def in_layer(self, layer: int) -> str:
        """Return the name in a trace."""
        return self.name.format(i=layer)


@dataclass(frozen=True)
class Stage:
    """A stage, its description and its tensors; none if it only makes ids or probabilities."""

    label: str
    description: str
    tensors: tuple[Tensor, ...] = ()


BYTE_PAIRS = "Byte-level BPE starts from bytes and repeatedly merges the pair that it learnt first."

LLAMA_STAGES = (
    Stage("Tokens", BYTE_PAIRS),
    Stage(
        "Embeddings",
        "Each token's id selects a row of a table. Position comes in later, by rotating queries and keys.",
        (Tensor("output", "embeddings.output", r"X = T_{token}[\mathrm{ids}]"),),
    ),
    Stage(
        "Attention",
        "As in the encoder, but a token sees only itself and the tokens before it: the rest is masked. "
        "Several query heads may share one head of keys and values.",
        (
            Tensor("weights", "layers.{i}.attention.weights", r"A = \mathrm{softmax}(S + \mathrm{mask})"),
            Tensor("norm", "layers.{i}.attention.norm", r"\tilde X = \mathrm{RMSNorm}(X)"),
            Tensor("query", "layers.{i}.attention.query", r"Q = \mathrm{RoPE}(\tilde X W_Q^\top)"),
            Tensor("key", "layers.{i}.attention.key", r"K = \mathrm{RoPE}(\tilde X W_K^\top)"),
            Tensor("value", "layers.{i}.attention.value", r"V = \tilde X W_V^\top"),
            Tensor("scores", "layers.{i}.attention.scores", r"S = Q K^\top / \sqrt{d_{head}}"),
            Tensor("context", "layers.{i}.attention.context", r"C = A V"),
            Tensor("output", "layers.{i}.attention.output", r"O = \mathrm{concat}(C) W_O^\top"),
        ),
    ),
    Stage(
        "Feed-forward",
        "SwiGLU: one half of a wide layer opens or closes gates for the other half.",
        (
            Tensor("layer output", "layers.{i}.output", r"X_{next} = X' + F, \quad X' = X + O"),
            Tensor("norm", "layers.{i}.ffn.norm", r"\tilde X' = \mathrm{RMSNorm}(X')"),
            Tensor("gate", "layers.{i}.ffn.gate", r"G = \tilde X' W_{gate}^\top"),
            Tensor("hidden", "layers.{i}.ffn.hidden", r"U = \tilde X' W_{up}^\top"),
            Tensor("activation", "layers.{i}.ffn.activation", r"H = \mathrm{SiLU}(G) \odot U"),
            Tensor("output", "layers.{i}.ffn.output", r"F = H W_{down}^\top"),
        ),
    ),
    Stage(
        "Final norm",
        "After the last layer, every token's vector is brought to a common size.",
        (Tensor("norm", "norm", r"Y = \mathrm{RMSNorm}(X)"),),
    ),
    Stage(
        "Next token",
        "The inner product with each row of the token table is the score of that token; the softmax turns "
        "the scores into probabilities.",
    ),
)

GPT2_STAGES = (
    LLAMA_STAGES[0],
    Stage(
        "Embeddings",
        "Each token's id selects a row of one table, its position a row of another, and the two are added.",
        (
            Tensor("output", "embeddings.output", r"X = T_{token}[\mathrm{ids}] + T_{position}"),
            Tensor("token", "embeddings.token", r"T_{token}[\mathrm{ids}]"),
            Tensor("position", "embeddings.position", r"T_{position}[0 \ldots n - 1]"),
        ),
    ),
    Stage(
        "Attention",
        "As in the encoder, but a token sees only itself and the tokens before it: the rest is masked.",
        (
            Tensor("weights", "layers.{i}.attention.weights", r"A = \mathrm{softmax}(S + \mathrm{mask})"),
            Tensor("norm", "layers.{i}.attention.norm", r"\tilde X = \mathrm{LayerNorm}(X)"),
            Tensor("query", "layers.{i}.attention.query", r"Q = \tilde X W_Q^\top + b_Q"),
            Tensor("key", "layers.{i}.attention.key", r"K = \tilde X W_K^\top + b_K"),
            Tensor("value", "layers.{i}.attention.value", r"V = \tilde X W_V^\top + b_V"),
            Tensor("scores", "layers.{i}.attention.scores", r"S = Q K^\top / \sqrt{d_{head}}"),
            Tensor("context", "layers.{i}.attention.context", r"C = A V"),
            Tensor("output", "layers.{i}.attention.output", r"O = \mathrm{concat}(C) W_O^\top + b_O"),
        ),
    ),
    Stage(
        "Feed-forward",
        "Every vector on its own goes through a wide layer and back.",
        (
            Tensor("layer output", "layers.{i}.output", r"X_{next} = X' + F, \quad X' = X + O"),
            Tensor("norm", "layers.{i}.ffn.norm", r"\tilde X' = \mathrm{LayerNorm}(X')"),
            Tensor("hidden", "layers.{i}.ffn.hidden", r"U = \tilde X' W_1^\top + b_1"),
            Tensor("activation", "layers.{i}.ffn.activation", r"H = \mathrm{GELU}(U)"),
            Tensor("output", "layers.{i}.ffn.output", r"F = H W_2^\top + b_2"),
        ),
    ),
    Stage(
        "Final norm",
        "After the last layer, every token's vector is brought to a common size.",
        (Tensor("norm", "norm", r"Y = \mathrm{LayerNorm}(X)"),),
    ),
    LLAMA_STAGES[-1],
)
