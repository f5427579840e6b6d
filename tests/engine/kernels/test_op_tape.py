import tracemalloc
from dataclasses import replace
from itertools import product
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import caching

from engine import Decoder
from engine.generation.decoder import ROOM_TOKENS
from engine.generation.sampling import divergence
from engine.generation.steps import steps_of
from engine.kernels import elementwise, jit, op_loop
from engine.kernels.gemm import WIDE
from engine.kernels.matrix_ops import FEW_TOKENS
from engine.kernels.op_tape import OpTape
from engine.kernels.packed import PIECE_BYTES, StackedMatrix, allocate, pack
from engine.kernels.panel_layout import KINDS
from engine.kernels.simd_matrix import FIXED_ONE
from engine.layers import attention, linear
from engine.layers.attention import split_heads
from engine.models import decoders
from engine.models.kv_cache import KVCache
from engine.models.stored_reader import StoredReader
from engine.weights.quantized import QUANTIZED, UNIT
from engine.weights.stored import FLOATS, StoredTensor, held_bytes
from tests.command_line import ROOT, run_python
from tests.decoder_folders import make_model
from tests.engine.kernels.test_elementwise import part_of_wider
from tests.engine.weights.random_blocks import random_blocks

seeds, few_rows, widths = st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 150)


def stored(rng, kind, d_out, d_in):
    """A matrix of a type: numbers, or blocks of any codes with scales of some size."""
    if kind in FLOATS:
        numbers = rng.normal(size=(d_out, d_in)).astype(np.float32)
        rows = (numbers.view(np.uint32) >> 16) if kind == "BF16" else numbers
        return StoredTensor(kind, rows.astype(FLOATS[kind]))
    return StoredTensor(kind, random_blocks(rng, kind, d_out, d_in // QUANTIZED[kind].n_columns))


def shapes(kind):
    d_ins = (1, 33, 96, 576) if kind in FLOATS else (QUANTIZED[kind].n_columns * n for n in (1, 3))
    return list(product((1, WIDE - 1, WIDE, WIDE + 1, 200), d_ins))


def test_the_memory_of_matrices_is_freed_with_the_last():
    first = allocate(2, PIECE_BYTES // 4)
    piece = ref(first.base)
    second = allocate(1, PIECE_BYTES // 8)
    assert second.base is piece()
    del first, second
    assert piece() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_matrix_gives_the_numbers_of_its_file_in_hardly_more_memory(kind):
    rng = np.random.default_rng(0)
    for d_out, d_in in shapes(kind):
        matrix = stored(rng, kind, d_out, d_in)
        packed, expected = pack(kind, matrix.rows), matrix.float32()
        assert packed.shape == matrix.shape == (d_out, d_in)
        # The same bits, so that the sign of 0 counts.
        np.testing.assert_array_equal(packed.T.T.copy().view(np.uint32), expected.view(np.uint32))
        for rows in ([d_out - 1], [0, d_out - 1, 0, d_out // 2, d_out // 2], range(d_out)[::-3], []):
            np.testing.assert_array_equal(packed[np.array(rows, int)], expected[np.array(rows, int)])
    for row in (-1, d_out):
        with pytest.raises(IndexError, match=f"a matrix that has {d_out}"):
            packed[np.array([0, row])]
    matrix = stored(rng, kind, 2 * WIDE, 512)
    n_bytes = pack(kind, matrix.rows).nbytes
    assert n_bytes == held_bytes(kind) * 2 * WIDE * 512
    assert matrix.rows.nbytes <= n_bytes <= 1.05 * matrix.rows.nbytes


def rounding_of_product(x, matrix, bias):
    """How far float32 sums may be off; few tokens meet codes as 16-bit fractions of 32 numbers each."""
    off = 1e-6 * (1 + np.abs(bias) + np.abs(x) @ np.abs(matrix.float32()).T)
    if matrix.kind in FLOATS or matrix.kind == "Q8_0" or len(x) > FEW_TOKENS:
        return off
    weight = np.abs(without_offset(matrix)).reshape(len(matrix.rows), -1, UNIT).sum(axis=2)
    half_a_step = np.abs(x).reshape(len(x), -1, UNIT).max(axis=2) / FIXED_ONE / 2
    return off + half_a_step @ weight.T


def without_offset(matrix):
    """``d * scale * number[code]``, or the numbers themselves, which are smaller: ``(d_out, d_in)``."""
    own = QUANTIZED[matrix.kind]
    fields = own.split(matrix.rows.copy())
    for name in own.halves[1:]:
        fields[name][:] = 0  # dmin or m
    joined = np.concatenate(list(fields.values()), axis=-1)
    return StoredTensor(matrix.kind, joined.reshape(len(matrix.rows), -1)).float32()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_tokens", [1, FEW_TOKENS, FEW_TOKENS + 1, 130])
def test_a_packed_product_equals_its_numpy_twin(kind, n_tokens):
    rng = np.random.default_rng(n_tokens)
    for d_out, d_in in shapes(kind):
        matrix, x = stored(rng, kind, d_out, d_in), part_of_wider(rng, n_tokens, d_in)
        weight, bias = matrix.float32().astype(np.float64), rng.normal(size=d_out).astype(np.float32)
        y = OpTape(0).linear(x, pack(kind, matrix.rows), bias)
        error = np.abs(y - linear.linear(x.astype(np.float64), weight, bias))
        assert (error <= rounding_of_product(x, matrix, bias)).all()


@pytest.mark.parametrize("n_tokens", [1, 3, 9])
def test_a_packed_stack_of_several_types_equals_its_parts(n_tokens):
    rng = np.random.default_rng(n_tokens)
    sizes = {"Q4_K": 70, "F16": 1, "Q6_K": WIDE, "Q8_0": 33}
    matrices = [stored(rng, kind, d_out, 256) for kind, d_out in sizes.items()]
    weight, x = StoredReader(None, packed=True).matrix(*matrices), part_of_wider(rng, n_tokens, 256)
    assert isinstance(weight, StackedMatrix)
    assert [part.kind for part in weight.parts] == list(sizes)
    assert weight.nbytes == sum(part.nbytes for part in weight.parts)
    expected, rows = (
        np.concatenate([matrix.float32() for matrix in matrices]),
        np.array([0, 70, 69, 71 + WIDE]),
    )
    np.testing.assert_array_equal(weight.T.T, expected)
    np.testing.assert_array_equal(weight[rows], expected[rows])
    bias = rng.normal(size=len(expected)).astype(np.float32)
    biases = np.split(bias, np.cumsum(list(sizes.values()))[:-1])
    apart = [OpTape(0).linear(x, part, own) for part, own in zip(weight.parts, biases, strict=True)]
    np.testing.assert_array_equal(OpTape(0).linear(x, weight, bias), np.concatenate(apart, axis=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_tokens", [2, 9])
def test_a_product_takes_numbers_of_any_size_and_shows_what_is_none_in_its_row(kind, n_tokens):
    rng = np.random.default_rng(0)
    matrix = stored(rng, kind, 70, 256)
    packed, weight = pack(kind, matrix.rows), matrix.float32().astype(np.float64)
    for scale in (0.0, 1e-30, 1e30):
        x = part_of_wider(rng, n_tokens, 256, scale)
        x[:, :UNIT] = 0
        exact = x.astype(np.float64)
        off = np.abs(OpTape(0).linear(x, packed) - exact @ weight.T)
        assert (off <= 1e-4 * np.abs(exact) @ np.abs(weight).T + 1e-37).all()
    for bad in (np.nan, np.inf):
        x = part_of_wider(rng, n_tokens, 256)
        x[1, 40] = bad
        finite = np.isfinite(OpTape(0).linear(x, packed))
        np.testing.assert_array_equal(finite.all(axis=1), np.arange(n_tokens) != 1)
        assert not finite[1].any()


@given(few_rows, widths, seeds)
def test_add_equals_its_numpy_twin(n_tokens, d_model, seed):
    rng = np.random.default_rng(seed)
    x, y = part_of_wider(rng, n_tokens, d_model), part_of_wider(rng, n_tokens, 2 * d_model)[:, d_model:]
    np.testing.assert_array_equal(OpTape(0).add(x, y), x + y)


class Sizes:
    """Of a cache, of which the attention of one layer is looked at."""

    n_layers = 3

    def __init__(self, n_kv_heads, d_head):
        self.n_kv_heads, self.d_head = n_kv_heads, d_head


LAYER = 1


def stacked_heads(rng, n_tokens, n_heads, sizes, scale=1.0):
    """Query, key and value ``(n_.._heads, n_tokens, d_head)`` as a model's stacked matrix gives them."""
    n_all = n_heads + 2 * sizes.n_kv_heads
    heads = split_heads(part_of_wider(rng, n_tokens, n_all * sizes.d_head, scale), n_all)
    query, key, value = np.split(heads, [n_heads, n_heads + sizes.n_kv_heads])
    apart = np.ascontiguousarray(key.swapaxes(0, 1)).swapaxes(0, 1)  # as a norm of heads leaves them
    return query, apart, value


def cached_numbers(cache, n_tokens):
    """Keys and values of a layer's first tokens as float32: ``(n_kv_heads, n_tokens, d_head)`` each."""
    return [numbers[LAYER, :, :n_tokens].astype(np.float32) for numbers in (cache.keys, cache.values)]


def assert_attention_equal(ours, numpys, query, key, value, **options):
    """Attend to one more piece of text with both caches, in which the same keys and values stand."""
    length = ours.length
    context = OpTape(length).causal_attention(query, key, value, ours, LAYER, **options)
    exact = query.astype(np.float64)
    expected = attention.causal_attention(exact, key, value, numpys, LAYER, **options)
    keys, values = cached_numbers(numpys, length + query.shape[1])
    # Rounding in a score of size s moves a weight by a share of s.
    largest = np.abs(keys).max() * np.abs(query).max()
    rounding = 1e-6 * (1 + largest * np.sqrt(query.shape[2])) * np.abs(values).max()
    np.testing.assert_allclose(context, expected, rtol=0, atol=rounding)
    for cache in (ours, numpys):
        cache.length += query.shape[1]
    np.testing.assert_array_equal(cached_numbers(ours, ours.length), [keys, values])


@given(
    st.lists(st.sampled_from([1, 1, 2, 7, 63, 64, 65, 130]), min_size=1, max_size=5),
    st.sampled_from([1, 3, 4]),
    st.integers(1, 3),
    st.sampled_from([64, 128]),
    st.floats(0.1, 5),
    st.none() | st.sampled_from([1, 2, 40, 64, 65, 200]),
    st.sampled_from([None, 0.1]),
    seeds,
)
def test_attention_equals_its_numpy_twin_with_cached_keys_and_values(
    pieces, group, n_kv_heads, d_head, spread, window, scale, seed
):
    sizes, rng = Sizes(n_kv_heads, d_head), np.random.default_rng(seed)
    n_all = sum(pieces)
    ours = KVCache(sizes, min(n_all, 3), n_all, np.float16)  # grows
    numpys = KVCache(sizes, n_all, dtype=np.float16)
    for array in (ours.keys, ours.values, numpys.keys, numpys.values):
        array[:] = np.nan  # what was not written is not read
    for n_tokens in pieces:
        heads = stacked_heads(rng, n_tokens, group * n_kv_heads, sizes, spread)
        assert_attention_equal(ours, numpys, *heads, window=window, scale=scale)


@pytest.mark.parametrize("n_tokens", [1, 70])
@pytest.mark.parametrize("sign", [1, -1])
def test_far_scores_neither_overflow_nor_lose_mass(n_tokens, sign):
    """The scores of neighbours are a million apart: each query sees the largest alone."""
    sizes, n_before = Sizes(1, 64), 40
    n_all = n_before + n_tokens
    cache = KVCache(sizes, n_all, dtype=np.float16)
    query, key = np.zeros((2, 1, n_all, 64), np.float32)
    query[..., 0], key[0, :, 0] = 1e6 * sign, 8 * np.arange(n_all)
    value = np.random.default_rng(0).normal(size=(1, n_all, 64)).astype(np.float16).astype(np.float32)
    OpTape(0).causal_attention(*(x[:, :n_before] for x in (query, key, value)), cache, LAYER)
    rest = (x[:, n_before:] for x in (query, key, value))
    context = OpTape(n_before).causal_attention(*rest, cache, LAYER)
    expected = value[:, n_before:] if sign == 1 else np.repeat(value[:, :1], n_tokens, axis=1)
    np.testing.assert_allclose(context, expected, atol=1e-6)


@pytest.mark.parametrize("n_tokens", [1, 2])
@pytest.mark.parametrize("place", ["key", "value"])
@pytest.mark.parametrize("bad", [np.nan, 1e5])  # float16 ends at 65504
def test_what_cannot_be_cached_stays_visible(n_tokens, place, bad):
    sizes, rng = Sizes(1, 64), np.random.default_rng(0)
    cache = KVCache(sizes, 40 + n_tokens, dtype=np.float16)
    query, key, value = (np.abs(x) for x in stacked_heads(rng, 40 + n_tokens, 1, sizes))
    {"key": key, "value": value}[place][0, 3, 5] = bad
    OpTape(0).causal_attention(*(x[:, :40] for x in (query, key, value)), cache, LAYER)
    context = OpTape(40).causal_attention(*(x[:, 40:] for x in (query, key, value)), cache, LAYER)
    assert not np.isfinite(context[..., 5]).any()


SMALL_PHI3 = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
SMALL_GEMMA3 = {
    "hidden_size": 128,
    "sliding_window": 20,
    "query_pre_attn_scalar": 168,
    "final_logit_softcapping": 30.0,
    "layer_types": ["sliding_attention", "full_attention"],
}
DAILY = ("llama, heads of 128", "gemma3", "gpt2")  # grouped queries, windows and head norms, layer norms
MODELS = {
    "llama": ("llama", {}),
    "llama, bfloat16": (
        "llama",
        {"dtype": "bfloat16", "num_key_value_heads": 6, "tie_word_embeddings": True},
    ),
    "llama, heads of 128": ("llama", {"dtype": "float16", "head_dim": 128, "num_key_value_heads": 1}),
    "qwen2": ("qwen2", {}),
    "qwen2, bfloat16": ("qwen2", {"dtype": "bfloat16", "tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"head_dim": 128}),
    "mistral": ("mistral", {"sliding_window": 20}),
    "smollm3": ("smollm3", {"no_rope_layer_interval": 2}),
    "phi3": ("phi3", SMALL_PHI3 | {"rope_parameters": {"partial_rotary_factor": 0.75}}),
    "gemma3": (
        "gemma3_text",
        {"head_dim": 256, "num_attention_heads": 2, "num_key_value_heads": 1, **SMALL_GEMMA3},
    ),
    "gpt2": ("gpt2", {}),
    "gpt2, float16": ("gpt2", {"dtype": "float16", "tie_word_embeddings": False}),
}
IDS = [int(number) for number in np.random.default_rng(0).integers(1, 257, 150)]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in DAILY else [pytest.mark.nightly]) for name in MODELS],
)
def models(request, tmp_path_factory):
    """The same small model compiled, and readable."""
    family, sizes = MODELS[request.param]
    folder = make_model(tmp_path_factory.mktemp("model"), family, **sizes)
    compiled, readable = Decoder.load(folder), Decoder.load(folder, compiled=False)
    assert decoders.is_packed(compiled.weights)
    assert not decoders.is_packed(readable.weights)
    return compiled, readable


def readable_logits(decoder, ids, dtype):
    """Logits of NumPy alone, with keys and values rounded to a type."""
    cache = KVCache(decoder.config, len(ids), dtype=dtype)
    return decoders.unembed(
        decoders.decoder_forward(ids, decoder.weights, decoder.config, cache, lambda _, x: x),
        decoder.weights,
        decoder.config,
    )


def spread(difference, logits):
    """Root mean square of a difference, in units of the logits' own spread."""
    return np.sqrt(np.square(difference).mean()) / logits.std()


def test_a_compiled_decoder_differs_by_the_rounding_of_keys_and_values_alone(models):
    compiled, readable = models
    rounding = 2**-12  # how far a number moves at most, as a share of itself: half a step of float16
    ours, exact = compiled.logits(IDS), readable.logits(IDS)
    rounded = readable_logits(readable, IDS, np.float16)
    # A score moves by as much, and scores here are about 10; logits move by both keys and values.
    assert spread(ours - exact, exact) < 20 * rounding
    # The same without it, but for the few numbers that lie between two steps and go the other way.
    assert spread(ours - rounded, exact) < 2 * rounding


def test_a_compiled_decoder_chooses_the_tokens_of_the_readable_one(models):
    compiled, readable = models
    chosen = [step.token_id for step in compiled.generate(IDS[:20], max_new_tokens=60)]
    logits = readable.logits(IDS[:20] + chosen[:-1])[19:]  # (n_chosen, vocab_size)
    behind = logits.max(axis=1) - logits[range(len(chosen)), chosen]
    assert (behind < 0.02 * logits.std()).all()  # as probable as the best within rounding
    assert (behind == 0).mean() > 0.9


def read_singly(decoder, ids, cache):
    return np.array([decoder.next_logits([token], cache)[0] for token in ids])


def test_a_replayed_pass_equals_its_primitives_one_by_one(models):
    compiled, _ = models
    weights, config = compiled.weights, compiled.config
    ids = IDS[:80]
    cache, plain = (compiled.new_cache(len(ids)) for _ in range(2))
    for token in ids:
        ours = compiled.next_logits([token], cache)
        states = decoders.decoder_forward([token], weights, config, plain)
        expected = decoders.unembed(states, weights, config)
        np.testing.assert_array_equal(ours, expected)
    assert cache.length == len(ids)
    np.testing.assert_array_equal(cache.keys, plain.keys)
    np.testing.assert_array_equal(cache.values, plain.values)


def test_tokens_read_together_have_the_numbers_of_tokens_read_one_by_one(models):
    compiled, _ = models
    weights, config = compiled.weights, compiled.config
    together, singly = (compiled.new_cache(len(IDS)) for _ in range(2))
    expected = read_singly(compiled, IDS, singly)
    for n_tokens in (1, 3, 2, 70, FEW_TOKENS, 1, 3, 62):  # as a guess, or as what follows a known beginning
        ids = IDS[together.length :][:n_tokens]
        behind = expected[together.length :][:n_tokens]
        if n_tokens <= FEW_TOKENS:
            ours = steps_of(weights).next_logits(ids, weights, config, together)
            np.testing.assert_array_equal(ours, behind)
        else:
            decoders.decoder_forward(ids, weights, config, together)
            together.keys[:], together.values[:] = singly.keys, singly.values
    assert together.length == len(IDS)


@pytest.mark.parametrize("n_kept", [0, 40, 99])
def test_after_a_rollback_it_is_as_if_no_more_had_been_read(models, n_kept):
    decoder, _ = models
    other = IDS[::-1][:30]
    cache, fresh = (decoders.new_cache(decoder.weights, decoder.config, 10, limit=150) for _ in range(2))
    read_singly(decoder, IDS[:50], cache)
    decoders.decoder_forward(IDS[50:100], decoder.weights, decoder.config, cache)
    cache.rollback(n_kept)
    read_singly(decoder, IDS[: min(n_kept, 50)], fresh)
    if n_kept > 50:
        decoders.decoder_forward(IDS[50:n_kept], decoder.weights, decoder.config, fresh)
    ours, expected = read_singly(decoder, other, cache), read_singly(decoder, other, fresh)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("llama", {"head_dim": 16}),
        ("qwen2", {"head_dim": 96}),
        ("gpt2", {"n_head": 8}),
        ("gpt2", {"activation_function": "relu"}),
    ],
    ids=str,
)
def test_a_model_without_compiled_operations_runs_on_numpy(tmp_path, family, sizes):
    make_model(tmp_path, family, **sizes)
    decoder, readable = Decoder.load(tmp_path), Decoder.load(tmp_path, compiled=False)
    assert not decoders.is_packed(decoder.weights)
    assert decoders.new_cache(decoder.weights, decoder.config, 8).keys.dtype == np.float32
    np.testing.assert_array_equal(decoder.logits(IDS[:20]), readable.logits(IDS[:20]))
    assert len(list(decoder.generate(IDS[:5], max_new_tokens=3))) == 3


@pytest.mark.nightly
@pytest.mark.parametrize(("compiled", "context"), [(True, decoders.CACHE_TOKENS), (False, 1024)])
def test_a_long_context_stays_within_the_memory_told_before(tmp_path, compiled, context):
    sizes = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 4}
    folder = make_model(tmp_path, "llama", max_position_embeddings=context, **sizes)
    decoder = replace(Decoder.load(folder, compiled=compiled), end_ids=frozenset())
    ids = np.random.default_rng(0).integers(1, 257, context).tolist()

    def peak(n_prompt, n_new):
        tracemalloc.start()
        steps = decoder.generate(ids[:n_prompt], n_new)
        assert len(list(steps)) == n_new
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    n_bytes = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    told = decoders.memory_bytes(decoder.config, n_bytes if compiled else None) - n_bytes
    of_a_block = peak(decoders.BLOCK_TOKENS, 1)  # which takes as much in any context, but for the attention
    n_growing = ROOM_TOKENS + 1  # the last of these does not fit into the cache that the prompt began
    for n_prompt, n_new in ((context - 1, 1), (context - n_growing, n_growing)):
        assert peak(n_prompt, n_new) - of_a_block < told


def test_the_default_decoder_loses_next_to_nothing_and_says_the_same(decoder, readable_decoder):
    readable, text = readable_decoder, (ROOT / "data" / "corpus" / "wikitexts.md").read_text("utf-8")
    ids = decoder.tokenizer.encode(text[:2000]).ids[:50]
    exact = readable.unembed(readable.inspect(ids))
    cache = decoders.new_cache(decoder.weights, decoder.config, 50)
    for logits in (decoder.unembed(decoder.inspect(ids)), read_singly(decoder, ids, cache)):
        found = divergence(exact, logits)
        assert found.mean() < 1e-5
        assert found.max() < 1e-3
    prompt = [{"role": "user", "content": "Why is the sky blue?"}]
    ours, theirs = ([step.token_id for step in model.generate(prompt, 16)] for model in (decoder, readable))
    assert ours == theirs


def test_a_change_in_any_file_of_the_kernels_is_noticed_by_their_cache(tmp_path):
    for function in (op_loop.run_thread, elementwise._gelu):
        locator = caching.CompileResultCacheImpl(function.py_func).locator
        assert locator.get_source_stamp() == jit.KERNELS_DIGEST
    copies = [tmp_path / path.name for path in jit.SOURCES]
    assert {path.stem for path in copies} >= {"rows", "op_loop", "simd_panels", "quantized"}
    for path, copy in zip(jit.SOURCES, copies, strict=True):
        copy.write_bytes(path.read_bytes())
    for copy in copies:
        before = jit.digest(copies)
        copy.write_bytes(copy.read_bytes() + b"#")
        assert jit.digest(copies) != before


VECTOR_AND_TOKENS = """
import sys
from engine import Decoder, Encoder
from engine.kernels.primitives import NUMPY, best_primitives, prepare_compiled
encoder = Encoder.load()
prepare_compiled().join()
print(best_primitives() is NUMPY, encoder.encode(["The cat sat."]).shape)
decoder = Decoder.load(sys.argv[1])
print(type(decoder.weights.token_table).__name__)
print([step.token_id for step in decoder.generate([5, 6, 7], max_new_tokens=5)])
"""
NO_HALF_PRECISION = """
import llvmlite.binding as llvm
features = {**llvm.get_host_cpu_features(), "f16c": False, "neon": False}
llvm.get_host_cpu_features = lambda: features
"""


@pytest.mark.parametrize(
    ("begin", "variables"),
    [
        pytest.param("import sys; sys.modules['numba'] = None", {}, id="without numba"),
        pytest.param("", {"NUMBA_DISABLE_JIT": "1"}, id="switched off", marks=pytest.mark.nightly),
        pytest.param(NO_HALF_PRECISION, {}, id="without half precision", marks=pytest.mark.nightly),
    ],
)
def test_where_nothing_is_compiled_vectors_and_tokens_are_made_all_the_same(tmp_path, begin, variables):
    decoder = Decoder.load(make_model(tmp_path, "llama"))
    assert decoders.is_packed(decoder.weights)
    vector, held, tokens = run_python(begin + VECTOR_AND_TOKENS, str(tmp_path), **variables)
    assert vector == "True (1, 384)"
    assert held == "ndarray"
    assert tokens == str([step.token_id for step in decoder.generate([5, 6, 7], max_new_tokens=5)])


FEWER_FEATURES = """
import sys, llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
features.update({name: False for name in features if name.startswith(tuple(sys.argv[2:]))})
llvm.get_host_cpu_features = lambda: features
import pytest
from engine.kernels import gemm
assert gemm.WIDE == int(sys.argv[1])
files = [f"tests/engine/kernels/test_{name}.py" for name in ("op_tape", "elementwise", "gemm_int8")]
tests = "packed or unpacked or product or twin or attend or scores or code"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *files, "-k", tests]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("width", "missing"),
    [(16, ["avx512"]), (16, ["avx512", "avxvnni"]), (64, ["avx512vnni", "amx"])],
    ids=["AVX-VNNI", "AVX2", "AVX-512 alone"],
)
def test_older_processors_give_the_same(request, width, missing):
    """The compiler ends a process where it meets an instruction that the processor lacks."""
    if width > WIDE:
        pytest.skip("this processor has no registers so wide")
    kept = request.config.cache.mkdir("other-kernels")  # compiled once
    lines = run_python(FEWER_FEATURES, width, *missing, NUMBA_CACHE_DIR=str(kept))
    assert " passed" in lines[-1]
