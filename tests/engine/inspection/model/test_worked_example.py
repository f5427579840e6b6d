import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.inspection.model import worked_example as worked
from engine.models.seq2seq import Seq2SeqConfig, layer_forward
from engine.trace import Trace

FILE = Path(__file__).parents[4] / "data" / "random_transformer.json"
FLOAT32 = np.dtype(np.float32)


EXAMPLE = worked.Options()
PAPER_SCALE = worked.Options(divisor=np.sqrt(3))
# The numbers that the file gives for a forward pass with either scale, by their names in the trace.
WITH_ROOT = {
    "K1": "heads.0.key",
    "V1": "heads.0.value",
    "Q1": "heads.0.query",
    "scores1": "heads.0.scores",
    "scores1_scaled": "heads.0.scaled",
    "weights1": "heads.0.weights",
    "attention1": "heads.0.context",
    "attention2": "heads.1.context",
}
WITH_30 = {
    "attention1_scaled_by_30": "heads.0.context",
    "attention2_scaled_by_30": "heads.1.context",
    "Z": "projected",
    "residual_layer_norm": "norm",
}


@pytest.fixture(scope="module")
def printed():
    """The file as text and as numbers: how many digits a number has is part of what it says."""
    return json.loads(FILE.read_text("utf-8"), parse_float=str, parse_int=str)


def assert_printed(found, texts):
    """Every number is the printed one, to half a unit of its last digit."""
    texts = np.array(texts)
    assert found.shape == texts.shape
    for value, text in zip(found.ravel(), texts.ravel(), strict=True):
        digits, _, exponent = text.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        assert abs(value - float(text)) <= 0.5001 * unit, (value, text)


def traced(options, matrices=None):
    trace = Trace()
    matrices = matrices or worked.example_matrices(0)
    worked.encoder_block(matrices["tokens"] + worked.positions(2, options), matrices, options, trace)
    return trace


def test_the_attention_of_the_example_is_reproduced_to_its_printed_digits(printed):
    for options, names in ((PAPER_SCALE, WITH_ROOT), (EXAMPLE, WITH_30)):
        trace = traced(options)
        for name, place in names.items():
            assert_printed(trace[f"attention.{place}"], printed[name])
    assert traced(PAPER_SCALE)["attention.heads.0.weights"].min() < 1e-11
    assert traced(EXAMPLE)["attention.heads.0.weights"].min() > 0.1  # dividing by 30 unsaturates the softmax


@given(st.integers(0, 100))
def test_with_the_options_of_the_paper_a_block_is_the_engine_s_encoder_layer(seed):
    options = worked.Options(np.sqrt(3), "usual", True, "formula")
    config = Seq2SeqConfig(5, 4, 2, 3, 8, 1, 0, 8, norm_eps=1e-5)
    m = worked.example_matrices(seed)
    params = {"output.weight": m["output"].T, "output.bias": np.zeros(4)}
    for part in ("query", "key", "value"):
        params[f"{part}.weight"] = np.concatenate([m[f"heads.{i}.{part}"].T for i in range(2)])
        params[f"{part}.bias"] = np.zeros(6)
    params = {f"layer.attention.{name}": value for name, value in params.items()}
    for part, number in (("hidden", 1), ("output", 2)):
        params[f"layer.ffn.{part}.weight"] = m[f"ffn.w{number}"].T
        params[f"layer.ffn.{part}.bias"] = m[f"ffn.b{number}"][0]
    for part in ("attention", "ffn"):
        params |= {f"layer.{part}.norm.weight": np.ones(4), f"layer.{part}.norm.bias": np.zeros(4)}
    x = m["tokens"] + worked.positions(2, options)
    expected = layer_forward(x, None, None, params, "layer", config, Trace())
    np.testing.assert_allclose(worked.encoder_block(x, m, options), expected, atol=1e-12)


@pytest.mark.parametrize("residual", [True, False])
def test_without_norm_exp_overflows_and_with_it_nothing_grows(residual):
    x, m = worked.TOKENS + worked.ROUNDED_POSITIONS, worked.example_matrices(0)
    bare = worked.Options(norm="none", residual=residual, shift_softmax=False)
    last, sizes = worked.encoder_stack(x, m, 6, 0, bare, FLOAT32)
    assert last.dtype == np.float32
    assert np.isnan(last).all()
    first = next(i for i, size in enumerate(sizes) if np.isnan(size.largest_output))
    assert sizes[first].largest_score > np.log(np.finfo(np.float32).max)
    shifted, sizes = worked.encoder_stack(x, m, 6, 0, replace(bare, shift_softmax=True), FLOAT32)
    assert np.isfinite(shifted).all()
    assert sizes[-1].largest_output > 1e4 * sizes[0].largest_output
    if not residual:  # even a shifted softmax ends where float32 does
        longer = replace(bare, shift_softmax=True)
        assert np.isnan(worked.encoder_stack(x, m, 24, 0, longer, FLOAT32)[1][-1].largest_output)
        assert np.isfinite(worked.encoder_stack(x, m, 24, 0, longer, np.dtype(float))[1][-1].largest_output)
    for shift in (True, False):
        options = replace(bare, norm="example", shift_softmax=shift)
        assert all(size.largest_output < 2 for size in worked.encoder_stack(x, m, 24, 0, options, FLOAT32)[1])


def test_the_decoder_sees_no_later_token_and_all_of_the_source():
    memory, m = (
        worked.encoder_block(worked.TOKENS + worked.ROUNDED_POSITIONS, worked.example_matrices(0), EXAMPLE),
        worked.random_decoder(0),
    )
    trace = Trace()
    logits = worked.decoder_block([worked.SOS, 2, 3], memory, m, EXAMPLE, trace)
    assert logits.shape == (3, len(worked.VOCABULARY))
    assert not np.triu(trace["self.heads.0.weights"], 1).any()
    assert trace["cross.heads.1.weights"].shape == (3, 2)
    assert (trace["cross.heads.1.weights"] > 0).all()
    np.testing.assert_allclose(trace["cross.heads.0.key"], memory @ m["cross.heads.0.key"])
    other_end = worked.decoder_block([worked.SOS, 2, 9], memory, m, EXAMPLE)
    np.testing.assert_array_equal(logits[:2], other_end[:2])
    assert not np.array_equal(logits, worked.decoder_block([worked.SOS, 2, 3], memory + 1, m, EXAMPLE))


def test_greedy_decoding_takes_the_most_probable_token_to_the_end_or_the_maximum():
    embedded = worked.TOKENS + worked.ROUNDED_POSITIONS
    memory = worked.encoder_block(embedded, worked.example_matrices(0), EXAMPLE)
    ends = set()
    for seed in range(20):
        ids, probabilities = worked.greedy_decode(memory, worked.random_decoder(seed), EXAMPLE, 8)
        assert ids[0] == worked.SOS
        assert ids[1:] == probabilities.argmax(axis=-1).tolist()
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1)
        assert worked.EOS not in ids[1:-1]
        assert ids[-1] == worked.EOS or len(probabilities) == 8
        ends.add(ids[-1] == worked.EOS)
    assert ends == {True, False}


def test_a_matrix_with_no_number_in_a_cell_is_refused_by_its_place():
    matrix = np.zeros((4, 3))
    worked.check_matrix("WQ", matrix)
    for value, words in (
        (np.nan, "WQ, row 2, column 3 is empty or no number"),
        (np.inf, "is inf, beyond ±1,000,000"),
        (-2e6, "is -2e"),
    ):
        matrix[1, 2] = value
        with pytest.raises(InputError, match=words):
            worked.check_matrix("WQ", matrix)
