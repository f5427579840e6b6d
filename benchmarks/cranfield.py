"""The Cranfield collection as a BEIR folder: ``python -m benchmarks.cranfield SMART_FOLDER OUT_FOLDER``.

SMART_FOLDER holds cran.all.1400, cran.qry and cranqrel in SMART's format. Judgements number the questions 1
to 225 by their order in the file, not by their own ids. Codes 1 (a complete answer) to 4 (of least
interest) count as relevant, 1, and -1 as not relevant, 0. The text of an abstract repeats its title, as in
the collection.
"""

import json
import re
import sys
from pathlib import Path

from benchmarks.processes import say
from engine.evaluation.beir import QRELS_HEADER

FIELD = re.compile(r"\.[A-Z]\s*")


def smart_records(text: str) -> list[dict[str, str]]:
    """Split a SMART file into records: ``.I`` begins a record, ``.T``, ``.W`` and others a field of it."""
    found: list[dict[str, str]] = []
    field = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith(".I "):
            found.append({})
            field = ""
        elif FIELD.fullmatch(line) and found:
            field = line[1]
            found[-1].setdefault(field, "")
        elif field:
            found[-1][field] += f"{line}\n"
    return found


def judgements(text: str) -> list[tuple[str, str, int]]:
    """Read question, document and whether it is relevant, 1 or 0."""
    rows = (line.split() for line in text.splitlines() if line.strip())
    return [(query, document, int(int(code) > 0)) for query, document, code in rows]


def convert(smart: Path, out: Path) -> None:
    """Convert a SMART folder to a BEIR one; documents and questions are numbered in order, from 1."""
    documents, questions = (
        list(enumerate(smart_records((smart / name).read_text(encoding="latin-1")), 1))
        for name in ("cran.all.1400", "cran.qry")
    )
    judged = judgements((smart / "cranqrel").read_text(encoding="latin-1"))
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in {"corpus": documents, "queries": questions}.items():
        objects = (
            {"_id": str(n), "title": row.get("T", "").strip(), "text": row.get("W", "").strip()}
            for n, row in rows
        )
        (out / f"{name}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects), "utf-8")
    lines = ("\t".join(map(str, row)) for row in (QRELS_HEADER, *judged))
    (out / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{len(documents)} documents, {len(questions)} questions, {len(judged)} judgements in {out}")


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:]))
