from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.models.seq2seq import BASE_2017, Seq2SeqConfig, decode, encode
from engine.models.seq2seq_params import RandomParams, n_parameters, parameter_shapes, part_sizes
from engine.trace import Trace
from tests.pytorch import Library

SMALL = Seq2SeqConfig(
    vocab_size=11,
    d_model=16,
    n_heads=4,
    d_head=4,
    d_ff=24,
    n_encoder_layers=2,
    n_decoder_layers=3,
    max_positions=12,
)
SOURCE = np.array([[3, 4, 5, 6, 7], [8, 9, 10, 0, 1], [5, 5, 2, 0, 1]])
TARGET = np.array([[1, 3, 4, 5], [1, 9, 0, 2], [1, 6, 7, 10]])


@pytest.fixture(scope="module")
def params():
    """Random parameters, those of biases and norms too, so that none of them goes unnoticed."""
    rng = np.random.default_rng(1)
    noise = {name: 0.3 * rng.standard_normal(shape) for name, shape in parameter_shapes(SMALL).items()}
    return {name: value + noise[name] for name, value in RandomParams(SMALL, 0, np.dtype(float)).items()}


def official(torch, params, dtype):
    """`torch.nn.Transformer` with the same weights, without the final norms that the paper has not."""
    model = torch.nn.Transformer(
        SMALL.d_model,
        SMALL.n_heads,
        SMALL.n_encoder_layers,
        SMALL.n_decoder_layers,
        SMALL.d_ff,
        dropout=0.0,
        batch_first=True,
        dtype=dtype,
    )
    model.encoder.norm = model.decoder.norm = None
    norms = {"encoder": ("attention", "ffn"), "decoder": ("attention", "cross_attention", "ffn")}
    state = {}
    for side, parts in norms.items():
        for i in range(SMALL.n_encoder_layers if side == "encoder" else SMALL.n_decoder_layers):
            layer = f"{side}.layers.{i}"
            for kind in ("weight", "bias"):
                for part, name in (("attention", "self_attn"), ("cross_attention", "multihead_attn")):
                    if part not in parts:
                        continue
                    packed = [params[f"{layer}.{part}.{of}.{kind}"] for of in ("query", "key", "value")]
                    state[f"{layer}.{name}.in_proj_{kind}"] = np.concatenate(packed)
                    state[f"{layer}.{name}.out_proj.{kind}"] = params[f"{layer}.{part}.output.{kind}"]
                state[f"{layer}.linear1.{kind}"] = params[f"{layer}.ffn.hidden.{kind}"]
                state[f"{layer}.linear2.{kind}"] = params[f"{layer}.ffn.output.{kind}"]
                for number, part in enumerate(parts, start=1):
                    state[f"{layer}.norm{number}.{kind}"] = params[f"{layer}.{part}.norm.{kind}"]
    model.load_state_dict({name: torch.tensor(value, dtype=dtype) for name, value in state.items()})
    return model.train()  # without dropout this is the plain computation; evaluation takes other kernels


@pytest.mark.parametrize(("name", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)])
def test_a_batch_gives_what_torch_gives(torch, params, name, tolerance):
    params = {key: value.astype(name) for key, value in params.items()}
    model = official(torch, params, getattr(torch, name))
    trace = Trace()
    memory = encode(SOURCE, params, SMALL, trace)
    logits = decode(TARGET, memory, params, SMALL, trace)
    with torch.no_grad():
        expected = model.encoder(torch.tensor(trace["encoder.embeddings.output"])).numpy()
        hidden = model(
            torch.tensor(trace["encoder.embeddings.output"]),
            torch.tensor(trace["decoder.embeddings.output"]),
            tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=getattr(torch, name)),
        ).numpy()
    assert memory.dtype == logits.dtype == name
    assert np.abs(memory - expected).max() < tolerance
    assert np.abs(trace["decoder.layers.2.output"] - hidden).max() < tolerance
    assert np.abs(logits - hidden @ params["embedding.weight"].T).max() < 10 * tolerance


def test_embeddings_are_the_table_times_the_root_of_its_width_plus_sines_and_cosines(params):
    trace = Trace()
    encode(SOURCE, params, SMALL, trace)
    first = trace["encoder.embeddings.output"][0, 0]
    np.testing.assert_allclose(first, params["embedding.weight"][3] * 4 + np.tile([0.0, 1.0], 8))
    third = trace["encoder.embeddings.position"][2]
    np.testing.assert_allclose(third[2:4], [np.sin(2 / 10000 ** (2 / 16)), np.cos(2 / 10000 ** (2 / 16))])


@given(st.integers(1, 3), st.integers(1, 10))
def test_a_later_target_token_changes_no_earlier_logits(params, place, token):
    memory = encode(SOURCE[0], params, SMALL)
    changed = TARGET[0].copy()
    changed[place] = token
    before, after = (decode(ids, memory, params, SMALL) for ids in (TARGET[0], changed))
    np.testing.assert_array_equal(before[:place], after[:place])


def test_random_parameters_are_the_same_each_time_they_are_read_and_differ_by_seed():
    first, second = RandomParams(SMALL, 3), RandomParams(SMALL, 3)
    assert list(first) == list(parameter_shapes(SMALL))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    assert not np.array_equal(first["embedding.weight"], RandomParams(SMALL, 4)["embedding.weight"])
    weight = RandomParams(replace(SMALL, d_ff=2000), 0)["encoder.layers.0.ffn.hidden.weight"]
    bound = np.sqrt(6 / 2016)  # as torch.nn.init.xavier_uniform_
    assert 0.99 * bound < np.abs(weight).max() <= bound
    assert abs(weight.std() - bound / np.sqrt(3)) < 0.01 * bound
    assert abs(RandomParams(replace(SMALL, vocab_size=5000), 0)["embedding.weight"].std() - 0.25) < 0.005


def test_the_base_model_of_2017_has_its_65_million_parameters(torch):
    with torch.device("meta"):
        layers = torch.nn.Transformer(512, 8, 6, 6, 2048)
    layers.encoder.norm = layers.decoder.norm = None
    expected = sum(p.numel() for p in layers.parameters()) + 37_000 * 512
    assert n_parameters(BASE_2017) == expected == 63_082_496
    assert abs(expected / 65e6 - 1) < 0.03
    for config in (SMALL, BASE_2017, replace(SMALL, d_head=7)):
        parts = part_sizes(config, 4, 5)
        assert sum(part.n_parameters for part in parts) == n_parameters(config)


def test_flops_are_those_that_torch_counts(torch, params):
    model = official(torch, params, torch.float32)
    x, y = torch.zeros(1, 5, 16), torch.zeros(1, 4, 16)
    embedding = torch.zeros(11, 16)
    with (
        Library("torch.utils.flop_counter").FlopCounterMode(display=False) as counter,
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    ):
        model(x, y) @ embedding.T
    assert sum(part.flops for part in part_sizes(SMALL, 5, 4)) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (np.array([3, 11]), "token id 11 is not in the vocabulary: ids go from 0 to 10"),
        (np.array([-1, 3]), "token id -1"),
        (np.array([], int), "no token at all"),
        (np.full(13, 3), "13 tokens exceeds the model's 12 positions"),
    ],
)
def test_ids_that_the_model_cannot_read_are_refused(params, ids, words):
    with pytest.raises(InputError, match=words):
        encode(ids, params, SMALL)
    with pytest.raises(InputError, match=words):
        decode(ids, np.zeros((5, 16)), params, SMALL)
