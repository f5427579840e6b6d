"""What each token of a text gives to its vector under every pooling."""

from html import escape

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.pooling_shares import contributions, document_frequency, shares, weighs_nothing
from engine.layers.tracing import Array
from engine.tokenizers.encoding import Encoding
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.maps import readable
from ui.pooling_examples import EXAMPLES, MAX_CHARACTERS, cut_notes
from ui.poolings import LABELS, WHAT
from ui.similarity_figures import token_heat_map
from ui.text import show_text
from ui.tokens import text_by_weight

SHARE, CONTRIBUTION = "Share in the sum", "Contribution to the direction"
MEANING = {
    SHARE: "A token's factor in the sum; under max, the share of dimensions in which its value is the "
    "largest.",
    CONTRIBUTION: "How much of the vector's length along its own direction comes from a token. Together they "
    "are 100%. A token that points elsewhere than the others counts less than its share, or below zero.",
}
FIRST_TEXT = "Where does the CarbFix project store its carbon dioxide?"


def show_tokens(encoder: Encoder, max_tokens: int) -> None:
    """Draw what each token of a text gives to its vector, strategy by strategy."""
    st.session_state.setdefault("pooling-tokens-text", FIRST_TEXT)
    st.selectbox(
        "Try one",
        [sentence for example in EXAMPLES.values() for sentence in example.sentences],
        index=None,
        placeholder="Examples",
        key="pooling-tokens-example",
        on_change=take_example,
        help="Fills the box below.",
    )
    text = st.text_area(
        "Text",
        key="pooling-tokens-text",
        persist_state="session",
        max_chars=MAX_CHARACTERS,
        height=80,
        help="Leave the box, or press Ctrl + Enter, to read it.",
    )
    if not text.strip():
        st.info("Type a text to see what its tokens give.", icon=":material/notes:")
        return
    for note in cut_notes([text], encoder, max_tokens):
        st.warning(escape_markdown(note), icon=":material/content_cut:")
    number = st.segmented_control(
        "What to show",
        [CONTRIBUTION, SHARE],
        default=CONTRIBUTION,
        required=True,
        key="pooling-tokens-number",
        persist_state="session",
        help="\n".join(f"- **{name}**: {meaning}" for name, meaning in MEANING.items()),
    )
    st.caption(MEANING[number])
    encoding = encoder.read(text, max_tokens=max_tokens)
    strategies = [strategy for strategy in encoder.poolings if strategy != "pooler"]
    values = values_of(encoding, strategies, number == SHARE, encoder)
    show_map(values, strategies, encoding, number)
    show_painted(values, strategies, encoding)
    show_words(encoding, encoder)


def take_example() -> None:
    """Copy a picked example into the box."""
    state = st.session_state
    if state["pooling-tokens-example"]:
        state["pooling-tokens-text"] = state["pooling-tokens-example"]
        state["pooling-tokens-example"] = None


def values_of(encoding: Encoding, strategies: list[str], is_share: bool, encoder: Encoder) -> Array:
    """Share or contribution of each token under each strategy: ``(n_strategies, n_tokens)``."""
    [states] = encoder.token_states([encoding.ids], strategies)
    measure = shares if is_share else contributions
    return np.stack([measure(states, strategy, encoder.idf) for strategy in strategies])


def show_map(values: Array, strategies: list[str], encoding: Encoding, number: str) -> None:
    """Draw ``(n_strategies, n_tokens)`` as a heat map, and say what stands out."""
    labels = [LABELS[strategy] for strategy in strategies]
    show_figure(
        token_heat_map(values, labels, [readable(token) for token in encoding.tokens], number.lower()),
        "pooling-tokens",
        {"strategies": np.array(strategies), "tokens": np.array(encoding.tokens), "values": values},
        f"{number} of each token under each strategy. "
        + "; ".join(
            f"{label}: most from {encoding.tokens[int(row.argmax())]}"
            for label, row in zip(labels, values, strict=True)
        ),
    )
    special = np.array([start == end for start, end in encoding.offsets])
    if "mean" in strategies and not special.all():
        of_special = float(values[strategies.index("mean"), special].sum())
        st.markdown(
            f"Under the **mean**, [CLS] and [SEP], {special.sum()} of the {len(special)} tokens, make up "
            f"{of_special:.0%} of the {'sum' if number == SHARE else 'direction'}."
        )
    st.caption(
        "Colours stop at the largest value of the rows that use more than one token. The BERT pooler has no "
        "row: it is no sum but a layer on top of [CLS] alone. sum / √length has shares that add up to "
        "√length; its direction is the mean's."
    )


def show_painted(values: Array, strategies: list[str], encoding: Encoding) -> None:
    """Draw the text with each token as dark as what it gives under one strategy."""
    st.markdown("**The text, painted**")
    strategy = st.selectbox(
        "Strategy",
        strategies,
        index=strategies.index("idf" if "idf" in strategies else "attention"),
        format_func=LABELS.__getitem__,
        key=f"pooling-tokens-painted-{len(strategies)}",
        persist_state="session",
        help="\n".join(f"- **{escape_markdown(LABELS[name])}**: {WHAT[name]}" for name in strategies),
    )
    row = values[strategies.index(strategy)]
    show_text(text_by_weight(encoding.tokens, row.clip(min=0), chosen=-1), height=320)
    if (row < 0).any():
        st.caption("Tokens below zero, which pull the vector back, have no colour.")


def show_words(encoding: Encoding, encoder: Encoder) -> None:
    """Draw the IDF weights of a text's tokens, heaviest first."""
    st.markdown("**IDF weights of its tokens**")
    if encoder.idf is None:
        st.caption("There are none: no document is chosen whose chunks could be counted.")
        return
    ids = np.array(encoding.ids)
    if weighs_nothing(ids, encoder.idf):
        st.info(
            "All chunks hold all of these tokens, so none has a weight: IDF pooling takes the plain mean."
        )
    frequency, n_chunks = document_frequency(encoder.idf)
    total = float(encoder.idf[ids].sum()) or 1.0
    distinct = sorted(
        dict(zip(encoding.ids, encoding.tokens, strict=True)).items(), key=lambda t: frequency[t[0]]
    )
    st.dataframe(
        [
            {
                "Token": readable(token),
                "Chunks with it": int(frequency[token_id]),
                "IDF": float(encoder.idf[token_id]),
                "Share": float(encoder.idf[ids[ids == token_id]].sum()) / total,
            }
            for token_id, token in distinct
        ],
        hide_index=True,
        column_config={
            "Chunks with it": st.column_config.NumberColumn(
                format="localized", help=f"Of the {n_chunks:,} chunks of the chosen documents."
            ),
            "IDF": st.column_config.NumberColumn(
                format="%.2f", help="ln((1 + N) / (1 + df)): N chunks in all, df with the token."
            ),
            "Share": st.column_config.NumberColumn(
                format="percent",
                help="Of the weights of this text's tokens, a repeated one counted each time.",
            ),
        },
        alt="IDF weights of the tokens, " + ", ".join(escape(token) for _, token in distinct[:5]) + " first",
    )
    st.caption(
        f"Counted in {n_chunks:,} chunks. A token that no chunk holds weighs most of all, also where it is "
        "only a typing error."
    )
