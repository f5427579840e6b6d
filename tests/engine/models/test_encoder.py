import inspect
import json
from contextlib import nullcontext

import numpy as np
import pytest

from engine.errors import InputError
from engine.models.encoder import WITHOUT_EFFECT
from engine.weights.fetch import model_path

WORDS = ["retrieval", "unhappily", "naïve", "東京", "🙂", "the", "Ärger", "x1y2", "don't", "..."]


def texts():
    """Texts of 1 to about 700 tokens, and the odd ones."""
    rng = np.random.default_rng(0)
    odd = [
        "",
        " \n\t ",
        "🙂🙃👩‍👩‍👧",
        "東京は日本の首都です。",
        "a\x00b\x07c",
        "e\u0301",
        "한국어 문장",
        "word " * 700,
    ]
    lengths = rng.permutation(np.geomspace(1, 300, 16).astype(int))  # in words
    return odd + [" ".join(rng.choice(WORDS, length)) for length in lengths]


@pytest.fixture(scope="module")
def vectors(encoder):
    """The vectors of all texts, computed together."""
    return encoder.encode(texts())


def test_vectors_equal_sentence_transformers(vectors, official):
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, official.encode(texts(), show_progress_bar=False), rtol=0, atol=1e-6)


def test_no_texts_one_text_and_an_iterator_are_read(encoder):
    assert encoder.encode([]).shape == (0, 384)
    np.testing.assert_array_equal(encoder.encode("one text"), encoder.encode(["one text"])[0])
    assert encoder.encode("one text", ["mean", "cls"])["cls"].shape == (384,)
    assert encoder.encode(iter(["an", "iterator"])).shape == (2, 384)


def test_every_option_of_the_library_is_taken_or_said_to_have_no_effect(encoder, official, capsys):
    options = inspect.signature(official.encode).parameters
    assert {*WITHOUT_EFFECT} < {*options}
    for name in {*options} - {"inputs", "kwargs"}:
        said = (
            pytest.warns(UserWarning, match=f"{name} has no effect")
            if name in WITHOUT_EFFECT
            else nullcontext()
        )
        with said:
            encoder.encode("a", **{name: options[name].default})
    for given in (
        {"prompt": "query: ", "truncate_dim": 8},
        {"prompt_name": "document", "normalize_embeddings": True},
    ):
        np.testing.assert_allclose(encoder.encode(["a"], **given), official.encode(["a"], **given), atol=1e-6)
    encoder.encode(["a", "b"], show_progress_bar=True)
    assert "Embedding 2 texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "b"), (np.ones((2, 3)), np.ones((2, 4))), (np.ones((2, 2, 3)), np.ones((2, 3))), (["a"], [[1.0]])],
)
def test_only_vectors_of_one_length_are_compared(encoder, first, second):
    with pytest.raises(InputError, match="cannot be compared: give vectors of one model"):
        encoder.similarity(first, second)


def test_work_stops_where_the_listener_raises_and_a_listener_may_embed_texts_itself(encoder):
    def stop(done, total):
        raise KeyboardInterrupt

    texts = ["word " * 200 + str(number) for number in range(6)]  # two packs
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(texts, on_progress=stop)
    inner = []
    encoder.encode(texts, on_progress=lambda done, total: inner.append(encoder.encode(texts)))
    assert inner[0].shape == (6, 384)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"texts": ["fine", None]}, "text 1 is NoneType"),
        ({"texts": {"a": 1}}, "texts are wanted, and this is dict"),
        ({"texts": ["x"], "normalize": True}, "option 'normalize' is not one of"),
        ({"texts": ["x"], "max_tokens": "9"}, "max_tokens is '9'"),
        ({"texts": ["x"], "pooling": []}, "no pooling"),
        ({"texts": ["\ud800"]}, "surrogate"),
        ({"texts": ["x"], "pooling": "best"}, "pooling 'best'"),
        ({"texts": ["x"], "max_tokens": 2}, "3 to 512"),
    ],
)
def test_bad_input_says_what_is_wrong(encoder, arguments, reason):
    with pytest.raises(InputError, match=reason):
        encoder.encode(**arguments)


def test_a_trace_sees_what_encode_returns_and_can_be_saved(encoder, tmp_path):
    trace = encoder.trace("The cat sat.")
    np.testing.assert_allclose(trace["normalized"], encoder.encode(["The cat sat."])[0], atol=1e-6)
    trace.save(tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as saved:
        assert set(saved) == set(trace)
        for name in trace:
            np.testing.assert_array_equal(saved[name], trace[name])


def test_words_of_the_whole_vocabulary_under_a_higher_limit_give_the_official_vectors(encoder, official):
    vocabulary = json.loads((model_path(encoder.name) / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(word for word in vocabulary if word.isalpha())
    rng = np.random.default_rng(0)
    some = [" ".join(rng.choice(words, n)) for n in (1, 10, 150, 300, 520)]
    counts = [len(ids) for ids in encoder.tokenizer.ids_batch(some)]
    assert any(encoder.max_tokens < n <= 512 for n in counts)
    assert max(counts) > 512
    official.max_seq_length = 512
    try:
        reference = official.encode(some, show_progress_bar=False)
    finally:
        official.max_seq_length = encoder.max_tokens
    np.testing.assert_allclose(encoder.encode(some, max_tokens=512), reference, rtol=0, atol=1e-6)
