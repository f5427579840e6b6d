from html import escape

import plotly.graph_objects as go

from engine.documents.document import Chunk
from tests.apps import app_of
from ui.report import Report, element, facts, figure_html, file_stem, page_html, paragraph
from ui.tables import table_html
from ui.text import Strong, chunk_quote, sentence_markdown, text_html

EVIL = '<script>alert("1")</script>'
FIGURE = go.Figure(go.Bar(x=[1], y=["</script><script>alert(1)"], hovertext=["</script><script>alert(1)"]))


def draw(report, evil):
    from html import escape

    import streamlit as st

    from ui.text import Strong

    report.header(evil)
    report.sentence("It is ", Strong(evil))
    report.caption(evil)
    report.note(st.info, ":material/tune:", evil)
    report.text(escape(evil))
    report.metrics({evil: ("1", "+1", evil)}, evil)
    report.table([{evil: evil}], evil)
    with report.expander("evil"):
        report.caption("inside")
    report.button("test", evil)


def test_each_part_is_drawn_and_kept_with_all_its_text_escaped():
    report = Report()
    app = app_of(draw, args=(report, EVIL)).run()
    assert not app.exception
    assert app.header[0].value == app.caption[0].value
    assert app.metric[0].delta == "+1"
    html = page_html("test", EVIL, [*report.parts, facts({EVIL: EVIL})])
    assert "<script" not in html
    assert html.count(escape(EVIL)) >= 13
    assert [html.count(tag) for tag in ("<h2>", "<h3>", "<table>", 'class="note"')] == [1, 1, 2, 1]
    assert "1 (+1)" in html


def test_a_page_needs_no_network_and_has_the_script_of_figures_once():
    plain = page_html(EVIL, EVIL, [paragraph("<figure>")])
    assert "<script" not in plain
    assert plain.count(escape(EVIL)) == 3
    assert "default-src 'none'" in plain
    drawn = page_html("Test", "Two figures", [element("h2", "Figures"), *[figure_html(FIGURE)] * 2])
    assert drawn.count("plotly.js v") == 1
    assert drawn.count("Plotly.newPlot(") >= 2
    assert "</script><script>alert" not in drawn
    assert 'src="http' not in drawn
    assert FIGURE.layout.paper_bgcolor is None  # the figure of the page stays as it is


def test_a_file_is_named_after_its_subject():
    named = file_stem("answer", "Who built „Zürich's” tower/bridge?")
    assert named == "answer-who-built-zürich-s-tower-bridge"
    assert file_stem("answer", "?") == "answer"
    assert len(file_stem("diagnosis", "word " * 99)) <= 80


def test_a_sentence_is_the_same_on_a_page_and_in_a_report():
    assert sentence_markdown("Under ", Strong("3 of 4*"), " <b>") == r"Under **3 of 4\*** \<b\>"
    assert paragraph("Under ", Strong("3 of 4*"), " <b>") == "<p>Under <strong>3 of 4*</strong> &lt;b&gt;</p>"


def test_texts_and_quotes_are_set_by_the_direction_of_their_letters():
    chunk = Chunk("keys.txt", 0, 6, "המפתח.", 3)
    for html in (text_html("המפתח."), chunk_quote(chunk, 80), table_html([{"Word": "המפתח"}], "Words")):
        assert 'dir="auto"' in html
    assert "unicode-bidi: plaintext" in page_html("test", "המפתח", [])
