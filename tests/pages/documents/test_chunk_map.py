"""The tabs "Map" and "Health"."""

from html import unescape

import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.inspection.health.report import Finding
from pages.documents import chunk_map_figure
from pages.documents.health import finding_html, hit_html
from tests.apps import app_of, app_page
from ui.colours import CATEGORIES
from ui.figures import chunk_hover

EVIL = "<script>alert('x')</script> & <b>bold</b>"


def chunk(document="d.md", text="Some text.", number=0):
    return Chunk(document, number, number + len(text), text, 8, headings=(EVIL,))


def vectors(n):
    return np.random.default_rng(0).normal(size=(n, 8))


def test_texts_of_chunks_are_shortened_wrapped_and_escaped():
    hover = chunk_hover(chunk(EVIL, f"{EVIL} " + "word " * 200), 220, 0.5)
    lines = [unescape(line) for line in hover.split("<br>")[2:]]
    assert max(map(len, lines)) <= 42
    assert sum(map(len, lines)) <= 220
    finding = Finding("boilerplate", (0, 1, 2), (), 3, f"in 3 of 3 documents: “{EVIL}”")
    found = finding_html(finding, [chunk(EVIL, EVIL)] * 3) + hit_html("− goes", chunk(EVIL, EVIL), 1)
    assert "and 1 more" in found
    for html in (hover, found, *chunk_map_figure.question_trace(np.zeros(2), EVIL).hovertext):
        assert "<script" not in html
        assert "<b>bold" not in html


@pytest.mark.parametrize("n_documents", [1, 14, 60])
def test_every_document_looks_different_as_far_as_looks_go_and_all_chunks_are_drawn(n_documents):
    chunks = [chunk(f"{EVIL} {n % n_documents}.md", number=n) for n in range(120)]
    figure = chunk_map_figure.group_figure(vectors(120), chunks, *chunk_map_figure.document_groups(chunks))
    looks = [(trace.marker.color, trace.marker.symbol) for trace in figure.data]
    most = len(CATEGORIES) * len(chunk_map_figure.SHAPES)
    assert len(set(looks)) == len(looks) == min(n_documents, most + 1)
    assert sorted(row for trace in figure.data for row in trace.customdata) == list(range(120))
    assert not any("<script" in trace.name for trace in figure.data)


def test_selected_points_stand_for_their_chunks_and_the_question_for_none():
    chunks = [chunk(name, number=n) for n, name in enumerate("abab")]
    figure = chunk_map_figure.group_figure(vectors(4), chunks, *chunk_map_figure.document_groups(chunks))
    figure.add_trace(chunk_map_figure.question_trace(np.zeros(2), EVIL))
    points = [{"curve_number": curve, "point_index": place} for curve, place in [(1, 1), (0, 1), (2, 0)]]
    assert chunk_map_figure.rows_of(figure, points) == [2, 3]


def test_the_nearest_to_the_question_are_drawn_last_and_many_points_by_the_graphics_card():
    trace = chunk_map_figure.similarity_trace(vectors(3), [chunk()] * 3, np.array([0.9, -0.2, 0.4]))
    assert list(trace.customdata) == [1, 2, 0]
    assert list(trace.marker.color) == [-0.2, 0.4, 0.9]
    kinds = [
        chunk_map_figure.similarity_trace(vectors(n), [chunk()] * n, np.zeros(n)).type
        for n in (3, chunk_map_figure.WEBGL_POINTS + 1)
    ]
    assert kinds == ["scatter", "scattergl"]


def draw(n, n_copies):
    import numpy as np

    from engine.documents.document import Chunk
    from engine.inspection.health.report import health_report
    from pages.documents.chunk_map import show_map
    from pages.documents.health import show_health

    texts = [f"Passage {i} tells a <b>story</b> of its own, about subject {i}." for i in range(n)]
    texts += texts[:1] * n_copies
    chunks = [Chunk("d.md", 100 * i, 100 * i + len(text), text, 20) for i, text in enumerate(texts)]
    vectors = np.eye(64, dtype=np.float32)[[*range(n), *[0] * n_copies]]
    questions = vectors[:2] if n_copies else None
    show_map(chunks, vectors, "Which?", None if questions is None else questions[0])
    report = health_report(chunks, vectors, 128, questions)
    show_health(report, chunks, vectors, ["Which?", "What?"] if n_copies else [], questions)


@pytest.mark.parametrize("n", [2, 12])
def test_too_few_chunks_and_a_healthy_corpus_are_said_to_be(n):
    app = app_of(draw, args=(n, 0)).run()
    assert app.success or f"there are {n}" in app.info[0].value


def test_what_is_found_is_counted_and_previewed():
    app = app_of(draw, args=(12, 2)).run()
    assert not app.success
    assert any("1 text repeated exactly" in text.value for text in app.markdown)
    assert any("hits change for" in text.value for text in app.markdown)
    app.selectbox(key="map-colour-True").set_value("Nearness to the question").run()
    app.selectbox(key="map-colour-True").set_value("Group").run()
    assert app.slider(key="map-clusters-14").value == 3


def test_chunks_and_question_are_drawn_by_the_apps_pooling(encoder, monkeypatch):
    drawn = []
    monkeypatch.setattr("pages.documents.chunk_map.show_map", lambda *arguments: drawn.append(arguments))
    state = {"documents-tab": "Map", "map-question": "What is CarbFix?", "pooling": "cls"}
    app_page("documents", searched=["inside_the_pipeline.md"], **state).run()
    [(chunks, vectors_drawn, question, vector)] = drawn
    expected = encoder.encode([chunks[0].text, question], "cls")
    np.testing.assert_allclose([vectors_drawn[0], vector], expected, atol=1e-5)
