"""The causes of wrong answers, and their cures: ``python -m benchmarks.diagnosis [--json]``.

Wrong and refused answers: how often their true cause is named, and how often a cure gives the right answer.
The second half was written aside, the last later.
"""

import json
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Encoder
from engine.documents.document import Loaded
from engine.documents.loaders import read_corpus
from engine.documents.splitters import Splitting
from engine.evaluation.answers import ShortAnswer
from engine.evaluation.bootstrap import share_interval
from engine.generation.conversation import Turn
from engine.inspection.diagnosis.asking import Searched
from engine.inspection.diagnosis.diagnose import Diagnosis, diagnose
from engine.models.reader import shipped_reader
from engine.retrieval.embedding_model import cut_documents
from engine.retrieval.index import build_index
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.vector_cache import VectorCache
from engine.settings import SETTINGS
from tests.pdf_file import make_pdf

CASES = Path(__file__).with_suffix(".json")
HALVES = {"build": "half to build with", "aside": "half aside", "fresh": "written later"}
FILLER = re.compile(r"\{(\d+)\}")  # so many sentences about something else


@dataclass(frozen=True)
class WrongAnswer:
    """A case of `CASES`: texts of files, of a PDF its pages, and settings other than the default."""

    name: str
    half: str
    cause: str
    files: dict[str, Any]
    question: str
    passage: str
    answer: str
    options: dict[str, Any]
    after: str = ""


@cache
def content() -> dict[str, Any]:
    """Return the content of the file of cases."""
    found: dict[str, Any] = json.loads(CASES.read_text(encoding="utf-8"))
    return found


def load_cases() -> list[WrongAnswer]:
    """Read the cases."""
    return [WrongAnswer(**{"options": {}} | case) for case in content()["cases"]]


def read_files(case: WrongAnswer) -> Loaded:
    """Read the files of a case, and those that all cases have."""

    def filled(text: str) -> bytes:
        return FILLER.sub(lambda n: " ".join(content()["filler"][: int(n[1])]), text).encode()

    with TemporaryDirectory() as folder:
        for name, text in (content()["files"] | case.files).items():
            Path(folder, name).write_bytes(make_pdf(*text) if isinstance(text, list) else filled(text))
        return read_corpus(Path(folder))


def diagnosed(case: WrongAnswer, encoder: Encoder, cached: VectorCache) -> Diagnosis:
    """Diagnose a case under its settings."""
    loaded = read_files(case)
    values = {key: setting.default for key, setting in SETTINGS.items()} | case.options
    splitting = Splitting(values["splitter"], values["chunk_tokens"], values["overlap"])
    pieces = cut_documents(loaded.documents, encoder, splitting)
    chunks = [chunk for own in pieces for chunk in own]
    index = build_index(chunks, encoder, cache=cached, documents=loaded.documents)
    reader, null_scores = shipped_reader(encoder), null_scores_of(index, encoder)
    searched = Searched(index, encoder, reader, values, null_scores, loaded.documents, cached)
    turns = (Turn(case.after, searched.answer(case.after).shown_text),) if case.after else ()
    wanted = ShortAnswer.parse(case.answer)
    return diagnose(case.question, case.passage, searched, wanted, turns, failures=loaded.failures)


def run(arguments: Namespace) -> Result:
    """Diagnose all cases."""
    encoder, cached, cases = Encoder.load(), VectorCache(), load_cases()
    rows = []
    for number, case in enumerate(cases, start=1):
        start = perf_counter()
        found = diagnosed(case, encoder, cached)
        seconds = perf_counter() - start
        is_cured = found.trial is not None and found.trial.is_right
        rows.append(
            {
                "name": case.name,
                "half": case.half,
                "cause": case.cause,
                "named": found.cause,
                "cured": is_cured,
                "seconds": seconds,
            }
        )
        say(f"{number} of {len(cases)}: {case.name}: {case.cause}, named {found.cause}, cured: {is_cured}")
    return {
        "workload": f"{len(cases)} questions about small documents, {encoder.name}",
        "ours": {"rows": rows},
    }


def share(rights: Sequence[bool]) -> str:
    """``"24 of 27, 0.89 [0.71, 0.98]"``."""
    found = share_interval(sum(rights), len(rights))
    return f"{sum(rights)} of {len(rights)}, {found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"


def table(result: Result) -> Table:
    """Tabulate a row for each half; cures count for answers that are wrong."""
    lines = []
    for half, name in HALVES.items():
        if not (own := [row for row in result["ours"]["rows"] if row["half"] == half]):
            continue  # figures that were kept before it was there
        named = [row["named"] == row["cause"] for row in own]
        cured = [row["cured"] for row in own if row["cause"] != "none"]
        mean = sum(row["seconds"] for row in own) / len(own)
        lines.append([name, share(named), share(cured), f"{mean:.1f}"])
    return Table(["", "cause named", "right answer by the cure", "seconds"], lines)


EXPLANATION = """\
A text that was never read has no cure but the file itself."""
BENCHMARK = Benchmark(__doc__, run, table, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
