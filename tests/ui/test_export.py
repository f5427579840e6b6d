import json
import re

import plotly.graph_objects as go
import streamlit as st  # noqa: F401  (whose theme becomes the default of figures)

from ui.export import standalone
from ui.figures import styled


def test_a_figure_taken_away_has_the_colours_and_margins_that_the_page_would_give_it():
    figure = styled(go.Figure(go.Bar(x=[1, 2], y=["search", "answer"], orientation="h")), height=100)
    template = json.loads(standalone(figure).to_json())["layout"]["template"]
    axes = template["layout"]["xaxis"], template["layout"]["yaxis"]
    assert all(axis["automargin"] for axis in axes)  # else the names of bars are cut off
    colours = template["layout"]["colorway"]
    assert all(re.fullmatch("#[0-9a-f]{6}", colour.lower()) for colour in colours)
    assert min(int(colour[1:], 16) for colour in colours) > 0xFF  # no placeholders such as #000001
    assert figure.layout.template != standalone(figure).layout.template  # the page's own stays
