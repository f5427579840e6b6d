import io
import json
import re
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import streamlit as st  # noqa: F401  (whose theme becomes the default of figures)

from ui.export import arrays_of, npz, standalone, table
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


def test_numbers_of_a_figure_can_be_read_back():
    with np.load(io.BytesIO(npz({"layers.0.weights": np.eye(2), "tokens": np.array(["a", "東"])}))) as saved:
        np.testing.assert_array_equal(saved["layers.0.weights"], np.eye(2))
        assert list(saved["tokens"]) == ["a", "東"]


def test_numbers_of_a_figure_are_a_table_in_which_shorter_columns_end_sooner():
    arrays = {"weights": np.array([[0.5, 0.25], [1.0, 2.0]]), "tokens": np.array(["a", "b,c", "=東"])}
    assert table(arrays) == 'weights.0,weights.1,tokens\n0.5,0.25,a\n1.0,2.0,"b,c"\n,,\'=東\n'


def test_records_become_an_array_per_attribute_with_nan_for_none():
    records = [SimpleNamespace(loss=1.5, held_out=None), SimpleNamespace(loss=1.0, held_out=2.0)]
    found = arrays_of(records, "loss", "held_out")
    np.testing.assert_array_equal(found["loss"], [1.5, 1.0])
    np.testing.assert_array_equal(found["held_out"], [np.nan, 2.0])
