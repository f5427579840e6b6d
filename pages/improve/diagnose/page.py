"""Why wasn't it found? From a wrong answer and its passage to the cause, and to a cure that is tried."""

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.evaluation.questions import Question
from engine.inspection.diagnosis.chain import Chain, Ranking
from engine.retrieval.embedding_model import needs_encoder_message
from engine.retrieval.language_fit import language_note
from pages.improve.diagnose.ask import Asked, ask
from pages.improve.diagnose.cure import diagnosed, show_applied, show_cure
from pages.improve.diagnose.links import show_cause, show_chain, show_passage
from ui.documents import NoDocumentError
from ui.languages import show_language_note
from ui.look_inside import chunk_table
from ui.models import load_encoder
from ui.questions.sets import some_usable
from ui.report import Report, element, facts, paragraph
from ui.search import Search
from ui.setting_values import settings_words
from ui.settings import search_sidebar
from ui.similarity.explained import CHAPTERS, show_explained
from ui.text import Strong, escape_markdown
from ui.widgets import chapters

RANK = "What ranks above it"
MAX_ABOVE_SHOWN = 10
SHARED = "What question and chunk share, word by word,"


def show(asked: Asked, search: Search, questions: tuple[Question, ...]) -> None:
    """Draw the cause, its cure, and the links."""
    report = Report(paragraph("The passage that should have answered: ", Strong(asked.passage)))
    show_language_note(report, language_note(search.index.languages.values(), search.model, asked.question))
    found = diagnosed(asked, search)
    show_applied(report, found)
    show_cause(report, found)
    show_cure(report, found, asked, search, questions)
    show_chain(report, found.chain)
    if found.place is not None and found.chain.ranking is not None:
        show_passage(report, found.place, found.chain, search)
        show_rank(report, found.before.question, search, found.chain)
    report.parts += [
        element("h2", "Settings"),
        facts(
            settings_words(search.settings)
            | {
                "Encoder": search.model.name,
                "Chunks": f"{len(search.index.chunks):,}",
                "Documents searched": ", ".join(document.name for document in search.documents),
            }
        ),
    ]
    report.button("diagnosis", asked.question)


def show_rank(report: Report, question: str, search: Search, chain: Chain) -> None:
    """List the chunks that rank above the passage's, and explain their similarities to the question."""
    ranking = chain.ranking
    assert ranking is not None, "a chunk holds some of the passage"
    report.header(RANK)
    if not ranking.above:
        report.sentence("Nothing ranks above it." if ranking.rank else "Nothing is found.")
    shown, cosines = ranking.above[:MAX_ABOVE_SHOWN], chain.by_half["dense"].scores
    chunk_table(
        [search.index.chunks[row] for row in shown],
        [
            {
                "Rank": rank,
                "Cosine": float(cosines[row]),
                "Document": search.index.chunks[row].document,
                "Text": " ".join(search.index.chunks[row].text.split()),
            }
            for rank, row in enumerate(shown, 1)
        ],
        "above",
        "The chunks that rank above the passage, best first",
        {"Cosine": NumberColumn(format="%.3f"), "Text": TextColumn(width="large")},
        report.table,
    )
    if (n_above := len(ranking.above)) > MAX_ABOVE_SHOWN:
        report.caption(f"The first {MAX_ABOVE_SHOWN} of {n_above:,} that rank above it.")
    show_contributions(question, search, ranking)


def show_contributions(question: str, search: Search, ranking: Ranking) -> None:
    """Draw, on demand, the similarity to the question explained, for the passage's chunk and the best one."""
    index = search.index
    model, limit = index.encoder(search.model), index.spec.max_tokens
    if (encoder := model.as_encoder) is None:
        st.caption(escape_markdown(needs_encoder_message(SHARED, model)))
        return
    rows = {"passage": ("What its chunk shares with the question", ranking.row)}
    if ranking.above:
        rows["above"] = ("What the best chunk shares with the question", ranking.above[0])
    for key, (title, row) in rows.items():
        if index.spec.pooling != "pooler":
            st.session_state.setdefault(f"diagnose-{key}-strategy", index.spec.pooling)
        box = st.expander(
            title, key=f"diagnose-{key}-shares", on_change="rerun", icon=":material/join_inner:"
        )
        if box.open:
            with box:
                chapter = chapters(CHAPTERS, f"diagnose-{key}-chapter")
                texts = question, index.chunks[row].text
                show_explained(encoder, limit, *texts, f"diagnose-{key}", chapter)


def main() -> None:
    """Draw the page."""
    search = search_sidebar(load_encoder())
    if not search.documents:
        raise NoDocumentError
    _ = search.index  # embedded under its own progress bar, before anything is asked
    questions = tuple(some_usable(search.documents))
    if asked := ask(search, questions):
        show(asked, search, questions)


main()
