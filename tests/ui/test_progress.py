import pytest

from tests.apps import app_of
from ui import progress
from ui.progress import TimeLeft


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the clock shows, as the only item of a list."""
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


def told(clock, *reports):
    """What is said at each report, of seconds since the first one and the share done."""
    left = TimeLeft()
    words = []
    for seconds, share in reports:
        clock[0] = 100.0 + seconds
        words.append(left(share))
    return words


def test_the_rest_takes_as_long_as_the_part_before(clock):
    assert told(clock, (0, 0.0), (10, 0.25)) == ["", ", about 30 s left"]
    assert told(clock, (0, 0.0), (60, 0.5), (90, 0.75)) == ["", ", about 1 min 0 s left", ", about 30 s left"]


def test_what_was_there_before_does_not_count_for_the_rate(clock):
    assert told(clock, (0, 0.5), (10, 0.75)) == ["", ", about 10 s left"]


def test_nothing_is_told_of_short_work_of_work_that_stands_still_and_at_the_end(clock):
    assert told(clock, (0, 0.0), (0.5, 0.5), (9, 0.0), (9, 1.0)) == [""] * 4


def test_a_bar_counts_and_is_gone_at_the_end():
    def script():
        import streamlit as st

        from ui.progress import counting

        with counting("Reading", "texts") as show:
            show(1200, 3000)
            if not st.session_state.get("ends"):
                st.stop()

    [bar] = app_of(script).run().get("progress")
    assert (bar.proto.value, bar.proto.text) == (40, "Reading: 1,200 of 3,000 texts")
    assert not app_of(script, ends=True).run().get("progress")
