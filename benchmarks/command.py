"""What every benchmark shares: its command line, its JSON object and its table."""

import argparse
import json
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import GlassboxError

OURS = "glassbox"
# {"workload": str, "ours": {...}, "peers": {name: {..., "ratio": ours over theirs}}, "limit": {...}}, where
# peers and limit may be left out.
Result = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Formatted cells under ``columns``; the first column names the rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table in aligned columns, numbers to the right."""
        lines = [self.columns, *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]).rstrip()
            for cells in lines
        )

    def markdown(self) -> str:
        """Return the table in Markdown."""
        head, *rows = (f"| {' | '.join(cells)} |" for cells in (self.columns, *self.rows))
        return "\n".join([head, "|" + "---|" * len(self.columns), *rows])


def contestants(result: Result, columns: Mapping[str, str]) -> Table:
    """Tabulate Glassbox and its peers, a row each; raise `KeyError` where a figure is missing.

    ``columns`` has a format for each header, such as ``{"peak MB": "{peak_mb:.0f}"}``, filled from a row;
    formats of ratios stay empty in the row of Glassbox. The row of a peer that ended says how.
    """

    def cells(name: str, row: Mapping[str, Any]) -> list[str]:
        if "ended" in row:
            return [row["ended"], *[""] * (len(columns) - 1)]
        return ["" if name == OURS and "ratio" in cell else cell.format(**row) for cell in columns.values()]

    rows = {OURS: result["ours"], **result["peers"]}
    return Table(["", *columns], [[name, *cells(name, row)] for name, row in rows.items()])


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that ``python -m benchmarks.NAME`` runs."""

    doc: str | None  # of its module: a title up to the first colon, a paragraph on what is measured, then how
    run: Callable[[argparse.Namespace], Result]  # takes the options, returns the figures
    table: Callable[[Result], Table]  # of the claim; raises `KeyError` where a figure is missing
    rounds: int | None = None  # default of ``--rounds``; None where there is no such option
    add_options: Callable[[argparse.ArgumentParser], object] | None = None  # adds further options
    explanation: str = ""  # why the figures are as they are, in Markdown

    @property
    def title(self) -> str:
        """The first line of the docstring, without the command."""
        return (self.doc or "").split(": ``")[0].strip()

    @property
    def summary(self) -> str:
        """The second paragraph of the docstring."""
        return " ".join((self.doc or "").split("\n\n")[1].split())

    def main(self) -> None:
        """Run the benchmark; print its figures as a table, or with ``--json`` as one JSON object."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        if self.rounds is not None:
            parser.add_argument("--rounds", type=int, default=self.rounds, help="turns of each contestant")
        if self.add_options is not None:
            self.add_options(parser)
        arguments = parser.parse_args()
        try:
            result = {"processor": processor(), "peers": {}, "limit": {}} | self.run(arguments)
        except GlassboxError as error:
            parser.error(str(error))
        if arguments.json:
            print(json.dumps(result))
            return
        print(f"{result['workload']}\n{result['processor']}", self.table(result).text(), sep="\n\n")
        if result["limit"]:
            print(f"\nlimit: {json.dumps(result['limit'])}")


def median_ratio(above: Iterable[float], below: Iterable[float]) -> float:
    """Return the median of the ratios of figures that were measured next to each other."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def processor() -> str:
    """Return the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    pairs = (line.partition(":") for line in lines)
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    name = fields.get("model name") or platform.processor() or platform.machine()
    if any(map(str.isdigit, name)) or "model" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"  # a name that tells little
