"""Stages of a pipeline with the equation of every tensor, and those of the decoders."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.installed import rows_of


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


def embeddings(description: str, equations: Mapping[str, str]) -> Stage:
    """Return the stage of the embeddings, given the equations of its arrays."""
    return Stage("Embeddings", description, of_part("embeddings", equations))


def attention(description: str, equations: Mapping[str, str]) -> Stage:
    """Return the stage of attention, given the equations of its arrays."""
    return Stage("Attention", description, of_part("layers.{i}.attention", equations))


def feed_forward(description: str, output: str, equations: Mapping[str, str]) -> Stage:
    """Return the stage of the feed-forward network, given the equations of its output and its arrays."""
    inner = of_part("layers.{i}.ffn", equations)
    return Stage("Feed-forward", description, (Tensor("layer output", "layers.{i}.output", output), *inner))


def of_part(part: str, equations: Mapping[str, str]) -> tuple[Tensor, ...]:
    """Return the tensors of a part of the model, given their equations by label."""
    names = {label: "type" if label == "segment" else label.replace(" ", "_") for label in equations}
    return tuple(Tensor(label, f"{part}.{names[label]}", equations[label]) for label in equations)


def final_norm(norm: str) -> Stage:
    """Return the stage of the norm behind the last layer."""
    description = "After the last layer, every token's vector is brought to a common size."
    return Stage("Final norm", description, (Tensor("norm", "norm", rf"Y = {norm}(X)"),))


def gated_equations(source: str, activation: str) -> dict[str, str]:
    """Return the equations of a feed-forward network with gates (Shazeer 2020); a key of `ACTIVATIONS`."""
    return {
        "gate": rf"G = {source} W_{{gate}}^\top",
        "hidden": rf"U = {source} W_{{up}}^\top",
        "activation": rf"H = {ACTIVATIONS[activation]}(G) \odot U",
        "output": r"F = H W_{down}^\top",
    }


EQUATIONS: dict[str, dict[str, str]] = {}  # of the arrays of a part, by their names
for row in rows_of("equations.csv"):
    EQUATIONS.setdefault(row["part"], {})[row["array"]] = row["equation"]
ACTIVATIONS, NORMED_HEADS = EQUATIONS["activations"], EQUATIONS["normed heads"]
LLAMA_ATTENTION = EQUATIONS["llama attention"]

BYTE_PAIRS = "Byte-level BPE starts from bytes and repeatedly merges the pair that it learnt first."
MASKED = "As in the encoder, but a token sees only itself and the tokens before it: the rest is masked."
# The output of a layer whose norms are in front of attention and feed-forward.
ADDED = r"X_{next} = X' + F, \quad X' = X + O"

LLAMA_STAGES = (
    Stage("Tokens", BYTE_PAIRS),
    embeddings(
        "Each token's id selects a row of a table. Position comes in later, by rotating queries and keys.",
        {"output": r"X = T_{token}[\mathrm{ids}]"},
    ),
    attention(f"{MASKED} Several query heads may share one head of keys and values.", LLAMA_ATTENTION),
    feed_forward(
        "SwiGLU: one half of a wide layer opens or closes gates for the other half.",
        ADDED,
        {"norm": r"\tilde X' = \mathrm{RMSNorm}(X')"} | gated_equations(r"\tilde X'", "silu"),
    ),
    final_norm(r"\mathrm{RMSNorm}"),
    Stage(
        "Next token",
        "The inner product with each row of the token table is the score of that token; the softmax turns "
        "the scores into probabilities.",
    ),
)

GPT2_STAGES = (
    LLAMA_STAGES[0],
    embeddings(
        "Each token's id selects a row of one table, its position a row of another, and the two are added.",
        EQUATIONS["gpt2 embeddings"],
    ),
    attention(MASKED, LLAMA_ATTENTION | EQUATIONS["gpt2 attention"]),
    feed_forward(
        "Every vector on its own goes through a wide layer and back.", ADDED, EQUATIONS["gpt2 feed-forward"]
    ),
    final_norm(r"\mathrm{LayerNorm}"),
    LLAMA_STAGES[-1],
)
