from html import escape

import plotly.graph_objects as go
import pytest

from ui.report import (
    Html,
    bullets,
    cell,
    code,
    facts,
    figures,
    file_stem,
    heading,
    note,
    page_html,
    paragraph,
    quotation,
    section,
    table,
)
from ui.text import Strong, sentence_markdown

EVIL = '<script>alert("1")</script>'
FIGURE = go.Figure(go.Bar(x=[1], y=["</script><script>alert(1)"], hovertext=["</script><script>alert(1)"]))


@pytest.mark.parametrize(
    "part",
    [
        section(EVIL, Html("")),
        heading(EVIL),
        paragraph(EVIL, Strong(EVIL)),
        note("good", EVIL, Strong(EVIL)),
        quotation(Html(""), EVIL),
        facts({EVIL: EVIL}),
        bullets([EVIL]),
        code(EVIL),
        table([{EVIL: EVIL}]),
        figures({EVIL: go.Figure()}),
    ],
)
def test_text_is_escaped_in_every_part(part):
    assert "<script>alert" not in part
    assert escape(EVIL) in part


def test_a_page_needs_no_network_and_has_the_script_of_figures_once():
    plain = page_html(EVIL, EVIL, paragraph("<figure>"))
    assert "<script" not in plain
    assert plain.count(escape(EVIL)) == 3
    assert "default-src 'none'" in plain
    drawn = page_html("Test", "Two figures", section("Figures", figures({"a": FIGURE, "b": FIGURE})))
    assert drawn.count("plotly.js v") == 1
    assert drawn.count("Plotly.newPlot(") >= 2
    assert "</script><script>alert" not in drawn
    assert 'src="http' not in drawn


def test_a_figure_in_a_report_leaves_that_of_the_page_as_it_is():
    figures({"a": FIGURE})
    assert FIGURE.layout.paper_bgcolor is None


def test_numbers_of_a_table_have_their_format_and_missing_values_are_blank():
    html = table(
        [{"Rank": 1200, "Share": 0.5, "Name": "a"}, {"Share": None, "Name": "b" * 50}], {"Share": "{:.0%}"}
    )
    assert html.count("<tr>") == 3
    assert '<th class="number">Rank</th><th class="number">Share</th><th>Name</th>' in html
    assert '<td class="number">1,200</td><td class="number">50%</td><td>a</td>' in html
    assert f'<td class="number"></td><td class="number"></td><td class="long">{"b" * 50}</td>' in html
    assert cell(0.25, None, True) == '<td class="number">0.250</td>'


def test_a_file_is_named_after_its_subject():
    assert (
        file_stem("answer", "Who built „Zürich's” tower/bridge?") == "answer-who-built-zürich-s-tower-bridge"
    )
    assert file_stem("answer", "?") == "answer"
    assert len(file_stem("diagnosis", "word " * 99)) <= 80


def test_a_sentence_is_the_same_on_a_page_and_in_a_report():
    assert sentence_markdown("Under ", Strong("3 of 4*"), " <b>") == r"Under **3 of 4\*** \<b\>"
    assert paragraph("Under ", Strong("3 of 4*"), " <b>") == "<p>Under <strong>3 of 4*</strong> &lt;b&gt;</p>"
