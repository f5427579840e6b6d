import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.verify import StageCheck
from pages.inside.chunk.figures import arcs, farthest_from_zero, head_grid, largest_of_blocks, tensor_map
from pages.inside.chunk.pipeline import strongest_pair
from pages.inside.verify.comparison import LAYER_STAGES, difference_figure
from ui.figures import weights_map
from ui.tokens import LABELLED_TOKENS


def attention(n_tokens, n_heads=12):
    weights = np.random.default_rng(0).random((n_heads, n_tokens, n_tokens))
    return weights / weights.sum(axis=-1, keepdims=True)


@given(
    arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=st.floats(-9, 9, width=32)),
    st.integers(1, 7),
)
def test_shrinking_keeps_what_is_farthest_from_zero(tensor, step):
    shrunk = farthest_from_zero(tensor, step)
    assert shrunk.shape == (len(tensor), -(-tensor.shape[1] // step))
    np.testing.assert_array_equal(np.abs(shrunk).max(axis=1), np.abs(tensor).max(axis=1))


def test_attention_has_the_words_on_both_axes_those_that_are_drawn_and_another_tensor_numbers():
    words = ["[CLS]", "the", "bank", "[SEP]"]
    labels = [f"{number} {word}" for number, word in enumerate(words)]
    weights = np.full((4, 4), 0.25, np.float32)
    attention = tensor_map(weights, labels, "key (token attended to)", labels)
    assert list(attention.data[0].x) == list(attention.data[0].y) == labels
    assert attention.layout.xaxis.dtick == 1
    assert list(tensor_map(weights, labels, "dimension").data[0].x) == [0, 1, 2, 3]
    labels = [f"{number} word" for number in range(400)]
    figure = tensor_map(np.zeros((400, 400), np.float32), labels, "key", labels)
    assert list(figure.data[0].x) == labels[::2]
    assert figure.layout.xaxis.nticks < LABELLED_TOKENS  # some of them
    grid = head_grid(np.zeros((12, 96, 96), np.float32), 0, labels[:96])
    assert list(grid.data[0].x) == list(grid.data[0].y) == labels[:96:2]
    assert "to %{x}" in grid.data[0].hovertemplate
    assert grid.layout.xaxis9.showticklabels
    assert grid.layout.yaxis.showticklabels


def test_the_longest_text_makes_small_figures():
    weights = attention(512)
    tokens = [f"token{i}" for i in range(512)]
    assert sum(np.size(trace.z) for trace in head_grid(weights, 0, tokens).data) < 12 * 50 * 50
    assert len(arcs(weights[0], tokens, 100).data) <= 25
    assert tensor_map(np.ones((512, 1536)), tokens, "dimension").data[0].z.shape == (512, 384)
    assert weights_map(weights[0], tokens, causal=False).layout.xaxis.nticks < LABELLED_TOKENS


def test_stages_that_differ_without_end_are_drawn_as_failures():
    stages = list(LAYER_STAGES)
    differences = dict.fromkeys(stages, 3.1e-7) | {stages[-2]: np.inf, stages[-1]: 0.0}
    checks = [StageCheck(f"layers.0.{stage}", d, d, 1e-5, d, 1) for stage, d in differences.items()]
    [drawn] = difference_figure(checks, 1, "float32").data
    assert [text for [text] in drawn.text] == [*["3e-7"] * (len(stages) - 2), "✗ inf", "0"]
    assert np.isfinite(np.array(drawn.z, float)).all()


@given(st.integers(1, 130), st.integers(1, 60))
def test_a_small_map_keeps_the_largest_weight_and_fits(n_tokens, n_cells):
    [weights] = attention(n_tokens, n_heads=1)
    small = largest_of_blocks(weights, n_cells)
    assert len(small) <= n_cells
    assert small.max() == weights.max()


def test_the_strongest_pair_is_of_two_words():
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]], np.float32)
    assert strongest_pair(weights, np.array([False, False, False])) == (1, 2)
    assert strongest_pair(weights, np.array([False, False, True])) == (1, 0)
    assert strongest_pair(weights, np.array([True, False, True])) is None
