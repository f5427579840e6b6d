"""The share of each token of a text in its vector under every pooling."""

from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn

from engine import Encoder
from engine.inspection.pooling.token_contributions import (
    document_frequency,
    has_no_idf_weight,
    pooling_shares,
    token_contributions,
)
from engine.layers.pooling import POOLINGS, pooling_label
from engine.layers.tracing import Array
from engine.tokenizers.encoding import Encoding
from engine.wording import counted
from pages.improve.poolings.examples import EXAMPLES, MAX_CHARACTERS, show_cut_notes
from pages.improve.poolings.similarity_figures import token_heat_map
from ui.export import show_figure
from ui.tables import show_table
from ui.text import help_list, show_text
from ui.tokens import text_by_weight, visible_blanks
from ui.widgets import chapters, check_typed, choice, example_choice, kept

SHARE, CONTRIBUTION = "Share in the sum", "Contribution to the direction"
MEANING = {
    SHARE: "A token's factor in the sum; under max, the share of dimensions in which its value is the "
    "largest.",
    CONTRIBUTION: "How much of the vector's length comes from a token. Together they are 100%. A token whose "
    "direction differs from the others' contributes less than its share, or a negative amount.",
}
EVERY_STRATEGY, PAINTED, IDF = "Every strategy", "The text, painted", "IDF weights"
FIRST_TEXT = "Where does the CarbFix project store its carbon dioxide?"


def show_tokens(encoder: Encoder, max_tokens: int) -> None:
    """Draw the share of each token of a text in its vector: of all strategies, of one, or IDF weights."""
    st.session_state.setdefault("pooling-tokens-text", FIRST_TEXT)
    example_choice(
        [sentence for example in EXAMPLES.values() for sentence in example.sentences],
        "pooling-tokens-example",
        lambda sentence: st.session_state.update({"pooling-tokens-text": sentence}),
        help="Fills the box below.",
        as_list=True,
    )
    text = st.text_area(
        "Text",
        **kept("pooling-tokens-text"),
        height=80,
        help="Leave the box, or press Ctrl + Enter, to read it.",
    )
    if not check_typed(text, MAX_CHARACTERS).strip():
        st.info("Type a text to see the shares of its tokens.", icon=":material/notes:")
        return
    show_cut_notes([text], encoder, max_tokens)
    read = encoder.read(text, max_tokens=max_tokens)
    encoding = replace(read, tokens=encoder.tokenizer.readable_tokens(read))
    chapter = chapters((EVERY_STRATEGY, PAINTED, IDF), "tokens-chapter")
    if chapter == IDF:
        show_words(encoding, encoder)
        return
    reason = "\n".join(f"- **{name}**: {meaning}" for name, meaning in MEANING.items())
    number = choice("What to show", [CONTRIBUTION, SHARE], "pooling-tokens-number", reason)
    st.caption(MEANING[number])
    strategies = [strategy for strategy in encoder.poolings if strategy != "pooler"]
    [states] = encoder.token_states([encoding.ids], strategies)
    measure = pooling_shares if number == SHARE else token_contributions
    values = np.stack([measure(states, strategy, encoder.idf) for strategy in strategies])
    if chapter == EVERY_STRATEGY:
        show_map(values, strategies, encoding, number)
    else:
        show_painted(values, strategies, encoding)


def show_map(values: Array, strategies: list[str], encoding: Encoding, number: str) -> None:
    """Draw ``(n_strategies, n_tokens)`` as a heat map, with the share of the special tokens."""
    labels = [pooling_label(strategy) for strategy in strategies]
    show_figure(
        token_heat_map(values, labels, [visible_blanks(token) for token in encoding.tokens], number.lower()),
        "pooling-tokens",
        f"{number} of each token under each strategy. "
        + "; ".join(
            f"{label}: most from {encoding.tokens[int(row.argmax())]}"
            for label, row in zip(labels, values, strict=True)
        ),
    )
    special = np.array([start == end for start, end in encoding.offsets])
    if "mean" in strategies and special.any() and not special.all():
        of_special = float(values[strategies.index("mean"), special].sum())
        st.markdown(
            f"Under the **mean**, the special tokens, {special.sum()} of the {len(special)} tokens, make up "
            f"{of_special:.0%} of the {'sum' if number == SHARE else 'direction'}."
        )
    st.caption(
        "Colours stop at the largest value of the rows that use more than one token. The BERT pooler has no "
        "row: it is not a sum but a layer on top of [CLS]. sum / √length has shares that add up to "
        "√length; its direction is the mean's."
    )


def show_painted(values: Array, strategies: list[str], encoding: Encoding) -> None:
    """Draw the text, each token the darker the larger its share under one strategy."""
    strategy = choice(
        "Strategy",
        strategies,
        f"pooling-tokens-painted-{len(strategies)}",
        help_list(POOLINGS[name] for name in strategies),
        "idf" if "idf" in strategies else "attention",
        pooling_label,
        as_list=True,
    )
    row = values[strategies.index(strategy)]
    show_text(text_by_weight(encoding.tokens, row.clip(min=0), chosen=-1), height=320)
    if (row < 0).any():
        st.caption("Tokens below zero, which shorten the vector, have no colour.")


def show_words(encoding: Encoding, encoder: Encoder) -> None:
    """Draw the IDF weights of a text's tokens, heaviest first."""
    if encoder.idf is None:
        st.caption("There are none: no document is chosen, so there are no chunks to count in.")
        return
    ids = np.array(encoding.ids)
    if has_no_idf_weight(ids, encoder.idf):
        st.info(
            "All chunks contain all of these tokens, so none has a weight: IDF pooling takes the plain mean."
        )
    frequency, n_chunks = document_frequency(encoder.idf)
    total = float(encoder.idf[ids].sum()) or 1.0
    distinct = sorted(
        dict(zip(encoding.ids, encoding.tokens, strict=True)).items(), key=lambda t: frequency[t[0]]
    )
    show_table(
        [
            {
                "Token": visible_blanks(token),
                "Chunks with it": int(frequency[token_id]),
                "IDF": float(encoder.idf[token_id]),
                "Share": float(encoder.idf[ids[ids == token_id]].sum()) / total,
            }
            for token_id, token in distinct
        ],
        "IDF weights of the tokens, " + ", ".join(token for _, token in distinct[:5]) + " first",
        {
            "Chunks with it": NumberColumn(
                format="localized", help=f"Of {counted(n_chunks, 'chunk')} of the chosen documents."
            ),
            "IDF": NumberColumn(
                format="%.2f", help="ln((1 + N) / (1 + df)): N chunks in all, df with the token."
            ),
            "Share": NumberColumn(
                format="percent", help="Share of the sum of the weights of this text's tokens, with repeats."
            ),
        },
    )
    st.caption(
        f"Counted in {counted(n_chunks, 'chunk')}. A token that no chunk contains has the largest weight, "
        "even if it is only a typing error."
    )
