from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.inspection.health.neighbors import BLOCK_SCORES, neighborhood, question_occurrence
from engine.inspection.health.report import NEAR_DUPLICATE, health_report, preview_removal
from engine.layers.norm import l2_normalize
from engine.retrieval.embedding_spec import EmbeddingSpec, Query
from engine.retrieval.index import index_vectors

SEEDS = st.integers(0, 9999)


def prose(number, document="d.md", n_tokens=20, text=None):
    text = text or f"Passage {number} tells a story of its own, about subject {number}."
    return Chunk(document, 1000 * number, 1000 * number + len(text), text, n_tokens)


def random_unit(n, d_model, seed):
    return l2_normalize(np.random.default_rng(seed).normal(size=(n, d_model))).astype(np.float32)


def kinds(report):
    return {finding.kind for finding in report.findings}


@given(st.integers(1, 40), SEEDS)
def test_nothing_is_found_in_different_texts_of_orthogonal_vectors(n, seed):
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(48, 48)))[0][:n]
    report = health_report([prose(number) for number in range(n)], vectors, 128, vectors[: n // 2])
    assert report.findings == ()
    np.testing.assert_allclose(report.occurrence, min(10, n - 1))
    assert report.skewness == pytest.approx(0, abs=1e-6)


@given(st.integers(2, 30), SEEDS, st.data())
def test_a_planted_copy_is_found_whatever_its_blanks(n, seed, data):
    original = data.draw(st.integers(0, n - 1))
    copy = prose(n, "e.md", text="  " + prose(original).text.replace(" ", " \n\t") + "\n")
    chunks = [*map(prose, range(n)), copy]
    vectors = random_unit(n, 64, seed)
    [finding] = health_report(chunks, np.vstack([vectors, vectors[original]]), 128).of_kind("exact duplicate")
    assert finding.rows == (original, n)
    assert finding.removable == (n,)
    assert finding.magnitude == 2


@given(st.integers(2, 30), SEEDS, st.floats(0.91, 0.999), st.data())
def test_a_planted_near_copy_is_found_with_its_cosine(n, seed, cosine, data):
    original = data.draw(st.integers(0, n - 1))
    vectors = np.hstack([random_unit(n, 64, seed), np.zeros((n, 1), np.float32)])
    other = cosine * vectors[original]
    other[-1] = np.sqrt(1 - cosine**2)
    report = health_report([*map(prose, range(n + 1))], np.vstack([vectors, other]), 128)
    [finding] = report.of_kind("near duplicate")
    assert finding.rows == (original, n)
    assert finding.removable == (n,)
    assert finding.magnitude == pytest.approx(cosine, abs=1e-5)


def test_rows_of_a_table_look_alike_and_none_is_to_be_removed():
    rows = [prose(number, "prices.csv", text="a: 1") for number in range(3)]
    rows = [*rows, prose(3, "prices.csv"), prose(4, "d.md")]
    vectors = np.eye(3)[[0, 0, 0, 1, 1]] + 0.01 * np.eye(5)[:, :3]
    chunks = [replace(chunk, text=f"{chunk.text} {place}") for place, chunk in enumerate(rows)]
    report = health_report(chunks, vectors, 128, tables=["prices.csv"])
    other, alike = report.findings
    assert (alike.kind, alike.rows, alike.removable) == ("similar rows", (0, 1, 2), ())
    assert "3 rows of prices.csv" in alike.reason
    assert (other.kind, other.rows) == ("near duplicate", (3, 4))
    assert kinds(health_report(chunks, vectors, 128)) == {"near duplicate", "near empty"}


@given(st.integers(2, 25), st.integers(2, 4), SEEDS)
def test_those_kept_are_no_near_copies_and_those_removed_are(n, d_model, seed):
    vectors = random_unit(n, d_model, seed)
    report = health_report([*map(prose, range(n))], vectors, 128)
    cosines = vectors @ vectors.T
    groups = report.of_kind("near duplicate")
    removed = [row for group in groups for row in group.removable]
    kept = np.setdiff1d(np.arange(n), removed)
    assert len(removed) == len(set(removed))
    assert (cosines[np.ix_(kept, kept)] - np.eye(len(kept)) <= NEAR_DUPLICATE + 1e-5).all()
    for group in groups:
        assert (cosines[group.rows[0], list(group.rows[1:])] > NEAR_DUPLICATE - 1e-5).all()
        assert group.rows[0] in kept


@given(SEEDS, st.integers(0, 60))
def test_a_planted_hub_is_found(seed, place):
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(60, 60)))[0]
    hub = l2_normalize(vectors.sum(axis=0))  # a little of everything
    report = health_report([*map(prose, range(61))], np.insert(vectors, place, hub, axis=0), 128)
    [finding] = report.of_kind("hub")
    assert finding.rows == finding.removable == (place,)
    assert finding.magnitude == report.occurrence.max() == 60
    assert report.skewness > 3


def test_a_chunk_that_most_questions_find_is_a_hub():
    vectors = np.eye(64, dtype=np.float32)
    questions = l2_normalize(vectors[20:40] + 0.5 * vectors[7])
    [finding] = health_report([*map(prose, range(64))], vectors, 128, questions).of_kind("hub")
    assert finding.rows == (7,)
    assert "20 of the 20 questions" in finding.reason


def test_occurrences_equal_lists_made_one_by_one():
    vectors, questions = random_unit(300, 8, 0), random_unit(50, 8, 1)
    lists = np.argsort(-(vectors @ vectors.T) + 9 * np.eye(300), axis=1)[:, :7]
    found = neighborhood(vectors, NEAR_DUPLICATE, 7)
    np.testing.assert_allclose(found.occurrence, np.bincount(lists.ravel(), minlength=300))
    lists = np.argsort(-(questions @ vectors.T), axis=1)[:, :7]
    occurrence = question_occurrence(vectors, questions, 7)
    np.testing.assert_allclose(occurrence, np.bincount(lists.ravel(), minlength=300))


def test_blocks_change_nothing_and_progress_reaches_the_end(monkeypatch):
    vectors, seen = random_unit(90, 3, 0), []
    whole = neighborhood(vectors, NEAR_DUPLICATE, 5)
    assert BLOCK_SCORES > 90 * 90
    monkeypatch.setattr("engine.inspection.health.neighbors.BLOCK_SCORES", 700)
    parts = neighborhood(vectors, NEAR_DUPLICATE, 5, lambda *step: seen.append(step))
    np.testing.assert_array_equal(parts.leader, whole.leader)
    np.testing.assert_allclose(parts.occurrence, whole.occurrence)
    assert len(seen) == 13
    assert seen[-1] == (90, 90)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "0 letters"),
        ("--- | --- | ===", "0 letters"),
        ("Page 3 of 12", "9 letters"),
        ("Total of the year: 1250.00 EUR. " + "=" * 60, "less than 40%"),
        ("A passage of some length that says something.", None),
        ("東京は日本の首都であり、世界でも最大級の都市である。", None),
    ],
)
def test_chunks_without_words_are_near_empty(text, reason):
    chunks = [prose(0), Chunk("d.md", 0, len(text), text, 9)]
    found = health_report(chunks, np.eye(2), 128).of_kind("near empty")
    assert [finding.rows for finding in found] == ([] if reason is None else [(1,)])
    assert reason is None or reason in found[0].reason


def test_what_the_model_does_not_read_is_oversized_and_never_removed():
    chunks = [prose(0, n_tokens=128), prose(1, n_tokens=129), prose(2, n_tokens=400)]
    longest, long = health_report(chunks, np.eye(3), 128).of_kind("oversized")
    assert (longest.rows, long.rows) == ((2,), (1,))
    assert longest.removable == long.removable == ()
    assert "the last 272 are beyond 128" in longest.reason


def test_lines_of_many_documents_are_boilerplate_and_chunks_of_little_else_can_go():
    footer = "ACME Corp. · Confidential, do not share"
    chunks = [
        prose(n, f"{n}.md", text=f"Subject {n} and whatever else there is to say of it\n{footer}")
        for n in range(4)
    ]
    chunks.append(prose(4, "0.md", text=f"{footer.upper()}\n\n  12"))
    [finding] = health_report(chunks, np.eye(5), 128).of_kind("boilerplate")
    assert finding.rows == (0, 1, 2, 3, 4)
    assert finding.removable == (4,)
    assert (finding.magnitude, footer in finding.reason) == (4, True)


@given(st.integers(2, 40), st.integers(1, 10), SEEDS, st.data())
def test_a_preview_equals_searching_a_smaller_index(n, k, seed, data):
    removed = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    vectors, questions = random_unit(n, 24, seed), random_unit(3, 24, seed + 1)
    chunks = [prose(number) for number in range(n)]
    kept = [row for row in range(n) if row not in removed]
    spec = EmbeddingSpec("m", "mean", 128, vectors.shape[1])
    whole = index_vectors(chunks, vectors, spec)
    smaller = index_vectors([chunks[row] for row in kept], vectors[kept], spec)
    changes = preview_removal(vectors, sorted(removed), questions, k)
    for question, change in zip(questions, changes, strict=True):
        query = Query(question, spec)
        assert [chunks[row] for row in change.before] == [hit.chunk for hit in whole.search(query, k)]
        assert [chunks[row] for row in change.after] == [hit.chunk for hit in smaller.search(query, k)]
        assert set(change.lost) == set(change.before) & removed
        assert set(change.gained) == set(change.after) - set(change.before)


def test_copies_do_not_make_each_other_hubs_or_near_copies():
    chunks = [prose(0, text="The same long sentence, over and over again.") for _ in range(40)]
    report = health_report(
        [*chunks, prose(1), prose(2)], np.vstack([np.tile(np.eye(3)[0], (40, 1)), np.eye(3)[1:]]), 128
    )
    assert kinds(report) == {"exact duplicate"}
    assert health_report([], np.zeros((0, 8)), 128).findings == ()


def test_what_does_not_go_together_is_refused():
    for vectors, questions, message in (
        (np.eye(3), None, "one vector a chunk"),
        (np.eye(2), np.eye(3), "one model"),
        (np.full((2, 2), np.nan), None, "not finite"),
    ):
        with pytest.raises(InputError, match=message):
            health_report([prose(0), prose(1)], vectors, 128, questions)
