import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from engine.errors import DocumentError, InputError
from engine.evaluation.bootstrap import draws
from engine.evaluation.sts import (
    Pair,
    correlations,
    load_pairs,
    parse_pairs,
    sentences,
    spearman,
    sts_scores,
)

TABLE = b"""score,genre,sentence2,Sentence1
4.5,animals,A feline is asleep.,A cat sleeps.
2,weather,It snowed.,"It rained, and it ""poured""."
0,other,The printer is broken.,A boy flies a kite.
"""
PAIRS = [
    Pair("A cat sleeps.", "A feline is asleep.", 4.5),
    Pair('It rained, and it "poured".', "It snowed.", 2.0),
    Pair("A boy flies a kite.", "The printer is broken.", 0.0),
]


def test_a_table_is_read_whatever_the_order_of_its_columns():
    assert parse_pairs("pairs.csv", TABLE) == PAIRS
    with_semicolons = b"sentence1;sentence2;score\n" + b"".join(
        f'"{p.first.replace(chr(34), chr(34) * 2)}";{p.second};{p.score}\n'.encode() for p in PAIRS
    )
    assert parse_pairs("pairs.csv", with_semicolons) == PAIRS


def test_the_archive_of_the_benchmark_is_read_with_its_quotes_and_further_columns():
    lines = [
        'main-captions\tMSRvid\t2012test\t0000\t5.000\t"A man is dancing.\tA man dances.',
        'main-forums\tdeft\t2014\t17\t0.25\tHe said "no".\t"Yes", she said',
        "main-news\theadlines\t2016\t0281\t3\tOne\u2028line, two.\tAnother\tsource\tsource",
    ]
    found = parse_pairs("sts-test.csv", "\r\n".join(lines).encode() + b"\r\n\r\n")
    assert found == [
        Pair('"A man is dancing.', "A man dances.", 5.0),
        Pair('He said "no".', '"Yes", she said', 0.25),
        Pair("One\u2028line, two.", "Another", 3.0),
    ]


def test_a_table_with_tabs_takes_quotes_for_letters():
    content = (
        b'split\tscore\tsentence1\tsentence2\ntest\t1\t"One\ttwo\ntest\t2\tthree"\tfour\ntest\t3\ta\tb\n'
    )
    assert [pair.first for pair in parse_pairs("stsbenchmark.tsv", content)] == ['"One', 'three"', "a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "pairs.csv is empty"),
        (b"sentence1,sentence2\na,b\n", "has no column score: name the columns sentence1, sentence2, score"),
        (b"a,b,c\n1,2,3\n", "no column sentence1 and no column sentence2 and no column score"),
        (TABLE.replace(b"4.5", b"high"), "row 2 has the score 'high', which is no number"),
        (TABLE.replace(b"4.5", b"nan"), "row 2 has the score 'nan'"),
        (TABLE.replace(b"It snowed.", b" "), "row 3 has no sentence2"),
        (TABLE.replace(b"4.5,animals,A feline is asleep.,A cat sleeps.", b"4.5"), "row 2 has no sentence1"),
        (TABLE[: TABLE.index(b"0,other")], "holds 2 scored pairs: give at least 3"),
        (TABLE.replace(b"4.5", b"0").replace(b"2,w", b"0,w"), "all 3 pairs of pairs.csv have the score 0"),
        (b"x\ty\tz\tn\t5\ta\tb\nx\ty\tz\tn\tfive\ta\tb\n", "row 2 has the score 'five'"),
    ],
)
def test_what_cannot_be_read_is_said_by_row(content, message):
    with pytest.raises(InputError, match=message):
        parse_pairs("pairs.csv", content)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DocumentError, match="a PNG image"):
        parse_pairs("pairs.csv", b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match="does not exist"):
        load_pairs(tmp_path / "none.csv")


@given(
    st.lists(st.integers(0, 4), min_size=3, max_size=30).filter(lambda scores: len(set(scores)) > 1),
    st.integers(0, 2**32),
)
def test_spearman_is_that_of_scipy_on_the_pairs_and_on_every_resample(gold, seed):
    generator = np.random.default_rng(seed)
    gold = np.array(gold, float)
    scores = generator.integers(0, 6, size=(len(gold), 2)) / 5 - 0.5  # with ties
    counts = np.concatenate([np.ones((1, len(gold)), np.int64), *draws(len(gold), 5, seed)])
    found = spearman(gold, scores)(counts)
    for row, drawn in zip(found, counts, strict=True):
        items = np.repeat(np.arange(len(gold)), drawn)
        for rho, column in zip(row, scores.T, strict=True):
            if np.ptp(gold[items]) == 0 or np.ptp(column[items]) == 0:
                assert np.isnan(rho)
            else:
                assert rho == pytest.approx(spearmanr(gold[items], column[items]).statistic, abs=1e-9)


def test_strategies_come_best_first_with_what_they_have_over_the_mean():
    gold = np.arange(40.0)
    noise = np.random.default_rng(0).normal(0, 12, 40)
    pairs = [Pair("a", "b", score) for score in gold]
    scores = {"flat": np.zeros(40), "cls": -gold, "mean": gold + noise, "max": gold**3}
    found = correlations(pairs, scores)
    assert [one.strategy for one in found] == ["max", "mean", "cls", "flat"]
    best, mean, worst, undefined = found
    assert best.spearman.estimate == pytest.approx(1)
    assert best.gain.low > 0
    assert (mean.gain.low, mean.gain.high) == (0, 0)
    assert worst.spearman.high == pytest.approx(-1)
    assert worst.gain.high < 0
    assert np.isnan(undefined.spearman.estimate)
    assert found[:3] == correlations(pairs, scores)[:3]


def test_cosines_are_those_of_the_official_model(encoder, official):
    from sentence_transformers.util import pairwise_cos_sim

    pairs = load_pairs()[::6]
    theirs = pairwise_cos_sim(
        official.encode([pair.first for pair in pairs]), official.encode([pair.second for pair in pairs])
    )
    np.testing.assert_allclose(sts_scores(encoder, pairs)["mean"], theirs, atol=2e-6)


def test_every_strategy_is_scored_and_each_sentence_read_once(encoder):
    pairs = [Pair("A cat sleeps.", "A cat sleeps.", 5), Pair("A cat sleeps.", "It rains.", 0), *PAIRS]
    seen = []
    scores = sts_scores(encoder, pairs, on_progress=lambda done, total: seen.append((done, total)))
    assert {"mean", "cls", "max", "idf", "attention", "last4"} <= set(scores)
    assert all(len(cosines) == len(pairs) for cosines in scores.values())
    assert all(cosines[0] == 1 for cosines in scores.values())
    assert seen[-1] == (len(sentences(pairs)), len(sentences(pairs)))


def test_rare_words_are_rare_among_the_pairs_whatever_corpus_the_encoder_knows(encoder):
    own = encoder.with_idf(sentences(PAIRS)).encode(sentences(PAIRS), "idf")
    scores = sts_scores(encoder.with_idf(["A cat sleeps.", "A cat"]), PAIRS)["idf"]
    np.testing.assert_allclose(scores, (own[::2] * own[1::2]).sum(axis=1), atol=2e-6)
