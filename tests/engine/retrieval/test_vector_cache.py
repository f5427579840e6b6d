import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.errors import InputError
from engine.models.encoder import Encoder
from engine.retrieval import vector_cache
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.vector_cache import VectorCache, cached_encode, checksum
from engine.weights.fetch import model_path

SPEC = EmbeddingSpec("model", "mean", 256, 4)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TEXTS = ["The cat sat.", "Knead the dough.", "The cat sat.", "Dogs bark."]


def vectors(n, d_model=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d_model)).astype(np.float32)


def names(n, start=0):
    return [f"text {number}" for number in range(start, start + n)]


@pytest.fixture
def counted(monkeypatch):
    """The texts that an encoder was made to embed."""
    embedded = []
    encode = Encoder.encode

    def counting(self, texts, *args, **kwargs):
        embedded.extend(texts)
        return encode(self, texts, *args, **kwargs)

    monkeypatch.setattr(Encoder, "encode", counting)
    return embedded


@given(st.dictionaries(st.text(), arrays(np.float32, 4, elements=FLOATS), max_size=8))
def test_vectors_come_back_bit_for_bit(rows):
    cache = VectorCache()
    stored = np.array(list(rows.values()), np.float32).reshape(len(rows), 4)
    cache.put_many(list(rows), stored, SPEC)
    found, known = cache.get_many([*rows, "\0 not there"], SPEC)
    assert known.tolist() == [True] * len(rows) + [False]
    assert found[:-1].tobytes() == stored.tobytes()
    assert found.dtype == np.float32
    assert not found[-1].any()


def test_the_least_recently_used_are_thrown_out(monkeypatch):
    monkeypatch.setattr(vector_cache, "FRESH_NS", 0)
    cache = VectorCache(max_bytes=4 * 16)
    for number in range(4):
        cache.put_many([f"text {number}"], vectors(1), SPEC)
    cache.get_many(["text 0"], SPEC)
    cache.put_many(["text 4", "text 5"], vectors(2), SPEC)
    assert cache.get_many(names(6), SPEC)[1].tolist() == [True, False, False, True, True, True]
    assert cache.n_vectors == 4


def test_a_cache_never_holds_more_than_its_limit(tmp_path):
    cache = VectorCache(tmp_path / "cache.db", max_bytes=1000)
    for start in range(0, 500, 100):
        cache.put_many(names(100, start), vectors(100), SPEC)
        assert cache.n_vectors == 62
    nothing = VectorCache(max_bytes=0)
    nothing.put_many(["a"], vectors(1), SPEC)
    assert nothing.n_vectors == 0


@pytest.mark.parametrize(
    "damage",
    [
        "vector = substr(vector, 1, 12)",
        "vector = zeroblob(16)",
        "vector = (SELECT vector FROM vectors ORDER BY rowid DESC LIMIT 1)",
    ],
)
def test_a_damaged_row_is_a_miss_and_is_replaced(tmp_path, damage):
    path, stored = tmp_path / "cache.db", vectors(3)
    cache = VectorCache(path)
    cache.put_many(["a", "b", "c"], stored, SPEC)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE vectors SET {damage} WHERE rowid = 1")
    assert cache.get_many(["a", "b", "c"], SPEC)[1].tolist() == [False, True, True]
    cache.put_many(["a"], stored[:1], SPEC)
    np.testing.assert_array_equal(cache.get_many(["a"], SPEC)[0], stored[:1])


def test_what_is_not_finite_is_neither_kept_nor_believed(tmp_path):
    path, stored = tmp_path / "cache.db", vectors(3)
    cache = VectorCache(path)
    stored[1, 2] = np.nan
    cache.put_many(names(3), stored, SPEC)
    assert cache.get_many(names(3), SPEC)[1].tolist() == [True, False, True]
    [key], infinite = SPEC.keys(["text 0"]), np.full(4, np.inf, np.float32).tobytes()
    with closing(sqlite3.connect(path)) as connection, connection:
        row = (infinite, checksum(key, infinite), key)
        connection.execute("UPDATE vectors SET vector = ?, checksum = ? WHERE key = ?", row)
    assert cache.get_many(names(3), SPEC)[1].tolist() == [False, False, True]


@given(data=st.data())
def test_a_damaged_file_never_gives_a_wrong_vector(data, tmp_path_factory):
    path, stored = tmp_path_factory.mktemp("cache") / "cache.db", vectors(80)
    with closing(VectorCache(path)) as cache:
        cache.put_many(names(80), stored, SPEC)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    else:
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
            content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with closing(VectorCache(path)) as damaged:
        found, known = damaged.get_many(names(80), SPEC)
        np.testing.assert_array_equal(found[known], stored[known])
        damaged.put_many(names(80), stored, SPEC)
        found, known = damaged.get_many(names(80), SPEC)
        np.testing.assert_array_equal(found[known], stored[known])
        assert known.all()


@pytest.mark.parametrize("kind", ["notes", "broken", "of another program"])
def test_a_file_that_is_no_cache_is_left_alone(tmp_path, kind):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"Some notes.\n" * 100 if kind == "notes" else b"SQLite format 3\0" + bytes(500))
    if kind == "of another program":
        path.unlink()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE places (url TEXT)")
    before = path.read_bytes()
    cache = VectorCache(path)
    cache.put_many(["a"], vectors(1), SPEC)
    assert cache.get_many(["a"], SPEC)[1].all()
    assert path.read_bytes() == before
    assert "notes.txt cannot keep embeddings" in cache.notice
    assert "\n" not in cache.notice


@pytest.mark.parametrize("path", [Path("/proc/nowhere/cache.db"), Path("a\0b")])
def test_a_place_that_cannot_be_written_is_told(path):
    cache = VectorCache(path)
    cache.put_many(["a"], vectors(1), SPEC)
    assert cache.get_many(["a"], SPEC)[1].all()
    assert "in memory" in cache.notice


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="max_bytes is -1"):
        VectorCache(max_bytes=-1)
    with pytest.raises(InputError, match=r"shape \(2, 3\) for 2 texts of 4"):
        VectorCache().put_many(["a", "b"], vectors(2, 3), SPEC)


def test_threads_open_a_new_file_at_once_and_share_it(tmp_path):
    stored = vectors(400)

    def work(start):
        cache = VectorCache(tmp_path / "cache.db")
        for number in range(start, start + 200, 20):
            part = slice(number, number + 20)
            cache.put_many(names(20, number), stored[part], SPEC)
            found, known = cache.get_many(names(20, number), SPEC)
            assert known.all()
            np.testing.assert_array_equal(found, stored[part])
        assert not cache.notice

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, (0, 100, 200)))  # which raises what any of them does
    found, known = VectorCache(tmp_path / "cache.db").get_many(names(400), SPEC)
    assert known.all()
    np.testing.assert_array_equal(found, stored)


def test_no_text_is_embedded_twice(encoder, counted, tmp_path):
    path = tmp_path / "cache.db"
    with closing(VectorCache(path)) as cache:
        first = cached_encode(TEXTS, encoder, "mean", None, cache)
        cached_encode([*TEXTS, "A new one."], encoder, "mean", 64, cache)
    assert counted == ["The cat sat.", "Knead the dough.", "Dogs bark."] * 2 + ["A new one."]
    counted.clear()
    with closing(VectorCache(path)) as restarted:
        again = cached_encode(TEXTS, encoder, "mean", encoder.max_tokens, restarted)
        assert not counted
        cached_encode([*TEXTS, "Another."], encoder, "mean", None, restarted)
    assert counted == ["Another."]
    np.testing.assert_array_equal(first, again)


def test_bad_texts_and_arguments_are_the_encoders_errors(encoder):
    cache = VectorCache()
    with pytest.raises(InputError, match="list of texts"):
        cached_encode("one text", encoder, "mean", None, cache)
    with pytest.raises(InputError, match="surrogate"):
        cached_encode(["a", "\ud800"], encoder, "mean", None, cache)


@pytest.mark.parametrize(
    ("old", "new"), [('"lowercase":true', '"lowercase":false'), ('"##bled":', '"##renamed":')]
)
def test_a_model_whose_tokenizer_was_changed_is_another(encoder, tmp_path, old, new):
    content = (model_path(encoder.name) / "tokenizer.json").read_text(encoding="utf-8")
    compact = content.replace('": ', '":')
    assert old in compact
    (tmp_path / "tokenizer.json").write_text(compact.replace(old, new), encoding="utf-8")
    changed = replace(encoder, tokenizer=type(encoder.tokenizer)(tmp_path / "tokenizer.json"))
    assert changed.fingerprint != encoder.fingerprint


def test_a_model_is_known_by_its_weights_and_not_by_its_name(encoder):
    same = replace(encoder, name="another name", max_tokens=64)
    assert same.fingerprint == encoder.fingerprint
    table = encoder.weights.position_table.copy()
    table[-1, -1] = np.nextafter(table[-1, -1], np.float32(1))
    others = [
        replace(encoder, weights=replace(encoder.weights, position_table=table)),
        replace(encoder, weights=replace(encoder.weights, pooler=None)),
        replace(encoder, config=replace(encoder.config, norm_first=True)),
        replace(encoder, compiled=not encoder.compiled),
    ]
    assert len({each.fingerprint for each in (encoder, *others)}) == 5
