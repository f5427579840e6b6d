"""The last stages of an encoder's pipeline: the poolings, the model's own first, and the text's vector."""

from engine import Encoder
from engine.layers.pooling import POOLINGS, pooling_label
from engine.models.embedding_head import MODEL_DEFAULT, Dense, EmbeddingHead, Norm
from pages.inside.chunk.tensor_equations import Stage, Tensor
from ui.text import escape_markdown
from ui.tokens import special_names

DENSE_NAMES = {"Tanh": r"\tanh", "Sigmoid": r"\sigma", "Identity": ""}


def pooling_stage(encoder: Encoder) -> Stage:
    """Return the stage of the poolings, the model's own first."""
    own, names = encoder.pooling, encoder.poolings
    if own == MODEL_DEFAULT:
        names, way = (MODEL_DEFAULT, *names), own_words(encoder.head)
    else:
        names = (own, *(name for name in names if name != own))
        way = POOLINGS[own].label
    text = f"The vectors of all tokens become one. This model's own way, shown first, is: {way}. The others "
    text += "are for comparison."
    special = special_names(encoder.tokenizer)
    if special and "[CLS]" not in special:
        text += f" Special tokens of this model: {', '.join(special)}. “[CLS]” stands for its first token."
    tensors = tuple(
        Tensor(
            pooling_label(name),
            f"pooled.{name}",
            own_equation(encoder.head) if name == MODEL_DEFAULT else POOLINGS[name].equation,
        )
        for name in names
    )
    return Stage("Pooling", escape_markdown(text), tensors)


def own_words(head: EmbeddingHead) -> str:
    """Name the poolings and the modules of a model's own head."""
    poolings = " and ".join(POOLINGS[name].label for name in head.poolings)
    parts = [f"{poolings}, joined" if len(head.poolings) > 1 else poolings]
    if not head.include_prompt:
        parts.append("without the tokens of a prompt")
    for step in head.steps:
        if isinstance(step, Dense):
            d_out, d_in = step.parameters.weight.shape
            residual = "" if step.residual is None else ", added to its input"
            parts.append(f"a dense layer from {d_in} to {d_out} numbers ({step.activation}{residual})")
        else:
            parts.append("a layer norm" if isinstance(step, Norm) else "length 1")
    return ", then ".join(parts)


def own_equation(head: EmbeddingHead) -> str:
    """Return the equation of a model's own head: its poolings joined, then its modules."""
    vector = "; ".join(rf"v_{{\text{{{POOLINGS[name].label}}}}}" for name in head.poolings)
    if len(head.poolings) > 1:
        vector = f"[{vector}]"
    for number, step in enumerate(head.steps, start=1):
        if isinstance(step, Dense):
            name = DENSE_NAMES.get(step.activation, rf"\mathrm{{{step.activation}}}")
            bias = "" if step.parameters.bias is None else f" + b_{number}"
            residual = "" if step.residual is None else f" + V_{number} {vector}"
            vector = rf"{name}\left(W_{number} {vector}{bias}\right){residual}"
        else:
            function = "LayerNorm" if isinstance(step, Norm) else "norm"
            vector = rf"\mathrm{{{function}}}\left({vector}\right)"
    return f"v = {vector}"


def vector_stage(head: EmbeddingHead) -> Stage:
    """Return the stage of the text's vector."""
    text = "The pooled vector at length 1: the index stores it, and search compares it by inner product."
    if head.dimensions is not None:
        text = (
            f"The pooled vector at length 1. The index stores its first {head.dimensions} dimensions, at "
            "length 1 again, and search compares them by inner product."
        )
    return Stage("Vector", text, (Tensor("normalized", "normalized", r"\hat v = v / \lVert v \rVert_2"),))
