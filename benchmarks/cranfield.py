"""The Cranfield collection as a BEIR folder: ``python -m benchmarks.cranfield SMART_FOLDER OUT_FOLDER``.

SMART_FOLDER holds cran.all.1400, cran.qry and cranqrel in SMART's format. Judgements number the questions 1
to 225 by their order in the file, not by their own ids. Codes 1 (a complete answer) to 4 (of least
interest) count as relevant, 1, and -1 as not relevant, 0. The text of an abstract repeats its title, as in
the collection.
"""

import argparse
import json
import re
from collections.abc import Iterable
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


def write_jsonl(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write one object a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def convert(smart: Path, out: Path) -> None:
    """Convert a SMART folder to a BEIR one; documents and questions are numbered in order, from 1."""
    documents, questions = (
        list(enumerate(smart_records((smart / name).read_text(encoding="latin-1")), 1))
        for name in ("cran.all.1400", "cran.qry")
    )
    judged = judgements((smart / "cranqrel").read_text(encoding="latin-1"))
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    write_jsonl(
        out / "corpus.jsonl",
        (
            {"_id": str(n), "title": row.get("T", "").strip(), "text": row.get("W", "").strip()}
            for n, row in documents
        ),
    )
    write_jsonl(
        out / "queries.jsonl", ({"_id": str(n), "text": row.get("W", "").strip()} for n, row in questions)
    )
    lines = ("\t".join(map(str, row)) for row in (QRELS_HEADER, *judged))
    (out / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{len(documents)} documents, {len(questions)} questions, {len(judged)} judgements in {out}")


def main() -> None:
    """Convert."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("smart_folder", type=Path, help="holds cran.all.1400, cran.qry and cranqrel")
    parser.add_argument("out_folder", type=Path, help="created if missing")
    arguments = parser.parse_args()
    try:
        convert(arguments.smart_folder, arguments.out_folder)
    except OSError as error:
        raise SystemExit(f"{error.filename} cannot be used ({error.strerror}): see --help") from error


if __name__ == "__main__":
    main()
