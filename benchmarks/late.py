"""What late chunking does to a search, and headings before chunks: ``python -m benchmarks.late``.

Late vectors with growing context; then the change of the MRR by headings, or title and headings, before
chunks, with its 95 % interval.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path

import numpy as np

from benchmarks.command import Benchmark, Result, Table
from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.formats.markdown import read_markdown
from engine.documents.loaders import load_corpus
from engine.documents.splitters import Splitting, split
from engine.evaluation.beir import as_collection, load_beir
from engine.evaluation.bootstrap import mean_interval
from engine.evaluation.grid import grid
from engine.evaluation.metrics import reciprocal_rank
from engine.evaluation.questions import Question, Reference, load_questions, questions_about, relevance, stem
from engine.evaluation.sample import some_questions
from engine.evaluation.sweep import SweepInputs, sweep
from engine.layers.tracing import Array
from engine.retrieval.late import late_vectors
from engine.retrieval.retrievers import dense_scores
from engine.training.reading.articles import read_squad

SIZES, CONTEXTS = (64, 128), (128, 256, 512)
BEFORE = ("headings", "title")  # of the contexts of chunks, and none
PUMPS = ("Arden", "Brix", "Corvo", "Delta", "Esker", "Fjord")
TASKS = ("Installation", "Weekly check", "Yearly overhaul", "Storage")
WORDS = "Switch the unit off and let it cool before any work on it. " * 4


def late(documents: dict[str, Document], chunks: Sequence[Chunk], encoder: Encoder, context: int) -> Array:
    """Late vectors of the chunks of several documents: ``(n_chunks, d_model)``."""
    parts = groupby(chunks, key=lambda chunk: chunk.document)
    return np.concatenate([late_vectors(documents[name], [*own], encoder, context) for name, own in parts])


def manuals() -> tuple[list[Document], list[Question]]:
    """Manuals in Markdown: the same sentences and columns under other headings, and a question to each."""
    documents, questions = [], []
    for model, part in product(range(1, 7), range(2)):
        name, text = f"{PUMPS[model - 1]}-{part}", f"# {PUMPS[model - 1]} {'pump' if part else 'fan'}\n"
        for number, task in enumerate(TASKS, 1):
            value = 10 * model + 3 * part + number
            sentence = f"Tighten the bolts with {value} Nm and wait for {value + 40} minutes."
            rows = "".join(f"| {size} | {value + row} Nm |\n" for row, size in enumerate(("M4", "M6", "M8")))
            text += f"\n## {task}\n\n{WORDS} {sentence} {WORDS}\n\n| Bolt | Torque |\n|---|---|\n{rows}"
            kind = "pump" if part else "fan"
            asked = (
                f"With what torque are bolts tightened for {task.lower()} of the {PUMPS[model - 1]} {kind}?"
            )
            questions.append((asked, name, sentence))
        documents.append(read_markdown(f"{name}.md", text.encode()))
    texts = {stem(document.name): document.text for document in documents}
    return documents, [
        Question(asked, name, (Reference(said, start, start + len(said)),))
        for asked, name, said in questions
        if (start := texts[name].index(said)) >= 0
    ]


def articles(path: Path) -> tuple[list[Document], list[Question]]:
    """Articles of SQuAD with a sample of their questions."""
    read = read_squad(path)
    asked = [
        Question(
            each.text, stem(one.document.name), (Reference(one.document.text[slice(*each.span)], *each.span),)
        )
        for one in read
        for each in one.questions
        if each.span
    ]
    return [one.document for one in read], some_questions(asked)


def contexts(
    name: str, documents: list[Document], questions: list[Question], encoder: Encoder
) -> list[Result]:
    """Measure each of `CONTEXTS` before chunks: a row a retriever."""
    known = [each.name for each in documents]
    cells = grid(
        chunk_tokens=[96, 192], retriever=["dense", "bm25", "weighted"], context=["off", *BEFORE]
    ).configurations
    inputs = SweepInputs(documents, questions_about(questions, known), cells, {cells[0].model: encoder})
    values = {row.configuration: np.array(row.values["mrr"]) for row in sweep(inputs)}
    rows = []
    for one in cells:
        if one.context == "off":
            row = {"corpus": name, "chunk_tokens": one.chunk_tokens, "retriever": one.retriever}
            row["mrr"] = float(values[one].mean())
            for context in BEFORE:
                row[context] = vars(mean_interval(values[replace(one, context=context)] - values[one]))
            rows.append(row)
    return rows


def run(arguments: Namespace) -> Result:
    """Search with ordinary and late vectors of each chunk size, and with contexts before chunks."""
    encoder = Encoder.load()
    documents = {document.name: document for document in load_corpus()}
    labelled = load_questions()
    questions = encoder.encode([question.text for question in labelled])
    rows = []
    for size in SIZES:
        splitting = Splitting("fixed", size, overlap=0)
        chunks = [c for d in documents.values() for c in split(d, encoder.tokenizer, splitting)]
        relevant = relevance(labelled, chunks)
        ordinary = encoder.encode([chunk.text for chunk in chunks])
        found = {None: ordinary} | {one: late(documents, chunks, encoder, one) for one in CONTEXTS}
        for context, vectors in found.items():
            mrr = float(reciprocal_rank(dense_scores(questions, vectors), relevant).mean())
            rows.append({"chunk_tokens": size, "context": context, "mrr": mrr})
    before = contexts("bundled", [*documents.values()], labelled, encoder) + contexts(
        "manuals", *manuals(), encoder
    )
    for path in arguments.squad:
        before += contexts(path.name.split(".")[0], *articles(path), encoder)
    for folder in arguments.beir:
        collection = as_collection(folder.name, load_beir(folder))
        before += contexts(folder.name, [collection.document], list(collection.questions), encoder)
    workload = f"{len(labelled)} labelled questions on the bundled documents, and those of others"
    return {"workload": workload, "ours": {"rows": rows, "before": before}}


def change(found: Result) -> str:
    """``"+0.012 [-0.003, +0.027]"``."""
    return f"{found['estimate']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"


def table(result: Result) -> Table:
    """Tabulate a row for each chunk size and context."""
    late = [
        [
            f"late, {row['context']}" if row["context"] else "ordinary",
            row["chunk_tokens"],
            f"{row['mrr']:.3f}",
        ]
        for row in result["ours"]["rows"]
        if row["chunk_tokens"] == SIZES[-1]
    ]
    before = [
        [row["corpus"], row["chunk_tokens"], f"{row['mrr']:.3f}"]
        + [change(row[context]) for context in BEFORE]
        for row in result["ours"].get("before", [])
        if row["retriever"] == "weighted"
    ]
    columns = ["vectors, or questions (weighted)", "chunk tokens", "MRR", "headings", "title and headings"]
    return Table(
        columns, [*([*map(str, row), "", ""] for row in late), *([*map(str, row)] for row in before)]
    )


def add_options(parser: ArgumentParser) -> None:
    """Declare what is measured after the bundled questions."""
    parser.add_argument("--squad", type=Path, nargs="+", default=[], help="files of SQuAD")
    parser.add_argument("--beir", type=Path, nargs="+", default=[], help="collections in BEIR's format")


BENCHMARK = Benchmark(
    __doc__,
    run,
    table,
    add_options=add_options,
    explanation="Contexts above the 128 tokens of the training make late vectors worse. Headings help where "
    "sections differ in nothing else; elsewhere hardly, so they are off by default.",
)


if __name__ == "__main__":
    BENCHMARK.main()
