import numpy as np
import pytest

from engine.evaluation.bootstrap import Interval
from engine.evaluation.sts import BUNDLED_PAIRS, Pair, StrategyCorrelation, correlations, load_pairs
from engine.layers.pooling import POOLINGS
from pages.improve.poolings.sts import (
    CORRELATIONS,
    EXAMPLE,
    MOST_WRONG,
    PAIRS,
    correlation_figure,
    correlation_row,
    pair_figure,
    summary,
)
from tests.apps import app_of, tables
from ui.text import escape_markdown

EVIL = "<script>alert(1)</script> <b>bold</b>"
FLAT = Interval(np.nan, np.nan, np.nan)


def with_gain(low, high, strategy="max"):
    return StrategyCorrelation(strategy, Interval(0.5, 0.4, 0.6), Interval((low + high) / 2, low, high))


def test_a_strategy_is_better_where_its_whole_interval_is_and_those_told_apart_are_counted():
    better, worse, mean = with_gain(0.01, 0.03), with_gain(-0.03, -0.01), with_gain(0, 0, "mean")
    for one, word in (
        (better, "yes"),
        (worse, "no"),
        (with_gain(-0.01, 0.03), "not sure"),
        (with_gain(0.0001, 0.0002), "the same"),
        (mean, "the same"),
        (StrategyCorrelation("cls", FLAT, FLAT), "not sure"),
    ):
        assert correlation_row(one)["Better than the mean?"] == word
    assert "no strategy is better or worse" in summary([mean, with_gain(-0.1, 0.1)])
    assert "none is better, 2 are worse" in summary([mean, worse, worse])
    assert "1 is better, none is worse" in summary([mean, better])


def test_the_figure_has_every_strategy_at_its_place_but_those_without_one():
    pairs = [Pair("a", "b", score) for score in range(20)]
    gold = np.arange(20.0)
    noisy = gold + np.random.default_rng(0).normal(0, 5, 20)
    found = correlations(pairs, {"mean": noisy, "cls": -gold, "max": gold, "pooler": np.zeros(20)})
    figure = correlation_figure(found)
    points = {label: x for trace in figure.data for label, x in zip(trace.y, trace.x, strict=True)}
    assert points == pytest.approx(
        {"max": 100, "[CLS]": -100, "mean": 100 * found[1].spearman.estimate}, abs=1e-6
    )
    assert list(figure.layout.yaxis.categoryarray) == ["[CLS]", "mean", "max"]
    for trace in figure.data:
        ends = trace.x + np.array(trace.error_x.array), trace.x - np.array(trace.error_x.arrayminus)
        own = [one for one in found if 100 * one.spearman.estimate in trace.x]
        np.testing.assert_allclose(ends[0], [100 * one.spearman.high for one in own])
        np.testing.assert_allclose(ends[1], [100 * one.spearman.low for one in own])
    [text] = pair_figure([Pair(EVIL, EVIL, 1)], gold[:1], gold[:1]).data[0].hovertext
    assert "<script" not in text
    assert "&lt;b&gt;bold" in text


def page():
    from pages.improve.poolings.sts import show_sts
    from ui.models import load_encoder

    show_sts(load_encoder(), 256)


@pytest.fixture(scope="module")
def app():
    return app_of(page).run()


def upload(app, name, content):
    return app.file_uploader(key="sts-file").upload(name, content, "text/csv").run()


def test_the_bundled_pairs_are_measured_at_once(app):
    assert not app.error
    table = tables(app)[0]
    assert len(table) == len(POOLINGS)
    assert list(table["Spearman × 100"]) == sorted(table["Spearman × 100"], reverse=True)
    assert any(f"{len(load_pairs())} pairs" in caption.value for caption in app.caption)
    app.session_state["sts-chapter"] = MOST_WRONG
    app.run()
    wrong = [caption.value for caption in app.caption if "too alike" in caption.value]
    app.selectbox(key="sts-strategy").set_value("cls").run()
    assert wrong != [caption.value for caption in app.caption if "too alike" in caption.value]
    app.session_state["sts-chapter"] = PAIRS
    app.run()
    assert len(app.get("plotly_chart")) == 1
    app.session_state["sts-chapter"] = CORRELATIONS
    app.run()


def test_a_file_of_ones_own_takes_the_place_of_the_bundled_one(app):
    upload(app, "own.csv", EXAMPLE.replace("A cat sleeps.", EVIL).encode())
    assert not app.error
    assert any("3 pairs" in caption.value for caption in app.caption)


def test_a_file_that_cannot_be_read_gives_one_line(app):
    for content, message in (
        (EXAMPLE.replace("score", "points").encode(), "no column score"),
        (EXAMPLE.replace("4.5", "*high*").encode(), "'*high*'"),
        (b"\x89PNG\r\n\x1a\n", "PNG image"),
        (BUNDLED_PAIRS.read_bytes() + b"a,b,1\n" * 20_001, "at most 20,000"),
    ):
        upload(app, "bad.csv", content)
        [error] = app.error
        assert escape_markdown(message) in error.value
        assert "\n" not in error.value
        assert not tables(app)
