"""The page of benchmarks, from the stored results and from small ones."""

import json
import subprocess
import sys
from datetime import date

import pytest

from benchmarks.command import processor
from benchmarks.report import DOCS, NAMES, ReportError, page, section, store, stored

LATE = {
    "workload": "310 questions",
    "processor": "A Processor",
    "ours": {"rows": [{"chunk_tokens": 128, "context": None, "mrr": 0.7, "hits_at_5": 0.9}]},
    "peers": {},
    "limit": {},
}
ABOUT = {"command": "python -m benchmarks.late", "date": "2026-01-02"}


@pytest.mark.parametrize("name", [name for name in NAMES if stored(name, DOCS)])
def test_a_stored_result_is_one_table_with_its_machine(name):
    text = section(name, stored(name, DOCS))
    newest = max(stored(name, DOCS), key=lambda result: result["date"])
    assert text.startswith("## ")
    assert f"on {newest['processor']}, {newest['date']}: " in text
    assert text.count("\n|---|") == 1


def test_a_missing_figure_is_an_error():
    with pytest.raises(ReportError, match="late: the stored result has no figure 'mrr'"):
        section("late", [ABOUT | LATE | {"ours": {"rows": [{"chunk_tokens": 128, "context": None}]}}])


def test_figures_are_stored_with_command_and_day(tmp_path):
    (tmp_path / "late.json").write_text(json.dumps(LATE))
    store("late", tmp_path / "docs", tmp_path)
    (found,) = stored("late", tmp_path / "docs")
    assert found == LATE | {"command": "python -m benchmarks.late", "date": date.today().isoformat()}
    assert "## What late chunking does to a search" in page(tmp_path / "docs")


def test_the_newest_result_of_every_processor_is_kept(tmp_path):
    for name, workload in (("Zen", "first"), ("Xeon", "second"), ("Zen", "third")):
        (tmp_path / "late.json").write_text(json.dumps(LATE | {"processor": name, "workload": workload}))
        store("late", tmp_path / "docs", tmp_path)
    kept = {result["processor"]: result["workload"] for result in stored("late", tmp_path / "docs")}
    assert kept == {"Zen": "third", "Xeon": "second"}


def test_an_unknown_benchmark_is_refused_in_one_line(tmp_path):
    command = [sys.executable, "-m", "benchmarks.report", "speed", "--docs", str(tmp_path)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no benchmark 'speed': choose from answers, follow_ups, encode")
    assert len(done.stderr.splitlines()) == 1


def test_the_page_is_what_the_stored_figures_give():
    assert (DOCS / "benchmarks.md").read_text("utf-8") == page(DOCS)


def test_the_processor_has_a_name():
    assert processor()
