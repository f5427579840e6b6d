"""What to expect of settings: the order on other corpora, moved by drafts and by questions of people."""

import numpy as np
import pytest

from engine.evaluation.setting_order import SettingOrder, expected_gains, setting_orders
from engine.settings import Configuration

FIRST, SECOND, THIRD = (Configuration(retriever=name) for name in ("weighted", "hybrid", "dense"))
UNMEASURED = Configuration(overlap=32)
# Measured on 9 corpora: hybrid is better by 0.1, dense worse, and drafts add 0.1 to hybrid.
ORDER = SettingOrder(
    {FIRST: (0.0, 0.0), SECOND: (0.1, 0.1), THIRD: (-0.1, 0.0)}, 9, between=0.01, off=0.02, question=0.1
)


def gains(configurations, values, is_draft):
    found = expected_gains(configurations, np.array(values, float), np.array(is_draft, bool), ORDER)
    return [one.difference for one in found]


def test_without_questions_the_order_is_that_of_other_corpora_and_what_was_not_measured_is_amid():
    configurations = [THIRD, FIRST, SECOND, UNMEASURED]
    assert gains(configurations, np.empty((4, 0)), []) == pytest.approx([0, 0.1, 0.2, 0.1])
    cells = [Configuration(retriever="bm25", pooling=name) for name in ("mean", "cls")]
    first, same = expected_gains(cells, np.empty((2, 0)), np.empty(0, bool), setting_orders()["mrr"])
    assert first == same, "a search by words alone has no pooling"


def test_the_three_are_weighted_by_their_precisions():
    """By hand: precisions of 1 / 0.02, 10 / 0.2 and 1 / (2 * (0.02 + 0.1 / 5)), of 0.1, 0.2 and 0.5 - 0.1."""
    values = [np.zeros(15), [0.2] * 10 + [0.5] * 5]
    first, found = expected_gains([FIRST, SECOND], np.array(values), np.arange(15) >= 10, ORDER)
    assert (first.difference, first.p_value) == (0, 1)
    mean, spread = (50 * 0.1 + 50 * 0.2 + 12.5 * 0.4) / 112.5, 112.5**-0.5
    assert found.difference == pytest.approx(mean)
    assert (found.low, found.high) == pytest.approx((mean - 1.959964 * spread, mean + 1.959964 * spread))
    assert found.p_value == pytest.approx(0.0593, abs=1e-4)  # of a normal distribution beyond 1.8856


def test_nothing_is_sure_where_drafts_point_away_from_what_is_expected():
    """Other corpora say 0.1, 100 drafts 0.09 - 0.1: by hand, the mean is (50 * 0.1 - 23.8 * 0.01) / 73.8."""
    values = np.repeat([[0.0], [0.09]], 100, axis=1)
    found = expected_gains([FIRST, SECOND], values, np.ones(100, bool), ORDER)[1]
    assert found.difference == pytest.approx(0.06452, abs=1e-5)
    assert found.p_value == 1


def test_a_setting_that_was_not_measured_elsewhere_rests_more_on_the_questions():
    """By hand: the variance of 0, 0.1 and -0.1 is 0.02 / 3, so the precisions are 37.5 and 250."""
    values = np.repeat([[0.5], [0.3]], 50, axis=1)
    found = gains([FIRST, UNMEASURED], values, np.zeros(50, bool))[1]
    assert found == pytest.approx(-0.2 * 250 / 287.5)


def test_the_order_of_questions_and_settings_changes_nothing():
    rng = np.random.default_rng(0)
    values, is_draft, configurations = rng.random((3, 20)), rng.random(20) < 0.5, [FIRST, SECOND, THIRD]
    found, places = gains(configurations, values, is_draft), rng.permutation(20)
    rows = [0, 2, 1]
    permuted = gains([configurations[n] for n in rows], values[rows][:, places], is_draft[places])
    assert permuted == pytest.approx([found[n] for n in rows])


def test_bundled_orders_have_the_default_and_settings_that_are_worse():
    for order in setting_orders().values():
        assert order.gains[Configuration()] == (0, 0)
        assert min(order.gains.values()) < (-0.05, 0)
        assert min(order.n_corpora, order.between, order.off, order.question) > 0
