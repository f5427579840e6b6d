r"""Rows of a sweep in a file that survives crashes, and as JSON or CSV for export.

The file has one JSON object per line: a header with a hash of the sweep's inputs, then the rows as they come,
and before a row its parts. A line without ``\n``, left by a crash, is dropped.
"""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from io import StringIO
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from ..errors import UNREADABLE, InputError
from ..layers.tracing import Array
from ..models.second_models import SECOND_MODELS
from ..retrieval.embedding_spec import prompted_digest
from ..settings import SWEPT
from ..wording import csv_cell
from .metrics import METRICS
from .sweep import Part, SweepInputs, by_name
from .sweep_row import MEASURES, QuestionValues, SweepRow

FORMAT = "glassbox sweep 1"
MAX_BYTES = 1024**3
MOST = 1e8  # chunks, megabytes and seconds that nothing measures
ROW, PART = TypeAdapter(SweepRow), TypeAdapter[Part](Part)
FIGURES = ("n_chunks", "n_questions", "seconds", "index_bytes", "search_seconds", "n_answers")


def stamp_of(inputs: SweepInputs) -> str:
    """Return a SHA-256 over all inputs of a sweep except the configurations."""
    questions = list(inputs.questions)
    digest = sha256(repr((by_name(inputs.documents), questions)).encode("utf-8", "surrogatepass"))
    for name, model in sorted(inputs.models.items()):
        digest.update(f"{name} {prompted_digest(model.fingerprint, model.prompts)}\n".encode())
        second = (getattr(model.as_encoder, kind, None) for kind in SECOND_MODELS)
        digest.update("".join(f"{each.name}\n" for each in second if each is not None).encode())
    return digest.hexdigest()


class KeptParts(dict[str, Part]):
    """Parts of a sweep, each appended to a file as it is set."""

    def __init__(self, path: Path, known: Mapping[str, Part]) -> None:
        super().__init__(known)
        self._path = path

    def __setitem__(self, key: str, value: Part) -> None:
        super().__setitem__(key, value)
        append_line(self._path, part_line(key, value))


def resume(path: Path, stamp: str) -> tuple[list[SweepRow], KeptParts]:
    """Open a file to continue a sweep, by its `stamp_of`, or create it; return its rows and their parts."""
    header = line_of({"format": FORMAT, "stamp": stamp})
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} cannot be used (it is no ordinary file): give another file")
        if path.exists() and path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path} has over {MAX_BYTES // 1024**2} MB, the most of a sweep: give another file"
            )
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and header.startswith(content):  # a new file, or a crash within the header
            path.write_bytes(header)
            return [], KeptParts(path, {})
        rows, parts = parse(path, whole, stamp)
        if len(whole) < len(content):
            os.truncate(path, len(whole))
    except OSError as error:
        raise InputError(f"{path} cannot be used ({error.strerror}): give another file") from error
    return rows, KeptParts(path, parts)


def parse(path: Path, content: bytes, stamp: str) -> tuple[list[SweepRow], dict[str, Part]]:
    """Parse the header, the rows and their parts."""
    lines = content.split(b"\n")[:-1]
    try:
        header = json.loads(lines[0])
        if header["format"] != FORMAT:
            raise ValueError
        written = header["stamp"]
    except UNREADABLE as error:
        raise InputError(f"{path} is no file of a sweep: give another, or one that is not there") from error
    rows, parts = list[SweepRow](), dict[str, Part]()
    if written != stamp:
        raise InputError(
            f"{path} holds a sweep of other documents, questions or models: give these again, or another file"
        )
    for number, line in enumerate(lines[1:], 2):
        try:
            read_line(line, rows, parts)
        except UNREADABLE as error:
            raise InputError(f"{path}, line {number} is damaged: delete that line, and go on") from error
    return rows, parts


def read_line(line: bytes, rows: list[SweepRow], parts: dict[str, Part]) -> None:
    """Add the row of a line, or the part of one; an error where it is damaged."""
    content = json.loads(line)
    if "part" in content:
        parts[content["part"]] = PART.validate_python(content["value"])
    else:
        rows.append(read_row(content))


def append(path: Path, row: SweepRow) -> None:
    """Append a row to the file, flushed to the disk."""
    append_line(path, line_of(row_fields(row)))


def append_line(path: Path, line: bytes) -> None:
    """Append a line, as `append`."""
    try:
        with path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): give another file") from error


def file_content(head: Mapping[str, Any], rows: Sequence[SweepRow], parts: Mapping[str, Part]) -> bytes:
    """Return the lines of a file: its head, rows, and parts of others."""
    return b"".join([line_of(head), *map(line_of, map(row_fields, rows)), *starmap(part_line, parts.items())])


def part_line(key: str, part: Part) -> bytes:
    """Return the line of a part."""
    return line_of({"part": key, "value": PART.dump_python(part, mode="json")})


def line_of(content: Mapping[str, Any]) -> bytes:
    """Return an object as a line of JSON."""
    return f"{json.dumps(content)}\n".encode()


def row_fields(row: SweepRow) -> dict[str, Any]:
    """Return a row in JSON types."""
    fields: dict[str, Any] = ROW.dump_python(replace(row, values=dict(row.values)), mode="json")
    return fields


def read_row(content: Mapping[str, Any]) -> SweepRow:
    """Return the row that `row_fields` wrote, also by a former version; `ValueError` for a damaged one."""
    configuration = content["configuration"] if "configuration" in content else content["cell"]
    row = ROW.validate_python({**content, "configuration": configuration})
    names = [name for name in METRICS if name in row.metrics]
    values = np.array([row.values[name] for name in names], np.float64)  # (n_metrics, n_questions)
    searched = replace(
        row,
        metrics={name: row.metrics[name] for name in names},
        intervals={name: row.intervals[name] for name in names},
        values=QuestionValues.of(names, values.T),
    )
    check_row(searched, values)
    return searched.with_answers(row.answers)


def check_row(row: SweepRow, values: Array) -> None:
    """Raise `ValueError` for figures that no measurement has; values are ``(n_metrics, n_questions)``."""
    cut, answers = row.configuration, row.answers
    sizes = [row.n_chunks - 1, row.index_bytes / 1e6, row.seconds, row.search_seconds or 0]
    sizes += [cut.overlap, cut.chunk_tokens - 1, cut.k - 1, (cut.max_tokens or 1) - 1]
    sizes += [each for answer in answers for each in (answer.seconds, answer.until_quotes_s)]
    shares = [*values.ravel(), *(end for each in row.intervals.values() for end in each)]
    shares += [share for each in answers for share in (each.confidence, each.f1)]
    is_possible = (
        "mrr" in row.metrics
        and all(0 <= each < MOST for each in sizes)
        and all(0 <= each <= 1 for each in shares)
        and all(low <= high for low, high in row.intervals.values())
        and np.shape(values) == (len(row.metrics), row.n_questions)
        and np.allclose(values.mean(axis=1), list(row.metrics.values()), rtol=0, atol=1e-6)
    )
    if not is_possible:
        raise ValueError("figures that no measurement has")


def to_json(rows: Sequence[SweepRow]) -> dict[str, Any]:
    """Return ``{"rows": [{settings, figures, metrics, "intervals": {metric: [low, high]}}, …]}``."""
    return {
        "rows": [
            {**flat(row), "intervals": {name: list(ends) for name, ends in row.intervals.items()}}
            for row in rows
        ]
    }


def to_csv(rows: Sequence[SweepRow]) -> str:
    """Return a table with one line per row: settings, figures, metrics, and the ends of their intervals."""
    text = StringIO(newline="")
    ends = [f"{name} {end}" for name in MEASURES for end in ("low", "high")]
    writer = csv.DictWriter(text, [*SWEPT, *FIGURES, *MEASURES, *ends], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        bounds = {
            f"{name} {end}": bound
            for name, interval in row.intervals.items()
            for end, bound in zip(("low", "high"), interval, strict=True)
        }
        writer.writerow({name: csv_cell(value) for name, value in (flat(row) | bounds).items()})
    return text.getvalue()


def flat(row: SweepRow) -> dict[str, Any]:
    """Return settings, figures and metrics of a row by their names."""
    return {**asdict(row.configuration), **{name: getattr(row, name) for name in FIGURES}, **row.metrics}
