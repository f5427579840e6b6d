import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.inspection.model.worked_example import BlockMagnitude, Options, example_matrices, reference_arrays
from engine.layers.activation import softmax
from pages.learn.worked.encoder import STEPS, run_block, smaller_weight, steepness
from pages.learn.worked.figures import (
    DIVISORS,
    EXP_LIMIT,
    decades,
    first_nan,
    growth_figure,
    head_maps,
    saturation_figure,
    vocabulary_bars,
)
from pages.learn.worked.inputs import SEED
from pages.learn.worked.matrix import matrix_html, readable_number
from pages.learn.worked.stack import growth_words
from tests.apps import app_of, html_of, said

SCRIPT = """
from pages.learn.worked.chapters import show_worked_example
show_worked_example()
"""
NONE = Options(norm="none", residual=False)


def run(**state):
    return app_of(SCRIPT, **{key.replace("_", "-"): value for key, value in state.items()}).run()


def test_the_page_shows_the_printed_numbers_of_the_example():
    app = run()
    html = html_of(app)
    given = reference_arrays()
    for name in ("K1", "Q1", "V1", "attention1_scaled_by_30", "Z", "residual_layer_norm"):
        for value in given[name].ravel():
            assert f">{readable_number(value)}<" in html, (name, value)


def test_the_paper_s_scale_shows_saturated_weights():
    html = html_of(run(worked_divisor="√3"))
    assert "4.67695573e−10" in html
    assert "1.11377182e−12" in html
    assert "39.2598183" in html


def test_an_edited_matrix_changes_what_follows_and_can_be_set_back():
    matrix = example_matrices(SEED)["heads.0.query"] * 2
    app = run(worked_edited={"heads.0.query": matrix})
    assert ">16<" in html_of(app)
    app.button(key="worked-reset").click().run()
    assert ">16<" not in html_of(app)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "WO, row 2, column 1 is empty or no number"), (1e300, "is 1e+300, beyond ±1,000,000")],
)
def test_a_cell_that_is_no_number_gives_one_line_and_no_results(value, message):
    matrix = example_matrices(SEED)["output"]
    matrix[1, 0] = value
    app = run(worked_edited={"output": matrix})
    assert [message in error.value.replace("\\", "") for error in app.error] == [True]
    assert "as soon as every cell of the tables holds one" in said(app)
    [sizes] = app.get("html")  # of the paper's model, whatever the numbers here
    assert "Parameters and FLOPs" in sizes.proto.body


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({}, "**Bounded:** after 6 blocks"),
        ({"worked_norm": "None"}, "**Growing:**"),
        ({"worked_norm": "None", "worked_shift": False}, "**NaN from block 2 on:** a score is"),
        ({"worked_norm": "None", "worked_blocks": 24}, "on:** products pass the largest number of float32"),
    ],
)
def test_what_becomes_of_stacked_blocks_is_said_in_words(state, found):
    app = run(**state)
    assert found in said(app)
    assert ("nothing to decode" in said(app)) == ("NaN" in found or "float32" in found)


def test_decoding_ends_at_the_end_token_or_the_maximum():
    assert "because the end token came" in said(run())
    short = said(run(worked_longest=2))
    assert "because the maximum of 2 words was reached" in short


def test_the_sizes_of_2017_are_shown_and_run_when_asked_to():
    app = run(worked_source=3, worked_target=2)
    assert {metric.label: metric.value for metric in app.metric}["Parameters"] == "63.1 M"
    assert "Rate" not in {metric.label for metric in app.metric}
    app.button(key="worked-run").click().run()
    assert "The logits are 2 × 37,000" in said(app)


@given(st.floats(allow_subnormal=False))
def test_a_number_is_shown_to_eight_places(value):
    text = readable_number(value).replace("−", "-").replace("∞", "inf")
    if np.isnan(value):
        assert text == "NaN"
    else:
        np.testing.assert_allclose(float(text), value, rtol=6e-9, atol=5.1e-9)
    assert len(text) <= 16


def test_the_names_of_a_matrix_are_text():
    html = matrix_html("<b>x</b>", np.array([[1.0, np.inf]]), ["<i>row</i>"])
    assert "<i>" not in html
    assert "&lt;b&gt;x" in html
    assert "1 × 2" in html
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html) == ["1", "∞"]


@given(st.floats(0, 60))
def test_the_slope_of_a_softmax_is_that_of_its_two_weights(gap):
    weights = softmax(np.array([0.0, gap]))
    assert smaller_weight(gap) == pytest.approx(weights[0], rel=1e-9)
    assert steepness(gap) == pytest.approx(weights[0] * weights[1], rel=1e-9)


def test_the_saturation_figure_falls_from_one_to_even():
    scores = run_block(example_matrices(0), Options(), 0).of_head("scores")
    figure = saturation_figure(scores, ["Hello", "<World>"], 30)
    assert [line.name for line in figure.data] == ["Hello", "&lt;World&gt;"]
    for line, row in zip(figure.data, scores, strict=True):
        assert line.y[0] == pytest.approx(1)
        assert (np.diff(line.y) <= 0).all()
        assert line.y[-1] == pytest.approx(softmax(row / 100).max())
    np.testing.assert_array_equal(figure.data[0].x, DIVISORS)
    assert [note.text for note in figure.layout.annotations] == ["√3", "30 ◂"]


def test_the_growth_figure_shades_what_is_no_number_any_more():
    sizes = [BlockMagnitude(1.0, 10.0), BlockMagnitude(200.0, np.nan), BlockMagnitude(np.nan, np.nan)]
    assert first_nan(sizes) == 2
    figure = growth_figure(sizes, shift=False)
    shade = next(shape for shape in figure.layout.shapes if shape.type == "rect")
    assert (shade.x0, shade.x1) == (1.5, 3.5)
    assert any(f"{EXP_LIMIT:.1f}" in (note.text or "") for note in figure.layout.annotations)
    whole = growth_figure([BlockMagnitude(1.0, 10.0)], shift=True)
    assert not whole.layout.shapes
    assert decades([0.5, 2000.0, np.nan, np.inf, 0.0]) == (-1, 4)
    assert decades([np.nan]) == (-1, 1)
    assert growth_words(sizes, NONE).startswith("**NaN from block 2 on:** products")


def test_maps_leave_masked_tokens_empty_and_bars_mark_the_best():
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    figure = head_maps([weights, weights], ["<SOS>", "a"], ["<SOS>", "a"], causal=True)
    assert np.isnan(figure.data[0].z[0, 1])
    crossed = head_maps([weights, weights], ["<SOS>", "a"], ["x", "y"], causal=False)
    np.testing.assert_array_equal(crossed.data[1].z, weights)
    assert list(figure.data[0].x) == ["0 &lt;SOS&gt;", "1 a"]
    bars = vocabulary_bars(np.array([0.2, 0.7, 0.1]), ["<a>", "b", "c"])
    assert len(set(bars.data[0].marker.color)) == 2
    assert bars.data[0].marker.color[1] != bars.data[0].marker.color[0]
    assert bars.data[0].y[0] == "&lt;a&gt;"


def test_every_matrix_that_is_edited_is_one_of_the_block():
    names = {
        f"heads.{i}.{name}" if step.of_head else name
        for step in STEPS
        for name in step.inputs
        for i in range(2)
    }
    assert names == set(example_matrices(0))
