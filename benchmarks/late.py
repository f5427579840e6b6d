"""What late chunking does to a search: ``python -m benchmarks.late [--json]``.

For the bundled labelled questions: the mean reciprocal rank of the first chunk that holds part of the
answer, and the share of questions with one among the first five, by ordinary vectors and by late ones
with more and more context.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath

import numpy as np

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import Splitting, split
from engine.layers.tracing import Array
from engine.retrieval.late import late_vectors, ranks

SIZES, CONTEXTS = (64, 128), (128, 256, 512)
FIRST = 5


def answers(row: dict[str, str], chunks: Sequence[Chunk]) -> Array:
    """Whether each chunk holds part of the answer to a question: ``(n_chunks,)``."""
    spans = [(span["start_index"], span["end_index"]) for span in json.loads(row["references"])]
    return np.array(
        [
            PurePath(chunk.document).stem == row["corpus_id"]
            and any(chunk.start < end and start < chunk.end for start, end in spans)
            for chunk in chunks
        ]
    )


def quality(questions: Array, vectors: Array, relevant: Array) -> dict[str, float]:
    """Score a search by vectors ``(n_chunks, d_model)``; ``relevant`` is ``(n_questions, n_chunks)``."""
    scores = questions @ vectors.T  # (n_questions, n_chunks)
    best = np.where(relevant, scores, -np.inf).max(axis=1)
    places = np.array([ranks(one, row) for one, row in zip(best, scores, strict=True)])
    return {"mrr": float((1 / places).mean()), f"hits_at_{FIRST}": float((places <= FIRST).mean())}


def late(documents: dict[str, Document], chunks: Sequence[Chunk], encoder: Encoder, context: int) -> Array:
    """Late vectors of the chunks of several documents: ``(n_chunks, d_model)``."""
    parts = groupby(chunks, key=lambda chunk: chunk.document)
    return np.concatenate([late_vectors(documents[name], [*own], encoder, context) for name, own in parts])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json

    encoder = Encoder.load()
    documents = {document.name: document for document in load_corpus(BUNDLED_CORPUS)}
    with (BUNDLED_CORPUS.parent / "questions.csv").open(encoding="utf-8", newline="") as file:
        labelled = list(csv.DictReader(file))
    questions = encoder.encode([row["question"] for row in labelled])
    rows = []
    for size in SIZES:
        splitting = Splitting("fixed", size, overlap=0)
        chunks = [c for d in documents.values() for c in split(d, encoder.tokenizer, splitting)]
        relevant = np.array([answers(row, chunks) for row in labelled])
        ordinary = encoder.encode([chunk.text for chunk in chunks])
        rows.append({"chunk_tokens": size, "context": None, **quality(questions, ordinary, relevant)})
        for context in CONTEXTS:
            vectors = late(documents, chunks, encoder, context)
            rows.append({"chunk_tokens": size, "context": context, **quality(questions, vectors, relevant)})
    if as_json:
        workload = f"{len(labelled)} labelled questions on the bundled documents"
        print(json.dumps({"workload": workload, "ours": {"rows": rows}, "peers": {}, "limit": {}}))
        return
    print(f"chunk tokens  vectors           MRR  hits@{FIRST}")
    for row in rows:
        kind = f"late, {row['context']}" if row["context"] else "ordinary"
        print(f"{row['chunk_tokens']:12}  {kind:12}  {row['mrr']:7.3f}  {row[f'hits_at_{FIRST}']:6.3f}")


if __name__ == "__main__":
    main()
