import pytest

from engine.cli import printing


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(printing.time, "monotonic", lambda: now[0])
    return now


def report_at(clock, report, *states):
    for second, done in states:
        clock[0] = second
        report(done, 400)


def test_without_a_terminal_a_line_comes_every_few_seconds(clock, capsys):
    report_at(
        clock, printing.progress("Embedding 400 chunks"), (1, 10), (6, 100), (9, 200), (12, 300), (13, 400)
    )
    assert capsys.readouterr().err.splitlines() == [
        "Embedding 400 chunks: 100 of 400",
        "Embedding 400 chunks: 300 of 400",
    ]


def test_a_terminal_redraws_one_line_and_ends_it(clock, capsys, monkeypatch):
    monkeypatch.setattr(printing.sys.stderr, "isatty", lambda: True)
    report_at(clock, printing.progress("Embedding"), (0.1, 10), (0.3, 20), (0.4, 400))
    shown = capsys.readouterr().err
    assert [state.strip() for state in shown.split("\r")] == [
        "",
        "Embedding: 20 of 400",
        "Embedding: 400 of 400",
    ]
    assert shown.endswith("\n")


def test_bytes_are_shown_in_megabytes_with_a_total_or_without(clock, capsys):
    report = printing.download_progress("model")
    for second, total in ((6, 90_900_000), (12, 0)):
        clock[0] = second
        report(12_300_000, total)
    assert capsys.readouterr().err.splitlines() == [
        "Downloading model: 12.3 of 90.9 MB",
        "Downloading model: 12.3 MB",
    ]
