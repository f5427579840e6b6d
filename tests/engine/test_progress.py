import sys

import pytest

from engine import progress
from engine.cli.printing import download_progress


def report_at(clock, show, *states):
    with show as report:
        for clock[0], done, total in states:
            report(done, total)


def test_without_a_terminal_a_line_comes_every_few_seconds(clock, capsys):
    states = [(second, done, 400) for second, done in ((1, 10), (6, 100), (9, 200), (12, 300), (13, 400))]
    report_at(clock, progress.progress("Embedding 400 chunks"), *states)
    assert capsys.readouterr().err.splitlines() == [
        "Embedding 400 chunks",
        "Embedding 400 chunks: 100 of 400, about 17 s left",
        "Embedding 400 chunks: 300 of 400, about 4 s left",
    ]


def test_bytes_are_shown_in_megabytes_with_a_total_or_without(clock, capsys):
    report_at(clock, download_progress("model"), (6, 12_300_000, 90_900_000), (12, 12_300_000, 0))
    assert capsys.readouterr().err.splitlines() == [
        "Downloading model: 12.3 of 90.9 MB",
        "Downloading model: 12.3 MB",
    ]


@pytest.mark.parametrize(
    ("environment", "codes"),
    [({}, {"redrawn", "colour"}), ({"NO_COLOR": "1"}, {"redrawn"}), ({"TERM": "dumb"}, set())],
)
def test_a_terminal_shows_a_bar_unless_it_cannot_and_colours_unless_unwanted(
    environment, codes, capsys, monkeypatch
):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm-256color"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    def stopped():
        with progress.progress("Embedding [3] chunks") as report:
            report(2, 4)
            progress.say("warning: a line above")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    shown = capsys.readouterr().err
    assert "Embedding [3] chunks" in shown
    assert "warning: a line above\n" in shown.replace("\r", "")
    found = {name for name, code in (("redrawn", "\x1b[?25h"), ("colour", "\x1b[38;5;")) if code in shown}
    assert found == codes  # the cursor is shown again, also where the work is stopped
