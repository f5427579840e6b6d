import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.inspection.model.worked_example import BlockMagnitude, Options, example_matrices, reference_arrays
from engine.layers.activation import softmax
from pages.learn.worked import figures
from pages.learn.worked.encoder import run_block, smaller_weight, steepness
from pages.learn.worked.inputs import SEED
from pages.learn.worked.stack import growth_words
from tests.apps import app_page, html_of, said


def run(**state):
    return app_page("learn/worked", **{key.replace("_", "-"): value for key, value in state.items()}).run()


def test_the_page_shows_the_printed_numbers_of_the_example_its_end_and_its_sizes():
    app = run(worked_source=3, worked_target=2)
    html = html_of(app)
    given = reference_arrays()
    for name in ("K1", "Q1", "V1", "attention1_scaled_by_30", "Z", "residual_layer_norm"):
        for value in given[name].ravel():
            assert f">{figures.readable_number(value)}<" in html, (name, value)
    assert "because the end token came" in said(app)
    assert {metric.label: metric.value for metric in app.metric}["Parameters"] == "63.1 M"
    assert "Rate" not in {metric.label for metric in app.metric}
    app.button(key="worked-run").click().run()
    assert "The logits are 2 × 37,000" in said(app)


def test_an_edited_matrix_and_another_divisor_change_what_follows_and_can_be_set_back():
    matrix = example_matrices(SEED)["heads.0.query"] * 2
    app = run(worked_edited={"heads.0.query": matrix}, worked_longest=2, worked_divisor="√3")
    assert ">16<" in html_of(app)
    assert "because the maximum of 2 words was reached" in said(app)
    app.button(key="worked-reset").click().run()
    assert ">16<" not in html_of(app)
    app.segmented_control(key="worked-divisor").set_value("√3").run()
    assert "4.67695573e−10" in html_of(app)  # saturated weights


def test_a_cell_that_is_no_number_gives_one_line_and_no_results():
    matrix = example_matrices(SEED)["output"]
    matrix[1, 0] = np.nan
    app = run(worked_edited={"output": matrix})
    [error] = app.error
    assert "WO, row 2, column 1 is empty or no number" in error.value
    assert "as soon as every cell of the tables holds one" in said(app)
    [sizes] = app.get("html")  # of the paper's model, whatever the numbers here
    assert "Parameters and FLOPs" in sizes.proto.body


def test_the_end_of_stacked_blocks_is_said_in_words():
    def words(growth, **changes):
        return growth_words([BlockMagnitude(*sizes) for sizes in growth], Options(**changes))

    assert words([(1, 2), (1, 2)]).startswith("**Bounded:** after 2 blocks")
    assert words([(1, 2), (1, 4)], norm="none").startswith("**Growing:**")
    overflow = [(1, 2), (100.0, np.nan)]
    assert words(overflow, norm="none", shift_softmax=False).startswith("**NaN from block 2 on:** a score is")
    assert "products pass the largest number" in words(overflow, norm="none")
    assert "nothing to decode" in said(run(worked_norm="None", worked_shift=False))


@given(st.floats(allow_subnormal=False))
def test_a_number_is_shown_to_eight_places(value):
    text = figures.readable_number(value).replace("−", "-").replace("∞", "inf")
    if np.isnan(value):
        assert text == "NaN"
    else:
        np.testing.assert_allclose(float(text), value, rtol=6e-9, atol=5.1e-9)
    assert len(text) <= 16


def test_the_saturation_figure_falls_from_one_to_even():
    scores = run_block(example_matrices(0), Options(), 0).of_head("scores")
    figure = figures.saturation_figure(scores, ["Hello", "<World>"], 30)
    assert [line.name for line in figure.data] == ["Hello", "&lt;World&gt;"]
    for line, row in zip(figure.data, scores, strict=True):
        assert line.y[0] == pytest.approx(1)
        assert (np.diff(line.y) <= 0).all()
        assert line.y[-1] == pytest.approx(softmax(row / 100).max())
    np.testing.assert_array_equal(figure.data[0].x, figures.DIVISORS)
    assert [note.text for note in figure.layout.annotations] == ["√3", "30 ◂"]


def test_the_growth_figure_shades_what_is_no_number_any_more():
    sizes = [BlockMagnitude(1.0, 10.0), BlockMagnitude(200.0, np.nan), BlockMagnitude(np.nan, np.nan)]
    assert figures.first_nan(sizes) == 2
    figure = figures.growth_figure(sizes, shift=False)
    shade = next(shape for shape in figure.layout.shapes if shape.type == "rect")
    assert (shade.x0, shade.x1) == (1.5, 3.5)
    assert any(f"{figures.EXP_LIMIT:.1f}" in (note.text or "") for note in figure.layout.annotations)
    whole = figures.growth_figure([BlockMagnitude(1.0, 10.0)], shift=True)
    assert not whole.layout.shapes
    assert figures.decades([0.5, 2000.0, np.nan, np.inf, 0.0]) == (-1, 4)
    assert figures.decades([np.nan]) == (-1, 1)


def test_maps_leave_masked_tokens_empty_and_bars_mark_the_best():
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    figure = figures.head_maps([weights, weights], ["<SOS>", "a"], ["<SOS>", "a"], causal=True)
    assert np.isnan(figure.data[0].z[0, 1])
    crossed = figures.head_maps([weights, weights], ["<SOS>", "a"], ["x", "y"], causal=False)
    np.testing.assert_array_equal(crossed.data[1].z, weights)
    assert list(figure.data[0].x) == ["0 &lt;SOS&gt;", "1 a"]
    bars = figures.vocabulary_bars(np.array([0.2, 0.7, 0.1]), ["<a>", "b", "c"])
    assert len(set(bars.data[0].marker.color)) == 2
    assert bars.data[0].marker.color[1] != bars.data[0].marker.color[0]
    assert bars.data[0].y[0] == "&lt;a&gt;"


def test_the_names_of_a_matrix_are_text():
    html = figures.matrix_html("<b>x</b>", np.array([[1.0, np.inf]]), ["<i>row</i>"])
    assert "<i>" not in html
    assert "&lt;b&gt;x" in html
    assert "1 × 2" in html
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html) == ["1", "∞"]


@given(st.floats(0, 60))
def test_the_slope_of_a_softmax_is_that_of_its_two_weights(gap):
    weights = softmax(np.array([0.0, gap]))
    assert smaller_weight(gap) == pytest.approx(weights[0], rel=1e-9)
    assert steepness(gap) == pytest.approx(weights[0] * weights[1], rel=1e-9)
