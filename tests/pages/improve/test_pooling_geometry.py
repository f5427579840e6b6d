import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.evaluation.bootstrap import mean_interval
from engine.evaluation.questions import load_questions, relevance
from engine.inspection.vectors.geometry import geometry_rows
from pages.improve.poolings.changes import (
    METRIC_HELP,
    OVERLAP,
    SMALLER,
    lessons,
    mrr_differences,
    size_figure,
    value_of,
)
from pages.improve.poolings.geometry import CHAPTERS, STAND_INS, stand_ins
from pages.improve.poolings.pooled_chunks import PooledChunks
from tests.apps import app_of

BUNDLED = load_corpus(BUNDLED_CORPUS)


def pieces(document, size=600):
    places = range(0, len(document.text), size)
    return [Chunk(document.name, at, at + size, document.text[at : at + size], 100) for at in places]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    chunks, questions = rng.normal(size=(2, 80, 300)).astype(np.float32)
    chunks, questions = chunks + 0.3, (questions + chunks)[:30]
    return geometry_rows(chunks, questions, np.eye(30, 80, dtype=bool))


@pytest.fixture(scope="module")
def unlabelled():
    vectors = np.random.default_rng(0).normal(size=(40, 300)).astype(np.float32)
    return geometry_rows(vectors, vectors[:10])


def pooled(*documents):
    return PooledChunks(documents, tuple(chunk for each in documents for chunk in pieces(each)), None, {}, 0)


def asking(of):
    import streamlit as st

    from pages.improve.poolings.mistakes import answerable
    from ui.questions.sets import labelled_questions

    st.session_state["asked"] = *labelled_questions(of.documents, of.chunks), answerable(of)


def labelled(*documents):
    """The questions about documents, which chunks answer them, and the questions that are clear."""
    app = app_of(asking, args=(pooled(*documents),)).run()
    return app.session_state["asked"]


def test_questions_are_those_about_the_documents_of_the_chunks():
    documents = BUNDLED[0], Document("own.md", "My own text. " * 100)
    questions, relevant, _ = labelled(*documents)
    stem = BUNDLED[0].name.rsplit(".", 1)[0]
    assert list(questions) == [question for question in load_questions() if question.corpus_id == stem]
    np.testing.assert_array_equal(relevant, relevance(questions, pooled(*documents).chunks))


def test_a_file_that_is_called_nearly_like_a_bundled_one_answers_nothing():
    stem = BUNDLED[0].name.rsplit(".", 1)[0]
    document = Document(f"{stem}.html", "Another text under the same name. " * 3000)
    own = pieces(document)
    assert relevance(load_questions(), own).any()
    questions, relevant, _ = labelled(document)
    assert questions == ()
    assert relevant.shape == (0, len(own))
    questions, relevant, clear = labelled(document, BUNDLED[0])
    assert not relevant[:, : len(own)].any()
    assert relevant.any(axis=1).all()
    mixed_up = relevance(questions, own).any(axis=1)
    assert list(clear) == [question for question, yes in zip(questions, mixed_up, strict=True) if not yes]


def test_without_such_documents_sentences_of_the_chunks_stand_in():
    texts = stand_ins(pieces(BUNDLED[0]))
    assert len(texts) == len(set(texts)) == STAND_INS
    assert all(text in BUNDLED[0].text and text == text.strip() for text in texts)
    assert stand_ins([Chunk("a.md", 0, 3, "Hm.", 3), Chunk("a.md", 4, 7, "Eh.", 3)]) == ["Hm.", "Eh."]


def test_differences_are_those_of_the_same_questions(rows):
    differences = mrr_differences(rows)
    for row in rows[1:6]:
        expected = mean_interval(row.reciprocal_ranks - rows[0].reciprocal_ranks)
        found = differences[row.name]
        np.testing.assert_allclose(
            [found.estimate, found.low, found.high],
            [expected.estimate, expected.low, expected.high],
            atol=1e-12,
        )
    assert (differences["cosine"].low, differences["cosine"].high) == (0, 0)


@pytest.mark.parametrize("measure", METRIC_HELP)
def test_the_figure_holds_every_smaller_vector_where_it_was_measured(rows, measure):
    figure = size_figure(rows, measure)
    drawn = {
        name: (x, y)
        for trace in figure.data
        for name, x, y in zip(trace.hovertext, trace.x, trace.y, strict=True)
    }
    assert drawn == {
        row.name: (row.bytes_per_vector, value_of(row, measure)) for row in rows if row.kind in SMALLER
    }
    assert figure.layout.shapes[0].y0 == value_of(rows[0], measure)


def test_lessons_say_what_was_measured_and_call_nothing_clear_that_is_not(rows):
    differences = mrr_differences(rows)
    words = "\n".join(lessons(rows, differences, 80))
    for row in rows[1:]:
        if row.kind in ("first dimensions", "principal components"):
            assert f"{row.mrr:.3f}" in words
            continue
        if differences[row.name].low <= 0 <= differences[row.name].high:
            said = "no clear difference"
        else:
            said = "clearly higher" if differences[row.name].estimate > 0 else "clearly lower"
        name = "" if row.kind == "not normalised" else f"{row.name}, "
        assert f"{name}MRR {row.mrr:.3f} ({said})" in words
    ahead = sum(
        a.mrr > b.mrr
        for a in rows
        for b in rows
        if (a.kind, b.kind) == ("principal components", "first dimensions")
        and a.bytes_per_vector == b.bytes_per_vector
    )
    assert f"ahead at {ahead} of 4 sizes" in words


def test_without_labels_no_word_is_of_quality(unlabelled):
    words = "\n".join(lessons(unlabelled, {}, 40))
    assert "MRR" not in words
    assert "of the first 10 stay" in words
    assert len(size_figure(unlabelled, OVERLAP).data) == len(SMALLER)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_any_text_has_stand_ins(texts):
    chunks = [Chunk("a.md", 0, len(text), text, 3) for text in texts]
    assert 1 <= len(stand_ins(chunks)) <= STAND_INS


def page(name, text):
    from engine.documents.document import Document
    from engine.documents.splitters import Splitting
    from pages.improve.poolings.geometry import show_geometry
    from pages.improve.poolings.pooled_chunks import pooled_chunks
    from ui.chunk_settings import Cut
    from ui.models import load_encoder

    show_geometry(
        pooled_chunks([Document(name, text)], load_encoder(), Cut(Splitting("fixed", 32, 0), 0, 256))
    )


@pytest.mark.parametrize(
    ("text", "n_figures"), [(BUNDLED[0].text[:700], 3), ("Too short.", 0)], ids=["a document", "one chunk"]
)
def test_the_panel_draws_own_documents_without_labels(text, n_figures):
    drawn = 0
    for chapter in CHAPTERS:
        app = app_of(page, args=("own.md", text), **{"geometry-chapter": chapter}).run()
        drawn += len(app.get("plotly_chart"))
    assert drawn == n_figures
    assert app.info
    if n_figures:
        app.selectbox(key="geometry-pooling").select("idf").run()
