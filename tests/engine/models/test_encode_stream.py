import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Encoder
from engine.errors import InputError
from engine.models import streaming
from engine.models.parallel import even_packs
from engine.models.streaming import VectorSpool


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(streaming, "BLOCK_TEXTS", 4)


@pytest.fixture
def embedded(monkeypatch):
    """Number of texts that went through the model."""
    seen = []
    token_states = Encoder.token_states

    def counting(self, sequences, *arguments):
        seen.extend(sequences)
        return token_states(self, sequences, *arguments)

    monkeypatch.setattr(Encoder, "token_states", counting)
    return seen


def test_a_stream_gives_the_vectors_of_encode_in_order_for_several_poolings_at_once(encoder, small_blocks):
    texts = [f"text number {n}" for n in range(11)]
    blocks = list(encoder.encode_stream((text for text in texts), ["mean", "cls"]))
    assert [len(block["cls"]) for block in blocks] == [4, 4, 3]
    for strategy in ("mean", "cls"):
        together = np.concatenate([block[strategy] for block in blocks])
        np.testing.assert_allclose(together, encoder.encode(texts, strategy), atol=1e-6)


def test_identical_texts_are_embedded_once_however_far_apart(encoder, small_blocks, embedded):
    texts = ["same", "other", "same", "same", "third", "other", "same", "fourth", "third"]
    vectors = encoder.encode(texts)
    assert len(embedded) == 4
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_array_equal(vector, vectors[texts.index(text)])


def test_texts_are_taken_only_as_they_are_needed(encoder, small_blocks):
    taken = []

    def texts():
        for n in range(1000):
            taken.append(n)
            yield f"text {n}"

    stream = encoder.encode_stream(texts())
    assert taken == []
    next(stream)
    assert len(taken) == 4
    stream.close()
    assert len(taken) == 4


def test_bad_texts_far_into_a_stream_are_named_and_arguments_are_checked_at_once(encoder, small_blocks):
    with pytest.raises(InputError, match="text 6 is NoneType"):
        list(encoder.encode_stream(["fine"] * 6 + [None]))
    with pytest.raises(InputError, match="pooling 'best'"):
        encoder.encode_stream([], pooling="best")
    with pytest.raises(InputError, match="a list of texts"):
        encoder.encode_stream("one text")


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 9))
def test_a_spool_gives_back_what_was_put_in(numbers, n_at_once):
    kept = {}
    store = VectorSpool(3, np.dtype(np.float32))
    for start in range(0, len(numbers), n_at_once):
        new = {str(n).encode(): [n, n / 7, -n] for n in numbers[start : start + n_at_once]}
        new = {key: vector for key, vector in new.items() if key not in store}
        store.append(list(new), np.array(list(new.values()), np.float32).reshape(-1, 3))
        kept |= new
    keys = [str(n).encode() for n in reversed(numbers)]
    np.testing.assert_array_equal(store.read(keys), np.float32([kept[key] for key in keys]).reshape(-1, 3))
    store.close()


PACK_TOKENS = 100


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 8))
def test_packs_are_the_whole_list_in_order(lengths, n_workers):
    packs = even_packs(lengths, PACK_TOKENS, n_workers)
    assert [i for pack in packs for i in range(len(lengths))[pack]] == list(range(len(lengths)))
    assert all(pack.start < pack.stop for pack in packs)
    # half of its first and of its last text may lie beyond the borders
    assert all(sum(lengths[pack]) <= PACK_TOKENS + max(lengths[pack]) for pack in packs)
