import json
import re

import plotly.graph_objects as go
import streamlit as st  # noqa: F401  (whose theme becomes the default of figures)

from ui.export import figure_rows, only_cell, standalone
from ui.figures import styled
from ui.tables import rows_csv


def test_a_figure_taken_away_has_the_colours_and_margins_that_the_page_would_give_it():
    figure = styled(go.Figure(go.Bar(x=[1, 2], y=["search", "answer"], orientation="h")), height=100)
    template = json.loads(standalone(figure).to_json())["layout"]["template"]
    axes = template["layout"]["xaxis"], template["layout"]["yaxis"]
    assert all(axis["automargin"] for axis in axes)  # else the names of bars are cut off
    colours = template["layout"]["colorway"]
    assert all(re.fullmatch("#[0-9a-f]{6}", colour.lower()) for colour in colours)
    assert min(int(colour[1:], 16) for colour in colours) > 0xFF  # no placeholders such as #000001
    assert figure.layout.template != standalone(figure).layout.template  # the page's own stays


def test_the_numbers_of_a_figure_are_a_table_of_what_it_draws():
    cells = go.Heatmap(z=[[0.5, 0.25], [1.0, 2.0]], x=["a<br>b", "&lt;i&gt;"], y=["=1", "c"])
    figure = go.Figure([cells, go.Bar(x=[1, 2], y=["search", "answer"], name="seconds")])
    assert rows_csv(figure_rows(figure)).splitlines() == [
        "y,x,value,series",
        "'=1,a b,0.5,",
        "'=1,<i>,0.25,",
        "c,a b,1.0,",
        "c,<i>,2.0,",
        "search,1,,seconds",
        "answer,2,,seconds",
    ]


def test_the_only_cell_of_a_heat_map_is_text():
    cell = go.Heatmap(z=[[0.116]], x=["[1]"], y=["S1"], texttemplate="%{z:.1%}")
    assert only_cell(go.Figure(cell)) == "S1, [1]: 11.6%"
    assert only_cell(go.Figure(go.Heatmap(z=[[1, 2]]))) == only_cell(go.Figure(go.Bar(y=[1]))) == ""
