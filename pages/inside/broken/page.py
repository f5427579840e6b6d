"""A model with a part missing or put in wrongly: where the damage begins, and its effect on a search."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.inspection.model.faults import PAD_TOKENS, Faults, broken, broken_trace, stage_drift
from engine.retrieval.ranking import ordinal_ranks
from engine.wording import counted
from pages.inside.broken.faults import FAULTS, drift_figure, ranking_html
from ui.chunk_settings import Cut
from ui.corpus import index_documents, vectors_of
from ui.current import follow_question
from ui.documents import NoDocumentError, are_bundled
from ui.embedding import vectors_now, wanted_vectors
from ui.export import show_figure
from ui.models import is_other_family, load_encoder
from ui.settings import chunks_sidebar
from ui.widgets import MOST_QUESTION, check_typed, kept, show_metrics

DEFAULT_QUESTION = "What does the CarbFix project do with carbon dioxide?"
N_SHOWN, OVERLAP_AT = 5, 10
SAME = "Cosine of its two vectors: 1 means that the fault changes nothing."
NOW_AT = "Place in the broken ranking of the passage that the intact model ranks first."
LEFT = "Passages that are among these in both rankings, in any order."
STAGES = ("embeddings.output", "layers.*.output", "normalized")


def break_model(encoder: Encoder) -> None:
    """Draw the choice of faults, and their effect on a question and its ranking."""
    if is_other_family(encoder, "Breaking the model"):
        return
    documents, cut = chunks_sidebar(encoder)
    changed = follow_question("broken-question", DEFAULT_QUESTION if are_bundled(documents) else "")
    question = st.text_input("Question", **kept("broken-question"), on_change=changed)
    check_typed(question, MOST_QUESTION)
    st.caption(
        "It is asked of the chosen documents, by the intact and by the broken model, and chunks are ranked "
        "by mean vectors without prompts, whatever pooling and retriever the app uses."
    )
    chosen = st.pills(
        "Faults",
        list(FAULTS),
        selection_mode="multi",
        format_func=lambda name: FAULTS[name]["label"],
        key="faults",
        help="\n".join(f"- **{each['label']}**: {each['effect']}" for each in FAULTS.values()).format(
            padded=PAD_TOKENS
        ),
    )
    names = [name for name in FAULTS if name in chosen]
    if not names:
        st.info("The model is intact. Choose a fault to break it.", icon=":material/build:")
        return
    if not question.strip():
        st.warning("Type a question first.")
        return
    for name in names:
        st.caption(f"**{FAULTS[name]['label']}.** {FAULTS[name]['lesson']}")
    show_drift(encoder, question, names)
    if not documents:
        raise NoDocumentError
    st.header("What is left of the search")
    show_ranking(encoder, question, Faults(**dict.fromkeys(names, True)), documents, cut)


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
        f"How far each stage of the question is turned from the intact model. At the text vector, {words}.",
    )
    st.caption(
        "0: the token vectors of the question have the same direction as in the intact model, on average; 1: "
        "they are orthogonal to it. The last point is the vector of the whole question."
    )


def show_ranking(
    encoder: Encoder, question: str, faults: Faults, documents: Sequence[Document], cut: Cut
) -> None:
    """Draw the ranking of the documents by the intact and by the broken model."""
    cut = replace(cut, prompts="none")
    index, faulty = index_documents(documents, encoder, cut, "mean"), broken(encoder, faults)
    cache = vectors_of(documents)
    vectors = vectors_now(wanted_vectors(index.chunks, cut.encoder(faulty), ["mean"], cut.max_tokens, cache))
    [intact_query] = encoder.encode([question], "mean", prompt_name="")
    [broken_query] = faulty.encode([question], "mean", prompt_name="")
    intact, after_fault = index.vectors @ intact_query, vectors["mean"] @ broken_query  # (n_chunks,)
    before, after = ordinal_ranks(intact), ordinal_ranks(after_fault)
    best_after = int(after[before == 1][0])
    top = min(OVERLAP_AT, len(before))
    kept = int(((before <= top) & (after <= top)).sum())
    of_passages = (index.vectors * vectors["mean"]).sum(axis=1)  # (n_chunks,)
    same, over = float(intact_query @ broken_query), counted(len(index.chunks), "passage")
    average, now_at = float(of_passages.mean()), f"{best_after} of {len(before)}"
    show_metrics(
        {
            "Question, intact and broken": (f"{same:.3f}", None, SAME),
            "Passages, intact and broken": (f"{average:.3f}", None, f"The same, on average over {over}."),
            "The best passage is now at": (now_at, None, NOW_AT),
            f"Left of the top {top}": (f"{kept} of {top}", None, LEFT),
        }
    )
    for column, scores, name in zip(st.columns(2), (intact, after_fault), ("Intact", "Broken"), strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{name}: the first {min(N_SHOWN, top)}**")
            st.html(ranking_html(index.chunks, scores, before, after, name == "Broken", N_SHOWN))
    st.caption(
        "Scores of the broken model can be higher than those of the intact one: they compare broken vectors "
        f"with each other. Its median score is {np.median(after_fault):.2f}, the intact model's "
        f"{np.median(intact):.2f}; where all passages score alike, the ranking is left to chance."
    )


break_model(load_encoder())
