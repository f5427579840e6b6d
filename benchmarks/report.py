"""Write docs/benchmarks.md from stored figures.

``python -m benchmarks.report [NAME ...] [--figures FOLDER]`` runs the named benchmarks with ``--json``,
stores each result in docs/benchmarks/NAME.json, which keeps the newest of every processor, and renders the
page from all stored results. A name may bring arguments: ``"late --beir my_folder"``. With ``--figures``
nothing is run: the results are read from FOLDER/NAME.json, as ``--json`` printed them. Without names the page
is only rendered.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from importlib import import_module
from pathlib import Path

from benchmarks.command import Benchmark, Result
from benchmarks.processes import say

DOCS = Path(__file__).parents[1] / "docs"
# In the order of the page.
NAMES = [
    "answers",
    "follow_ups",
    "encode",
    "families",
    "decode",
    "sweep",
    "search",
    "reader",
    "train_reader",
    "drafts",
    "late",
    "diagnosis",
    "languages",
    "serve",
    "scale",
    "waits",
    "memory",
]
INTRODUCTION = """\
# Benchmarks

Glassbox and libraries that do the same work. A ratio above 1 means that Glassbox is faster. `python -m
benchmarks.report` writes this page from `docs/benchmarks/`; peers come with `pip install -r
benchmarks/requirements.txt`."""


class ReportError(Exception):
    """A result that cannot be rendered."""


def measured(command: str) -> Result:
    """Run ``NAME [ARGUMENTS]`` and return its figures."""
    name, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments, "--json"],
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise ReportError(f"benchmarks.{name} failed: see its message above")
    return json.loads(done.stdout)


def store(command: str, docs: Path, figures: Path | None) -> None:
    """Measure a benchmark, or take its figures from a folder, and store them with date and command."""
    name = shlex.split(command)[0]
    if name not in NAMES:
        raise ReportError(f"there is no benchmark {name!r}: choose from {', '.join(NAMES)}")
    if figures is None:
        say(f"running {command}")
        result, day = measured(command), date.today()
    else:
        path = figures / f"{name}.json"
        result, day = json.loads(path.read_text("utf-8")), date.fromtimestamp(path.stat().st_mtime)
    about = {"command": f"python -m benchmarks.{command}", "date": day.isoformat()}
    result = about | result
    others = [one for one in stored(name, docs) if one["processor"] != result["processor"]]
    results = sorted([*others, result], key=lambda one: one["processor"])
    section(name, results)  # raises before anything is written
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (docs / "benchmarks" / f"{name}.json").write_text(f"{text}\n", "utf-8")


def stored(name: str, docs: Path) -> list[Result]:
    """Return the stored results of a benchmark, one for each processor."""
    path = docs / "benchmarks" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def section(name: str, results: Sequence[Result]) -> str:
    """Render the newest stored result of a benchmark in Markdown, as one table; raise `ReportError`."""
    benchmark: Benchmark = import_module(f"benchmarks.{name}").BENCHMARK
    newest = max(results, key=lambda result: result["date"])
    try:
        table = benchmark.table(newest).markdown()
        measured_on = (
            f"`{newest['command']}` on {newest['processor']}, {newest['date']}: {newest['workload']}."
        )
    except KeyError as error:
        raise ReportError(f"{name}: the stored result has no figure {error}: run it again") from error
    parts = [f"## {benchmark.title}", benchmark.summary, measured_on, table, benchmark.explanation]
    return "\n\n".join(filter(None, parts))


def page(docs: Path) -> str:
    """Render all stored results."""
    sections = [section(name, results) for name in NAMES if (results := stored(name, docs))]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def main() -> None:
    """Store the named results and write the page."""
    parser = argparse.ArgumentParser(description="Write docs/benchmarks.md from stored figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark, with arguments in quotes")
    parser.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="take NAME.json from here, run nothing"
    )
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page and the figures are written")
    arguments = parser.parse_args()
    try:
        for command in arguments.names:
            store(command, arguments.docs, arguments.figures)
        (arguments.docs / "benchmarks.md").write_text(page(arguments.docs), "utf-8")
    except (ReportError, OSError, json.JSONDecodeError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
