"""A model with a part missing or put in wrongly: where the damage begins, and its effect on a search."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from engine import Encoder
from engine.inspection.model.faults import Faults, broken_trace, broken_vectors, stage_drift
from engine.retrieval.ranking import ordinal_ranks
from engine.wording import counted
from pages.inside.broken.faults import FAULTS, broken_corpus, drift_figure, ranking_html
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.documents import bundled_documents
from ui.export import show_figure
from ui.models import is_other_family, load_encoder
from ui.widgets import MOST_QUESTION, check_typed

DEFAULT_QUESTION = "What does the CarbFix project do with carbon dioxide?"
CUT = Cut("fixed", 128, 16, parent_tokens=0, max_tokens=256, prompts="none")
N_SHOWN, OVERLAP_AT = 5, 10
STAGES = ("embeddings.output", "layers.*.output", "normalized")


def break_model(encoder: Encoder) -> None:
    """Draw the choice of faults, and their effect on a question and its ranking."""
    if is_other_family(encoder, "Breaking the model"):
        return
    question = check_typed(st.text_input("Question", DEFAULT_QUESTION), MOST_QUESTION)
    st.caption(
        "It is asked of the four bundled documents, by the intact and by the broken model, whatever "
        f"documents and settings the app uses: in windows of {CUT.chunk_tokens} tokens with an "
        f"overlap of {CUT.overlap}, by mean vectors."
    )
    chosen = st.pills(
        "Faults",
        list(FAULTS),
        selection_mode="multi",
        format_func=lambda name: FAULTS[name][0],
        key="faults",
        help="\n".join(f"- **{label}**: {does}" for label, does, _ in FAULTS.values()),
    )
    names = [name for name in FAULTS if name in chosen]
    if not names:
        st.info("The model is intact. Choose a fault to break it.", icon=":material/build:")
        return
    if not question.strip():
        st.warning("Type a question first.")
        return
    for name in names:
        st.caption(f"**{FAULTS[name][0]}.** {FAULTS[name][2]}")
    show_drift(encoder, question, names)
    show_ranking(encoder, question, Faults(**dict.fromkeys(names, True)))


def show_drift(encoder: Encoder, question: str, names: Sequence[str]) -> None:
    """Draw the change of each stage of the question, for each fault and for all together."""
    st.header("Where the damage begins")
    intact = encoder.trace(question, "mean", keep=STAGES)
    sets = {name: Faults(**{name: True}) for name in names}
    if len(names) > 1:
        sets["together"] = Faults(**dict.fromkeys(names, True))
    drifts = {
        name: stage_drift(intact, broken_trace(encoder, question, some, keep=STAGES), encoder.config.n_layers)
        for name, some in sets.items()
    }
    words = "; ".join(f"{name}: {stages['normalized']:.2f}" for name, stages in drifts.items())
    show_figure(
        drift_figure(drifts),
        "drift-by-layer",
        {name: np.array(list(stages.values())) for name, stages in drifts.items()},
        f"How far each stage of the question is turned from the intact model. At the text vector, {words}.",
    )
    st.caption(
        "0: the token vectors of the question have the same direction as in the intact model, on average; 1: "
        "they are orthogonal to it. The last point is the vector of the whole question."
    )


def show_ranking(encoder: Encoder, question: str, faults: Faults) -> None:
    """Draw the ranking of the bundled corpus by the intact and by the broken model."""
    st.header("What is left of the search")
    cut = replace(CUT, max_tokens=min(CUT.max_tokens, encoder.config.max_positions))
    index = index_documents(bundled_documents(), encoder, cut, "mean")
    vectors = broken_corpus(index.texts, faults, encoder)
    [intact_query] = encoder.encode([question], "mean", prompt_name="")
    [broken_query] = broken_vectors(encoder, [question], faults)
    intact, broken = index.vectors @ intact_query, vectors @ broken_query  # (n_chunks,)
    before, after = ordinal_ranks(intact), ordinal_ranks(broken)
    best_after = int(after[before == 1][0])
    kept = int(((before <= OVERLAP_AT) & (after <= OVERLAP_AT)).sum())
    of_passages = (index.vectors * vectors).sum(axis=1)  # (n_chunks,)
    first, second, third, fourth = st.columns(4)
    first.metric(
        "Question, intact and broken",
        f"{float(intact_query @ broken_query):.3f}",
        help="Cosine of its two vectors: 1 means that the fault changes nothing.",
    )
    second.metric(
        "Passages, intact and broken",
        f"{float(of_passages.mean()):.3f}",
        help=f"The same, on average over {counted(len(index.chunks), 'passage')} of the corpus.",
    )
    third.metric(
        "The best passage is now at",
        f"{best_after} of {len(before)}",
        help="Place in the broken ranking of the passage that the intact model ranks first.",
    )
    fourth.metric(
        f"Left of the top {OVERLAP_AT}",
        f"{kept} of {OVERLAP_AT}",
        help="Passages that are among the first ten in both rankings, in any order.",
    )
    for column, scores, name in zip(st.columns(2), (intact, broken), ("Intact", "Broken"), strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{name}: the first {N_SHOWN}**")
            st.html(ranking_html(index.chunks, scores, before, after, name == "Broken", N_SHOWN))
    st.caption(
        "Scores of the broken model can be higher than those of the intact one: they compare broken vectors "
        f"with each other. Its median score is {np.median(broken):.2f}, the intact model's "
        f"{np.median(intact):.2f}; where all passages score alike, the ranking is left to chance."
    )


break_model(load_encoder())
