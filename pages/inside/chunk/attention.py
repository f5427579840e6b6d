"""Attention in one layer and over all layers, and one token's vector through the layers."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from engine.inspection.model.logit_lens import TopTokens, logit_lens, nearest_tokens, pairwise_cosines
from engine.inspection.model.model_view import ModelView, without_tokens
from engine.layers.tracing import Array
from pages.inside.chunk.figures import arcs, head_grid, similarity_map
from pages.inside.chunk.model_pass import Input, View, longest, token_choice
from ui.export import show_figure
from ui.figures import layer_head_map, weights_map
from ui.models import load_decoder, load_encoder
from ui.tables import show_table
from ui.text import escape_markdown, show_text
from ui.tokens import text_by_weight, token_labels, visible_blanks
from ui.widgets import chapters

NEAREST = 5
ALL_HEADS, ONE_HEAD, ONE_TOKEN = "All heads", "One head", "One token"
EACH_HEAD, ROLLOUT = "Each head", "Rollout"


def show_attention(seen: ModelView, view: View) -> None:
    """Draw one layer's attention: all heads small, one large, or one token's arcs."""
    layer, head = view.layer, view.head
    kept, tokens = kept_tokens(seen, view)
    if not tokens:
        return
    weights = without_tokens(seen.trace[f"layers.{layer}.attention.weights"], ~kept)  # (n_heads, n, n)
    chapter = chapters((ALL_HEADS, ONE_HEAD, ONE_TOKEN), "attention-chapter")
    if chapter == ALL_HEADS:
        st.markdown(f"**All heads of layer {layer}**")
        show_figure(
            head_grid(weights, head, token_labels(tokens)),
            name=f"attention-layer{layer}",
            alt=f"Small attention maps of all heads of layer {layer}",
        )
        st.caption(
            "Rows are the tokens that attend, columns those attended to; bright is strong, each head on its "
            "own scale. A diagonal attends to neighbours; a bright column is one token that all attend to."
        )
    elif chapter == ONE_HEAD:
        st.markdown(f"**Head {head} of layer {layer}**")
        show_figure(
            weights_map(weights[head], tokens, view.is_causal),
            name=f"attention-layer{layer}-head{head}",
            alt=f"Attention map of head {head} of layer {layer}",
        )
        if view.is_causal:
            st.caption("The empty half is the causal mask: no token sees what comes after it.")
    else:
        st.markdown(f"**From one token, in head {head} of layer {layer}**")
        token = token_choice(
            "Token",
            tokens,
            longest(tokens, seen.special[kept]),
            "arc-token",
            "Blue, above: the tokens it attends to. Orange, below: those that attend to it. Wider is "
            "stronger.",
        )
        show_figure(
            arcs(weights[head], tokens, token),
            name=f"arcs-layer{layer}-head{head}-token{token}",
            alt=f"Arcs from token {token} of head {head}",
        )
        show_text(text_by_weight(tokens, weights[head][token], token), height=240)


def kept_tokens(seen: ModelView, view: View) -> tuple[Array, list[str]]:
    """Return a mask of the tokens to show, and these tokens; draw a note if there are none."""
    kept = ~seen.special if view.without_special else np.ones_like(seen.special)
    tokens = [token for token, keep in zip(seen.tokens, kept, strict=True) if keep]
    if not tokens:
        st.info("Only special tokens are here: type some text, or switch them on.")
    return kept, tokens


def show_layers(seen: ModelView, view: View) -> None:
    """Draw attention over all layers: distance and share of special tokens of each head, or rollout."""
    _, tokens = kept_tokens(seen, view)
    if not tokens:
        return
    if chapters((EACH_HEAD, ROLLOUT), "layers-chapter") == ROLLOUT:
        st.markdown("**Attention rollout**")
        rollout = seen.attention.rollout()
        show_figure(
            weights_map(rollout, tokens, view.is_causal),
            name="attention-rollout",
            alt="Attention rollout over all layers",
        )
        st.caption(
            "How much of each token's last vector (row) comes from each input token (column): the layers' "
            "attention multiplied, half of it the residual connection (Abnar & Zuidema 2020)."
        )
        return
    st.markdown("**Attention distance of each head**")
    distances = np.stack(seen.attention.distances)  # (n_layers, n_heads)
    show_figure(
        layer_head_map(distances, "tokens", ".1f"),
        name="attention-distance",
        alt="Mean attention distance of each head",
    )
    st.caption("Mean number of tokens between a token and those it attends to.")
    st.markdown(f"**Share of attention on {escape_markdown(view.special)}**")
    shares = np.stack(seen.attention.shares)  # (n_layers, n_heads)
    show_figure(
        layer_head_map(shares, "share", ".0%"),
        name="attention-special-share",
        alt=f"Share of each head's attention that goes to {view.special}",
    )
    st.caption("A head that finds nothing relevant for a token puts its attention there.")


def show_way(given: Input, seen: ModelView) -> None:
    """Draw the change of one token's vector from layer to layer: cosines, nearest words or logit lens."""
    first = longest(seen.tokens, seen.special)
    token = token_choice("Token", seen.tokens, first, "way-token", "The vector to follow.")
    states = seen.states(token)  # (n_layers + 1, d_model)
    names = ["embedding", *(f"layer {number}" for number in range(len(states) - 1))]
    st.markdown("**Similarity of its vectors**")
    show_figure(
        similarity_map(pairwise_cosines(states), names),
        name=f"layers-token{token}",
        alt="Cosines between a token's vectors after each layer",
    )
    if given.model == "encoder":
        encoder = load_encoder()
        title = "Nearest words of the embedding table"
        nearest = nearest_tokens(states, encoder.weights.token_table, NEAREST)
        rows = nearest_rows(names, nearest, lambda n: visible_blanks(encoder.tokenizer.readable(n)), ".2f")
        caption = (
            "The words whose embeddings have the most similar direction, with the cosine. The last layers "
            "leave the words behind: they are trained for the vector of the whole text."
        )
    else:
        decoder = load_decoder()
        title = "Logit lens: the next token predicted after each layer"
        nearest = logit_lens(states, decoder, NEAREST)
        rows = nearest_rows(names, nearest, lambda number: visible_blanks(decoder.token_text(number)), ".1%")
        caption = (
            "Each layer's vector goes through the final norm and the token table as if it were the last "
            "(nostalgebraist 2020)."
        )
    st.markdown(f"**{title}**")
    show_table(rows, title)
    st.caption(caption)


def nearest_rows(
    names: Sequence[str], nearest: TopTokens, word: Callable[[int], str], number_format: str
) -> list[dict[str, str]]:
    """Return a row per layer: its best words, each with its score."""
    return [
        {"after": name}
        | {
            f"{rank}.": f"{word(int(number))}  {score:{number_format}}"
            for rank, (number, score) in enumerate(zip(ids, scores, strict=True), start=1)
        }
        for name, ids, scores in zip(names, nearest.ids, nearest.scores, strict=True)
    ]
