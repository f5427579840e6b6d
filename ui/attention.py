"""What attention does, in one layer and over all of them, and a token's way through the layers."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from engine.inspection.attention import without_tokens
from engine.inspection.look import Look
from engine.inspection.vectors import Nearest, logit_lens, nearest_words, similarity
from ui.export import show_figure
from ui.inside import Input, longest, token_choice
from ui.maps import arcs, head_grid, layer_head_map, readable, similarity_map, weights_map
from ui.models import load_decoder, load_encoder
from ui.text import show_text
from ui.tokens import text_by_weight

NEAREST = 5


def show_attention(seen: Look, layer: int, head: int, causal: bool, without_special: bool) -> None:
    """Draw one layer's attention: all heads small, one large, and one token's arcs."""
    weights = seen.trace[f"layers.{layer}.attention.weights"]  # (n_heads, n_tokens, n_tokens)
    kept = ~seen.special if without_special else np.ones_like(seen.special)
    weights = without_tokens(weights, ~kept)
    tokens = [token for token, keep in zip(seen.tokens, kept, strict=True) if keep]
    if not tokens:
        st.info("Only special tokens are here: type some text, or switch them on.")
        return
    st.markdown(f"**All heads of layer {layer}**")
    show_figure(
        head_grid(weights, head),
        name=f"attention-layer{layer}",
        arrays={"weights": weights},
        alt=f"Small attention maps of all heads of layer {layer}",
    )
    st.caption(
        "Rows are the tokens that attend, columns those attended to; bright is strong, each head on its own "
        "scale. A diagonal looks at neighbours, a bright column at one token that all look at."
    )
    st.markdown(f"**Head {head} of layer {layer}**")
    show_figure(
        weights_map(weights[head], tokens, causal),
        name=f"attention-layer{layer}-head{head}",
        arrays={"weights": weights[head], "tokens": np.array(tokens)},
        alt=f"Attention map of head {head} of layer {layer}",
    )
    if causal:
        st.caption("The empty half is the causal mask: no token sees what comes after it.")
    st.markdown("**From one token**")
    special = seen.special[kept]
    words = ["" if hidden else token for token, hidden in zip(tokens, special, strict=True)]
    token = token_choice(
        "Token",
        tokens,
        longest(words),
        "arc-token",
        "Blue above is what it attends to, orange below what attends to it, the widest the strongest.",
    )
    show_figure(
        arcs(weights[head], tokens, token),
        name=f"arcs-layer{layer}-head{head}-token{token}",
        arrays={"attends_to": weights[head][token], "attended_by": weights[head][:, token]},
        alt=f"Arcs from token {token} of head {head}",
    )
    show_text(text_by_weight(tokens, weights[head][token], token), height=240)


def show_layers(seen: Look, causal: bool, without_special: bool) -> None:
    """Draw what attention does over all layers: rollout, distance, and share of special tokens."""
    kept = ~seen.special if without_special else np.ones_like(seen.special)
    tokens = [token for token, keep in zip(seen.tokens, kept, strict=True) if keep]
    if not tokens:
        st.info("Only special tokens are here: type some text, or switch them on.")
        return
    what = "the first token" if causal else "[CLS] and [SEP]"
    st.markdown("**How far each head looks**")
    distances = np.stack(seen.attention.distances)  # (n_layers, n_heads)
    show_figure(
        layer_head_map(distances, "tokens", ".1f"),
        name="attention-distance",
        arrays={"distance": distances},
        alt="Mean attention distance of each head",
    )
    st.caption("Mean number of tokens between a token and what it attends to.")
    st.markdown(f"**How much goes to {what}**")
    shares = np.stack(seen.attention.shares)  # (n_layers, n_heads)
    show_figure(
        layer_head_map(shares, "share", ".0%"),
        name="attention-special-share",
        arrays={"share": shares},
        alt=f"Share of each head's attention that goes to {what}",
    )
    st.caption("A head with nothing to say about a token parks its attention there.")
    st.markdown("**Attention rollout**")
    rollout = seen.attention.rollout()
    show_figure(
        weights_map(rollout, tokens, causal),
        name="attention-rollout",
        arrays={"rollout": rollout, "tokens": np.array(tokens)},
        alt="Attention rollout over all layers",
    )
    st.caption(
        "How much of each token's last vector (row) comes from each input token (column): the layers' "
        "attention multiplied, half of it the residual connection (Abnar & Zuidema 2020)."
    )


def show_way(given: Input, seen: Look) -> None:
    """Draw how one token's vector changes from layer to layer."""
    words = ["" if special else word for word, special in zip(seen.tokens, seen.special, strict=True)]
    token = token_choice("Token", seen.tokens, longest(words), "way-token", "The vector to follow.")
    states = seen.states(token)  # (n_layers + 1, d_model)
    cosines = similarity(states)
    names = ["embedding", *(f"layer {number}" for number in range(len(states) - 1))]
    st.markdown("**How alike its vectors are**")
    show_figure(
        similarity_map(cosines),
        name=f"layers-token{token}",
        arrays={"vectors": states, "cosines": cosines},
        alt="Cosines between a token's vectors after each layer",
    )
    if given.model == "encoder":
        encoder = load_encoder()
        st.markdown("**Nearest words of the embedding table**")
        st.dataframe(
            nearest_rows(
                names,
                nearest_words(states, encoder.weights.token_table, NEAREST),
                encoder.tokenizer.token,
                ".2f",
            ),
            hide_index=True,
            height="content",
        )
        st.caption(
            "The words whose embeddings point most nearly the same way, with the cosine. The last layers "
            "leave the words behind: they are trained to be averaged into the vector of a text."
        )
    else:
        decoder = load_decoder()
        st.markdown("**Logit lens: what it would say next after each layer**")
        st.dataframe(
            nearest_rows(
                names,
                logit_lens(states, decoder, NEAREST),
                lambda number: readable(decoder.token_text(number)),
                ".1%",
            ),
            hide_index=True,
            height="content",
        )
        st.caption(
            "Each layer's vector goes through the final norm and the token table as if it were the last "
            "(nostalgebraist 2020)."
        )


def nearest_rows(
    names: Sequence[str], nearest: Nearest, word: Callable[[int], str], number_format: str
) -> list[dict[str, str]]:
    """Return a row a layer: its best words, each with its score."""
    return [
        {"after": name}
        | {
            f"{rank}.": f"{word(int(number))}  {score:{number_format}}"
            for rank, (number, score) in enumerate(zip(ids, scores, strict=True), start=1)
        }
        for name, ids, scores in zip(names, nearest.ids, nearest.scores, strict=True)
    ]
