"""Similarity matrices of a few sentences under several poolings, side by side."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations, islice

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.pooling.token_contributions import has_no_idf_weight
from engine.layers.pooling import POOLINGS, pooling_label
from engine.layers.tracing import Array
from pages.improve.poolings.examples import sentence_input, show_cut_notes
from pages.improve.poolings.pooled_chunks import DIGESTS
from pages.improve.poolings.similarity_figures import cosine_matrix
from ui.export import show_figure
from ui.text import escape_markdown, help_list, show_text
from ui.widgets import kept

SHOWN_AT_FIRST = ("mean", "cls", "max", "idf")


def show_sentences(encoder: Encoder, max_tokens: int) -> None:
    """Draw the cosines of a few sentences, read up to ``max_tokens``, under every chosen pooling."""
    sentences, example = sentence_input("pooling-sentences")
    # a strategy chosen from one set may be missing from another
    key = f"pooling-sentences-strategies-{len(encoder.poolings)}"
    strategies = strategy_pills(encoder.poolings, SHOWN_AT_FIRST, key)
    if encoder.idf is None:
        st.caption(
            "IDF is left out: it weighs words by how few chunks of your documents contain them, and no "
            "document is chosen. A handful of sentences is too few to count words in."
        )
    if len(sentences) < 2:
        few = "There is no sentence yet" if not sentences else "There is one sentence"
        st.info(f"{few}: write two or more, one a line, to compare them.", icon=":material/notes:")
        return
    rows = "".join(
        f'<div dir="auto"><b>{number}</b>&ensp;{escape(sentence)}</div>'
        for number, sentence in enumerate(sentences, start=1)
    )
    show_text(rows, height=240 if sum(len(sentence) for sentence in sentences) > 1200 else None)
    show_cut_notes(sentences, encoder, max_tokens)
    if same := pairs_text(
        [(i, j) for i, j in combinations(range(len(sentences)), 2) if sentences[i] == sentences[j]]
    ):
        st.info(f"The same twice: {same}. Their cosine is 1 under every strategy.")
    show_weightless(sentences, encoder, max_tokens, "sentence")
    if not strategies:
        st.info("Pick one or more strategies above.", icon=":material/check_box:")
        return
    cosines = cosines_of(sentences, encoder, max_tokens)
    shown = {strategy: cosines[strategy] for strategy in strategies}
    if example is None:
        st.markdown(most_alike(shown))
    else:
        st.markdown(f"**What to look for.** {example.meaning} {headline(shown)}")
    show_matrices(shown, "pooling-sentences")
    st.caption(
        "Each cell is the cosine of two sentences' vectors, in the same colours in all figures. Each "
        "strategy has its own level, so a single high cosine says little: look at how far apart the cells of "
        "one figure are."
    )


def strategy_pills(options: Sequence[str], default: Sequence[str], key: str, note: str = "") -> list[str]:
    """Draw the choice of strategies; return the chosen ones in their usual order."""
    picked = st.pills(
        "Strategies",
        options,
        selection_mode="multi",
        default=[strategy for strategy in default if strategy in options],
        format_func=pooling_label,
        **kept(key),
        help=help_list(POOLINGS[name] for name in options) + note,
    )
    return [strategy for strategy in options if strategy in picked]


def show_weightless(texts: Sequence[str], encoder: Encoder, max_tokens: int, name: str) -> None:
    """Draw a note on the texts in which no token has an IDF weight."""
    if encoder.idf is None:
        return
    ids = [np.array(encoder.read(text, max_tokens=max_tokens).ids) for text in texts]
    weightless = [number for number, own in enumerate(ids, 1) if has_no_idf_weight(own, encoder.idf)]
    if weightless:
        st.info(
            f"No word of {name} {', '.join(map(str, weightless))} has an IDF weight, since all chunks "
            "contain them. IDF pooling takes the plain mean there."
        )


def pairs_text(found: Sequence[tuple[int, int]]) -> str:
    """``[(0, 1), (0, 2)] -> "1 and 2, 1 and 3"``."""
    return ", ".join(f"{i + 1} and {j + 1}" for i, j in found)


@st.cache_data(
    max_entries=64,
    show_spinner="Embedding under every strategy…",
    show_time=True,
    scope="session",
    hash_funcs=DIGESTS,
)
def cosines_of(texts: Sequence[str], encoder: Encoder, max_tokens: int) -> dict[str, Array]:
    """Return the cosines between texts under every strategy, ``{name: (n_texts, n_texts)}``."""
    vectors = encoder.encode(texts, list(encoder.poolings), max_tokens=max_tokens)
    return {strategy: own @ own.T for strategy, own in vectors.items()}


def headline(cosines: Mapping[str, Array]) -> str:
    """Count the strategies that put sentence 1 nearer to 2 than to 3, in words; as Markdown."""
    gaps = {strategy: float(own[0, 1] - own[0, 2]) for strategy, own in cosines.items()}
    right = [strategy for strategy, gap in gaps.items() if gap > 0]
    best, worst = max(gaps, key=gaps.__getitem__), min(gaps, key=gaps.__getitem__)

    def gap_words(strategy: str) -> str:
        own = cosines[strategy]
        label = escape_markdown(pooling_label(strategy))
        return f"**{label}** puts 1 and 2 at {own[0, 1]:.2f}, 1 and 3 at {own[0, 2]:.2f}"

    if len(gaps) == 1:
        words = "Here 1 is nearer to 2." if right else "Here 1 is no nearer to 2 than to 3."
        return f"{words} {gap_words(best)}."
    if not right:
        return (
            f"**None** of these strategies puts 1 nearer to 2. Least wrong: {gap_words(best)}. Most wrong: "
            f"{gap_words(worst)}."
        )
    how_many = "All of these" if len(right) == len(gaps) else f"**{len(right)} of {len(gaps)}**"
    return (
        f"{how_many} strategies put 1 nearer to 2. The widest gap: {gap_words(best)}. The narrowest: "
        f"{gap_words(worst)}."
    )


def most_alike(cosines: Mapping[str, Array]) -> str:
    """Return the most and the least similar two sentences under each strategy; as Markdown."""
    lines = []
    for strategy, own in cosines.items():
        order = sorted(combinations(range(len(own)), 2), key=lambda pair: -own[pair])
        most, least = order[0], order[-1]
        line = f"- **{escape_markdown(pooling_label(strategy))}**: {pairs_text([most])} at {own[most]:.2f}"
        if len(order) > 1:
            line += f"; least alike {pairs_text([least])} at {own[least]:.2f}"
        lines.append(line)
    return "Most alike:\n" + "\n".join(lines)


def show_matrices(cosines: Mapping[str, Array], name: str) -> None:
    """Draw a heat map of cosines ``(n, n)`` for each strategy, several side by side where they fit."""
    n_sentences = len(next(iter(cosines.values())))
    # the tenth below the lowest of all cosines: the start of one colour scale for all figures
    lowest = float(np.floor(10 * min(own.min() for own in cosines.values()) - 0.5) / 10)
    n_columns = min(len(cosines), 4 if n_sentences <= 3 else 3 if n_sentences <= 5 else 2)
    items = list(cosines.items())
    for start in range(0, len(items), n_columns):
        for column, (strategy, own) in zip(
            st.columns(n_columns), items[start : start + n_columns], strict=False
        ):
            with column:
                label = pooling_label(strategy)
                st.markdown(f"**{escape_markdown(label)}**")
                pairs = islice(combinations(range(n_sentences), 2), 12)
                cells = "; ".join(f"{i + 1} and {j + 1}: {own[i, j]:.2f}" for i, j in pairs)
                show_figure(
                    cosine_matrix(own, lowest),
                    f"{name}-{strategy}",
                    f"How alike the sentences are, {label}. {cells}.",
                )
