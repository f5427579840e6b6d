"""The pipeline as a flow of stages: tensors, equations, and differences from the official model."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from engine.inspection.model.logit_lens import top_next_tokens
from engine.inspection.model.model_view import ModelView
from engine.layers.tracing import Array
from engine.tokenizers.encoding import Encoding
from engine.wording import shortened
from pages.inside.chunk.decoder_stages import decoder_stages
from pages.inside.chunk.encoder_stages import encoder_stages
from pages.inside.chunk.figures import tensor_map
from pages.inside.chunk.model_pass import Input, View, official_differences, token_choice
from pages.inside.chunk.tensor_equations import Stage
from pages.inside.chunk.word_rows import word_rows
from ui.colours import BLUE, FAINT, SECOND_TEXT_TOKEN, SPECIAL_TOKEN, TEXT_TOKEN
from ui.export import show_figure
from ui.figures import probability_bars
from ui.models import load_decoder, load_encoder
from ui.tables import show_table
from ui.text import escape_markdown, show_text
from ui.tokens import token_labels, visible_blanks
from ui.widgets import chapters, choice

# The table of words covers this many characters.
STEP_CHARACTERS = 400
CHIP = (
    "display:inline-block;margin:2px;padding:2px 6px;border-radius:4px;text-align:center;"
    "font-family:monospace;font-size:13px;line-height:1.35"
)


def show_pipeline(given: Input, seen: ModelView, view: View) -> None:
    """Draw the stages as a flow, and the chosen one in full, compared with the official encoder's."""
    if given.model == "encoder":
        stages = encoder_stages(load_encoder(), view.layer)
    else:
        stages = decoder_stages(load_decoder().config, view.layer)
    number = chapters(
        range(len(stages)),
        f"stage-{given.model}",
        default=2,
        format_func=lambda i: f"{i + 1} {stages[i].label}" + (" →" if i + 1 < len(stages) else ""),
        label="Pipeline, from text to vector"
        if given.model == "encoder"
        else "Pipeline, from text to next token",
    )
    stage = stages[number]
    gaps = official_panel(given, stages, view.layer) if view.is_compared else {}
    st.write(stage.description)
    if stage.label == "Tokens":
        show_tokens(given, seen)
    elif stage.label == "Next token":
        show_next_tokens(seen)
    else:
        show_tensor(stage, seen, view, gaps)


def official_panel(given: Input, stages: Sequence[Stage], layer: int) -> dict[str, float]:
    """Draw each stage's difference from the official model; return those of all tensors, by their names."""
    gaps = official_differences(given)
    for column, stage in zip(st.columns(len(stages)), stages, strict=True):
        own = [gaps[name] for tensor in stage.tensors if (name := tensor.in_layer(layer)) in gaps]
        words = f"{max(own):.0e}" if own else "not compared"
        if stage.label == "Tokens":
            words = "OTHER IDS" if gaps["ids"] else "same ids"
        column.caption(f"**{stage.label}**  \n{words}")
    st.caption(
        "Largest absolute difference of each stage, from the text on. Two correct float32 programs differ by "
        "rounding: some numbers of the default model are near 190, where neighbouring float32 numbers lie "
        "1.5e-5 apart."
    )
    return gaps


def show_tokens(given: Input, seen: ModelView) -> None:
    """Draw the tokens, and how each word became its tokens."""
    st.caption(f"{len(seen.encoding)} tokens. The number below each is its id, its row in the token table.")
    show_text(token_chips(seen.tokens, seen.encoding, seen.special), height=240)
    tokenizer = load_encoder().tokenizer if given.model == "encoder" else load_decoder().tokenizer
    with st.expander("How the words were cut, step by step", expanded=len(seen.encoding) < 30):
        for text in filter(None, (given.text, given.pair)):
            if len(text) > STEP_CHARACTERS:
                st.caption(f"Of the first {STEP_CHARACTERS} characters.")
            show_table(
                word_rows(tokenizer, text[:STEP_CHARACTERS]),
                f"The words of “{shortened(text, 40)}” and the tokens that each was cut into",
            )


def token_chips(tokens: Sequence[str], encoding: Encoding, special: Array) -> str:
    """Return a chip for each token: its text above its id, its place in the text where the mouse is."""
    chips = []
    for number, (token, token_id) in enumerate(zip(tokens, encoding.ids, strict=True)):
        start, end = encoding.offsets[number]
        second = encoding.type_ids[number] == 1
        colour = SPECIAL_TOKEN if special[number] else SECOND_TEXT_TOKEN if second else TEXT_TOKEN
        place = f"characters {start}–{end}" if end > start else "stands for no text"
        segment = ", segment 1" if second else ""
        chips.append(
            f'<span title="token {number}, id {token_id}, {place}{segment}" '
            f'style="{CHIP};background:{colour}">{escape(visible_blanks(token))}<br>'
            f'<span style="{FAINT};font-size:11px">{token_id}</span></span>'
        )
    return "".join(chips)


def show_tensor(stage: Stage, seen: ModelView, view: View, gaps: Mapping[str, float]) -> None:
    """Draw one tensor of a stage, with its equation, its shape and its difference, if it is known."""
    by_label = {tensor.label: tensor for tensor in stage.tensors}
    tensor = by_label[choice("Tensor", list(by_label), f"tensor-{stage.tensors[0].name}")]
    name = tensor.in_layer(view.layer)
    array = seen.trace[name]
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.latex(tensor.equation)
    shape = " × ".join(map(str, array.shape))
    facts = f"`{name}`  \nshape **{shape}**" + (" (heads first)" if array.ndim == 3 else "")
    if name in gaps:
        gap = f"{gaps[name]:.1e}" if gaps[name] else f"0, all {array.size:,} numbers are equal"
        facts += f"  \ndifference from the official model **{gap}**"
    right.markdown(facts)
    labels = token_labels(seen.tokens)
    columns = None
    if array.ndim == 3:
        n_query_heads = len(seen.attention.distances[0])
        own = view.head * len(array) // n_query_heads  # several query heads may share a key head
        st.caption(f"Head {own} of {len(array)}.")
        shown, title = array[own], "dimension of the head"
        if tensor.label in ("weights", "scores"):
            title, columns = "key (token attended to)", labels
        if tensor.label == "weights" and (pair := strongest_pair(shown, seen.special)):
            query, key = (escape_markdown(visible_blanks(seen.tokens[token])) for token in pair)
            st.write(
                "Each row is a token, and says how much it attends to the token of each column. Of the "
                f"words, **{query}** attends most to another, to **{key}**, with {shown[pair]:.0%} of its "
                "attention."
            )
    else:
        shown, title = np.atleast_2d(array), "dimension"
    rows = labels if len(shown) == len(labels) else ["vector"]
    show_figure(
        tensor_map(shown, rows, title, columns),
        name=f"{name}{f'.head{view.head}' if array.ndim == 3 else ''}",
        alt=f"Heat map of {tensor.label}, {shape}",
    )


def strongest_pair(weights: Array, special: Array) -> tuple[int, int] | None:
    """Return query and key of the largest weight between two tokens, none special; None without."""
    left_out = special[:, None] | special | np.eye(len(special), dtype=bool)
    if left_out.all():
        return None
    query, key = np.unravel_index(np.where(left_out, -1, weights).argmax(), weights.shape)
    return int(query), int(key)


def show_next_tokens(seen: ModelView) -> None:
    """Draw the most probable next tokens after a chosen token."""
    decoder = load_decoder()
    last = len(seen.tokens) - 1
    token = token_choice("After token", seen.tokens, last, "next-after", "Predict the token after it.")
    best = top_next_tokens(decoder.unembed(seen.trace["norm"][token][None]), 10)
    words = [visible_blanks(decoder.token_text(int(number))) for number in best.ids[0]]
    labels = [f"{rank}. {word}" for rank, word in enumerate(words, start=1)]
    st.latex(r"p = \mathrm{softmax}(Y T_{token}^\top)")
    show_figure(
        probability_bars(best.scores[0].tolist(), labels, BLUE),
        name=f"next-tokens-after-{token}",
        alt="Most probable next tokens",
    )
