"""What late chunking does to a search: ``python -m benchmarks.late [--json]``.

For the bundled labelled questions: the mean reciprocal rank of the first chunk with part of the answer, and
the share of questions with one among the first five, by ordinary vectors and by late ones with growing
context.
"""

from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from benchmarks.command import Benchmark, Result, Table
from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import Splitting, split
from engine.evaluation.metrics import hit_rate, reciprocal_rank
from engine.evaluation.questions import load_questions, relevance
from engine.layers.tracing import Array
from engine.retrieval.late import late_vectors
from engine.retrieval.retrievers import dense_scores

SIZES, CONTEXTS = (64, 128), (128, 256, 512)
FIRST = 5


def quality(questions: Array, vectors: Array, relevant: Array) -> dict[str, float]:
    """Score a search by vectors ``(n_chunks, d_model)``; ``relevant`` is ``(n_questions, n_chunks)``."""
    scores = dense_scores(questions, vectors)
    return {
        "mrr": float(reciprocal_rank(scores, relevant).mean()),
        f"hits_at_{FIRST}": float(hit_rate(scores, relevant, FIRST).mean()),
    }


def late(documents: dict[str, Document], chunks: Sequence[Chunk], encoder: Encoder, context: int) -> Array:
    """Late vectors of the chunks of several documents: ``(n_chunks, d_model)``."""
    parts = groupby(chunks, key=lambda chunk: chunk.document)
    return np.concatenate([late_vectors(documents[name], [*own], encoder, context) for name, own in parts])


def run(arguments: Namespace) -> Result:
    """Search with ordinary and late vectors of each chunk size."""
    encoder = Encoder.load()
    documents = {document.name: document for document in load_corpus(BUNDLED_CORPUS)}
    labelled = load_questions()
    questions = encoder.encode([question.text for question in labelled])
    rows = []
    for size in SIZES:
        splitting = Splitting("fixed", size, overlap=0)
        chunks = [c for d in documents.values() for c in split(d, encoder.tokenizer, splitting)]
        relevant = relevance(labelled, chunks)
        ordinary = encoder.encode([chunk.text for chunk in chunks])
        rows.append({"chunk_tokens": size, "context": None, **quality(questions, ordinary, relevant)})
        for context in CONTEXTS:
            vectors = late(documents, chunks, encoder, context)
            rows.append({"chunk_tokens": size, "context": context, **quality(questions, vectors, relevant)})
    workload = f"{len(labelled)} labelled questions on the bundled documents"
    return {"workload": workload, "ours": {"rows": rows}}


def table(result: Result) -> Table:
    """Tabulate a row for each chunk size and context."""
    return Table(
        ["vectors", "chunk tokens", "MRR", f"hits@{FIRST}"],
        [
            [
                f"late, {row['context']}" if row["context"] else "ordinary",
                f"{row['chunk_tokens']}",
                f"{row['mrr']:.3f}",
                f"{row[f'hits_at_{FIRST}']:.3f}",
            ]
            for row in result["ours"]["rows"]
        ],
    )


BENCHMARK = Benchmark(
    __doc__, run, table, explanation="The model was trained on 128 tokens: longer contexts make it worse."
)


if __name__ == "__main__":
    BENCHMARK.main()
