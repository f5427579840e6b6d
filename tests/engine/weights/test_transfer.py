import pytest

from engine.weights import transfer
from engine.weights.transfer import Transfer


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(transfer, "monotonic", lambda: now[0])
    return now


def reported(clock, *states):
    found = Transfer()
    for clock[0], done, total in states:
        found(done, total)
    return found


def test_bytes_rate_and_time_left_in_words(clock):
    halfway = reported(clock, (0, 100_000_000, 600_000_000), (2, 120_000_000, 600_000_000))
    assert halfway.words == "120.0 of 600.0 MB · 10.0 MB/s · 48 s left"
    assert halfway.share == pytest.approx(0.2)


def test_what_is_unknown_is_left_out(clock):
    assert reported(clock, (0, 5_000_000, 9_000_000)).words == "5.0 of 9.0 MB"
    assert reported(clock, (0, 0, 0), (1, 2_000_000, 0)).words == "2.0 MB · 2.0 MB/s"
    assert reported(clock, (0, 1, 0)).share == 0


def test_nothing_is_left_at_the_end(clock):
    end = reported(clock, (0, 0, 4_000_000), (1, 4_000_000, 4_000_000))
    assert end.words == "4.0 of 4.0 MB · 4.0 MB/s"
    assert end.share == 1


def test_the_rate_is_that_of_the_last_seconds(clock):
    slowed = reported(clock, (0, 0, 10**9), (9, 900_000_000, 10**9), (10, 901_000_000, 10**9))
    assert slowed.bytes_per_s == pytest.approx(1e6)
