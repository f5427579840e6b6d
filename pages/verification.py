"""The hand-written model against the official one, and what becomes of it with a part missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.splitters import Splitting
from engine.errors import GlassboxError
from engine.inspection.faults import Faults, broken_trace, broken_vectors, drift, ranks
from engine.layers.tracing import Array
from engine.retrieval.index import Index
from engine.verify import StageCheck
from ui.chunk_settings import Cut
from ui.corpus import bundled_documents, index_documents
from ui.export import show_figure
from ui.faults import FAULTS, broken_corpus, drift_figure, fault_switches, names_of, ranking_html
from ui.frame import require_frame
from ui.models import load_encoder
from ui.verification import check_rows, difference_figure, layer_differences, verify

DEFAULT_TEXT = "The cat sat unhappily on the mat — naïve, perhaps, but 東京 was far away 🙂."
DEFAULT_QUESTION = "What does the CarbFix project do with carbon dioxide?"
ROUNDING = " That may be rounding: compare in float64, where rounding all but vanishes and a mistake stays."
CUT = Cut(Splitting("fixed", 128, 16), parent_tokens=0, max_tokens=256)
TOP, OVERLAP_AT = 5, 10
STAGES = ("embeddings.output", "layers.*.output", "normalized")


@dataclass(frozen=True)
class Verified:
    """A comparison that was run."""

    n_tokens: int
    precision: str
    checks: list[StageCheck]
    seconds: float


def verify_tab(encoder: Encoder) -> None:
    """Draw the comparison with the official model."""
    st.write(
        "The same text goes through this project's NumPy and through sentence-transformers on PyTorch, with "
        "the same weights. Every array on the way is compared, not the final vector alone."
    )
    with st.form("verify-form", border=False):
        text = st.text_area(
            "Text to compare on",
            DEFAULT_TEXT,
            max_chars=20_000,
            key="verify-text",
            persist_state="session",
            help=f"Any text: odd characters, other languages, long or short. The first {encoder.max_tokens} "
            "tokens of it are read by both models.",
        )
        precision = st.segmented_control(
            "Precision",
            ["float32", "float64"],
            default="float32",
            help="float32 is what the models run in. float64 has twice the digits: differences that "
            "shrink with it are rounding, those that stay would be mistakes.",
        )
        asked = st.form_submit_button(
            "Compare with the official model",
            type="primary",
            help="Loads PyTorch and the official model: about ten seconds and 400 MB the first time.",
        )
    if asked and not text.strip():
        st.warning("Type a text first.")
    elif asked:
        start = perf_counter()
        checks = verify(text, precision or "float32")
        n_tokens = len(encoder.truncate(encoder.tokenizer.encode(text).ids))
        st.session_state["verified"] = Verified(
            n_tokens, precision or "float32", checks, perf_counter() - start
        )
    if "verified" in st.session_state:
        show_verified(st.session_state["verified"], encoder.config.n_layers)
    else:
        st.info("Nothing is loaded yet: press the button to run both models.", icon=":material/fact_check:")


def show_verified(verified: Verified, n_layers: int) -> None:
    """Draw the result of a comparison: in one sentence, as a heat map, and as numbers."""
    checks = verified.checks
    failed = [check for check in checks if not check.passed]
    if failed:
        st.error(
            f"{len(failed)} of {len(checks)} stages differ by more than their tolerance, the first is "
            f"{failed[0].stage}.{ROUNDING if verified.precision == 'float32' else ''}",
            icon=":material/error:",
        )
    else:
        st.success(
            f"All {len(checks)} stages agree with the official model within their tolerance.",
            icon=":material/check_circle:",
        )
    nearest = max(checks, key=lambda check: check.decisive / check.tolerance)
    final = next(check for check in checks if check.stage == "normalized")
    left, middle, right = st.columns(3)
    left.metric(
        "Stages within tolerance",
        f"{len(checks) - len(failed)} of {len(checks)}",
        help="A stage is a named array of the forward pass, such as the attention scores of layer 3.",
    )
    middle.metric(
        "Final vector differs by",
        f"{final.decisive:.1e}",
        help=f"Largest difference among its numbers, from the text on; {final.tolerance:.0e} is allowed.",
    )
    right.metric(
        "Nearest to its tolerance",
        f"{nearest.decisive / nearest.tolerance:.0%}",
        help=f"The stage {nearest.stage} uses most of what it is allowed.",
    )
    st.caption(f"{verified.n_tokens} tokens · {verified.precision} · took {verified.seconds:.1f} s")
    st.markdown("**Largest difference of each stage, layer by layer**")
    show_figure(
        difference_figure(checks, n_layers, verified.precision),
        "difference-by-stage",
        {"difference": layer_differences(checks, n_layers)},
        f"Heat map of {len(checks)} differences, the largest {nearest.decisive:.1e} at {nearest.stage}.",
    )
    st.caption(tolerance_note(verified.precision))
    with st.expander("All stages as numbers", icon=":material/table:"):
        st.dataframe(check_rows(checks), hide_index=True)


def tolerance_note(precision: str) -> str:
    """Say where the tolerances come from."""
    if precision == "float64":
        return (
            "Rows run from the top of a layer to its end; darker is larger. In float64 both sides run from "
            "the text on, and 1e-8 is allowed everywhere: far more than rounding makes (about 1e-15), far "
            "less than any mistake would."
        )
    return (
        "Rows run from the top of a layer to its end; darker is larger, a cross marks what is too large. "
        "Each stage is given the official model's own input, so that the rounding of earlier stages does not "
        "add up, and differences count relative to values above 1. Allowed are 1e-5, for layer norms 1.9e-6 "
        "and, from the text on, for the final vector 1e-6. Neighbouring float32 numbers near 1 are "
        "1.2e-7 apart."
    )


def break_tab(encoder: Encoder) -> None:
    """Draw the switches, and what they do to a question and its ranking."""
    st.write(
        "Take a part out of the model, or put one in wrongly, and see where the damage begins and what is "
        "left of the search. Several switches may be on together."
    )
    question = st.text_input(
        "Question",
        DEFAULT_QUESTION,
        max_chars=2000,
        help="It is asked of the four bundled documents, by the intact and by the broken model.",
    )
    faults = fault_switches()
    if not names_of(faults):
        st.info("The model is intact. Turn on a switch to break it.", icon=":material/build:")
        return
    if not question.strip():
        st.warning("Type a question first.")
        return
    for name in names_of(faults):
        st.caption(f"**{FAULTS[name][0]}.** {FAULTS[name][2]}")
    show_drift(encoder, question, faults)
    show_ranking(encoder, question, faults)


def show_drift(encoder: Encoder, question: str, faults: Faults) -> None:
    """Draw how far each stage of the question moves, for each fault alone and all together."""
    st.subheader("Where the damage begins")
    intact = encoder.trace(question, keep=STAGES)
    sets = {name: Faults(**{name: True}) for name in names_of(faults)}
    if len(sets) > 1:
        sets["together"] = faults
    drifts = {
        name: drift(intact, broken_trace(encoder, question, some, keep=STAGES), encoder.config.n_layers)
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
        "0: the token vectors of the question point where they did in the intact model, on average; 1: they "
        "have nothing in common with them. The last point is the vector of the whole question."
    )


def show_ranking(encoder: Encoder, question: str, faults: Faults) -> None:
    """Draw the ranking of the bundled corpus by the intact and by the broken model."""
    st.subheader("What is left of the search")
    index = index_documents(bundled_documents(), encoder, CUT)
    vectors = broken_corpus(tuple(chunk.text for chunk in index.chunks), faults, encoder)
    [intact_query], [broken_query] = encoder.encode([question]), broken_vectors(encoder, [question], faults)
    intact, broken = index.vectors @ intact_query, vectors @ broken_query  # (n_chunks,)
    before, after = ranks(intact), ranks(broken)
    best_after = int(after[before == 1][0])
    kept = int(((before <= OVERLAP_AT) & (after <= OVERLAP_AT)).sum())
    cosines = float(intact_query @ broken_query), float((index.vectors * vectors).sum(axis=1).mean())
    metrics = (
        (
            "Question, intact and broken",
            f"{cosines[0]:.3f}",
            "Cosine of its two vectors: 1 means that the fault changes nothing.",
        ),
        (
            "Passages, intact and broken",
            f"{cosines[1]:.3f}",
            f"The same, on average over the {len(index.chunks)} passages of the corpus.",
        ),
        (
            "The best passage is now at",
            f"{best_after} of {len(before)}",
            "Place in the broken ranking of what the intact model puts first.",
        ),
        (
            f"Left of the top {OVERLAP_AT}",
            f"{kept} of {OVERLAP_AT}",
            "Passages that are among the first ten in both rankings, in any order.",
        ),
    )
    for column, (label, value, help_text) in zip(st.columns(4), metrics, strict=True):
        column.metric(label, value, help=help_text)
    show_top(index, (intact, broken), (before, after))
    st.caption(
        "Scores of the broken model can be higher than those of the intact one: they compare broken vectors "
        f"with each other. Its median score is {np.median(broken):.2f}, the intact model's "
        f"{np.median(intact):.2f}; where all passages score alike, the ranking is left to chance."
    )


def show_top(index: Index, scores: tuple[Array, Array], places: tuple[Array, Array]) -> None:
    """Draw the best passages of the intact and of the broken model side by side."""
    for is_broken, column in enumerate(st.columns(2)):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{'Broken' if is_broken else 'Intact'}: the first {TOP}**")
            st.html(ranking_html(index.chunks, scores[is_broken], *places, bool(is_broken), TOP))


def main() -> None:
    """Draw the page."""
    require_frame("pages/verification.py")
    st.title("Verify and break")
    st.write(
        "See that every stage of the hand-written model equals the official one, then break a part on "
        "purpose to learn what it is good for."
    )
    tabs: Sequence[str] = ("Verify", "Break it")
    verifying, breaking = st.tabs(tabs, key="verify-tabs")
    try:
        encoder = load_encoder()
    except GlassboxError as error:
        st.error(str(error), icon=":material/error:")
        return
    for tab, draw in ((verifying, verify_tab), (breaking, break_tab)):
        with tab:
            try:
                draw(encoder)
            except GlassboxError as error:
                st.error(str(error), icon=":material/error:")


main()
