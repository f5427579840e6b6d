import io

import numpy as np
import pytest

from engine.errors import ContextLengthError, InputError
from engine.trace import MAX_TRACE_BYTES, Trace, trace_bytes

TEXT = "The cat sat on the mat."


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def model(request):
    return request.getfixturevalue(request.param)


def test_the_shapes_told_before_are_those_of_the_trace(model):
    trace = model.trace(TEXT)
    shapes = {name: array.shape for name, array in trace.items() if name not in ("tokens", "ids")}
    assert shapes == model.trace_shapes(len(trace["ids"]))
    held = sum(trace[name].nbytes for name in shapes)
    assert held == trace_bytes(shapes, ["*"], np.dtype(np.float32))


def test_only_what_is_asked_for_is_kept(model):
    trace = model.trace(TEXT, keep=["layers.*.attention.weights", "layers.2.output", "ids"])
    maps = {f"layers.{i}.attention.weights" for i in range(model.config.n_layers)}
    assert set(trace) == maps | {"layers.2.output", "ids"}
    whole = model.trace(TEXT)
    for name in trace:
        np.testing.assert_array_equal(trace[name], whole[name])


def test_a_trace_that_would_be_too_large_says_its_size_and_runs_nothing(decoder):
    ids = [1] * 200
    size = trace_bytes(decoder.trace_shapes(200), ["*"], np.dtype(np.float32))
    assert size > MAX_TRACE_BYTES
    with pytest.raises(InputError, match=rf"would hold {size / 1e6:,.0f} MB, more than 268"):
        decoder.trace(ids)
    assert len(decoder.trace(ids, keep=["layers.3.attention.weights"])) == 1


def test_a_name_that_does_not_exist_is_refused(model):
    with pytest.raises(InputError, match=r"no array of the trace is called 'layer\.1\.\*'"):
        model.trace(TEXT, keep=["layer.1.*"])


def test_a_trace_can_be_written_to_memory():
    trace = Trace()
    trace("a.b", np.arange(3))
    buffer = io.BytesIO()
    trace.save(buffer)
    buffer.seek(0)
    with np.load(buffer) as saved:
        np.testing.assert_array_equal(saved["a.b"], [0, 1, 2])


def test_a_pair_is_read_with_its_segments_as_the_official_model_reads_it(torch, encoder, official):
    first, second = "How do cats sleep?", "A feline rests curled up."
    trace = encoder.trace(first, pair=second)
    tokens = list(trace["tokens"])
    assert (tokens.count("[CLS]"), tokens.count("[SEP]")) == (1, 2)
    types = [0] * (tokens.index("[SEP]") + 1)
    types += [1] * (len(tokens) - len(types))
    with torch.inference_mode():
        hidden = official[0].auto_model(
            input_ids=torch.tensor(trace["ids"])[None], token_type_ids=torch.tensor(types)[None]
        )
    np.testing.assert_allclose(trace["layers.5.output"], hidden.last_hidden_state[0].numpy(), atol=5e-5)
    alone = encoder.trace(first + " " + second)
    assert not np.allclose(alone["embeddings.type"][-1], trace["embeddings.type"][-1])


def test_a_pair_over_the_limit_is_refused(encoder):
    with pytest.raises(ContextLengthError, match="over the limit of 16"):
        encoder.trace("word " * 10, pair="word " * 10, max_tokens=16)
