"""When the app says that nothing is relevant: ``python -m benchmarks.threshold [--json]``.

Share of the bundled labelled questions that are answered, and of the unanswerable ones that are refused, by a
fixed cosine and by the share of unrelated questions that find a passage as close.

Measured for several poolings and chunk sizes.
"""

import csv
from argparse import Namespace
from collections.abc import Iterator

from benchmarks.command import Benchmark, Result, Table
from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import Splitting, split
from engine.evaluation.questions import load_questions
from engine.generation.settings import DEFAULT_MIN_RELEVANCE
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index import Index, index_vectors
from engine.retrieval.relevance import everyday_questions, null_scores_of

COSINE = 0.3  # suits mean pooling and chunks of 128 tokens
POOLINGS = ("mean", "cls", "max", "idf")
CHUNK_TOKENS = (64, 128, 256)


Row = dict[str, str | int | float]


def indexes(encoder: Encoder) -> Iterator[tuple[int, Encoder, Index]]:
    """Index the bundled corpus in every way; yield chunk size, encoder and index."""
    documents = load_corpus(BUNDLED_CORPUS)
    for size in CHUNK_TOKENS:
        chunks = [c for d in documents for c in split(d, encoder.tokenizer, Splitting("fixed", size))]
        texts = [chunk.text for chunk in chunks]
        weighted = encoder.with_idf(texts)
        vectors = weighted.encode(texts, list(POOLINGS))
        for pooling in POOLINGS:
            spec = embedding_spec(weighted, pooling)
            idf = weighted.idf if pooling == "idf" else None
            yield size, weighted, index_vectors(chunks, vectors[pooling], spec, idf)


def best_scores(index: Index, encoder: Encoder, questions: list[str]) -> Array:
    """Return the cosine of each question's best chunk: ``(n_questions,)``."""
    vectors = encoder.encode(questions, index.spec.pooling)
    return index.nearest(vectors, 1)[0][:, 0]


def limits(index: Index, encoder: Encoder) -> dict[str, float]:
    """Return the cosine from which each rule calls a passage of an index relevant."""
    relevance = null_scores_of(index, encoder, everyday_questions()).score_of(DEFAULT_MIN_RELEVANCE)
    return {f"cosine {COSINE}": COSINE, f"relevance {DEFAULT_MIN_RELEVANCE:.0f}": relevance}


def rule_rows() -> list[Row]:
    """Return a row for each chunk size, pooling and rule."""
    labelled = [question.text for question in load_questions()]
    with (BUNDLED_CORPUS.parent / "unanswerable.csv").open(encoding="utf-8", newline="") as file:
        unanswerable = [row["question"] for row in csv.DictReader(file)]
    rows: list[Row] = []
    for size, encoder, index in indexes(Encoder.load()):
        answerable_scores = best_scores(index, encoder, labelled)
        unanswerable_scores = best_scores(index, encoder, unanswerable)
        for rule, limit in limits(index, encoder).items():
            rows.append(
                {
                    "rule": rule,
                    "chunk_tokens": size,
                    "pooling": index.spec.pooling,
                    "limit": limit,
                    "answered": float((answerable_scores >= limit).mean()),
                    "refused": float((unanswerable_scores < limit).mean()),
                }
            )
    return rows


def run(arguments: Namespace) -> Result:
    """Measure the rules; the fixed cosine is the peer."""
    by_rule: dict[str, list[Row]] = {}
    for row in rule_rows():
        by_rule.setdefault(str(row["rule"]), []).append(row)
    fixed, ours = by_rule.values()
    return {
        "workload": "310 labelled and 20 unanswerable questions, bundled corpus, by pooling and chunk size",
        "ours": {"rows": ours},
        "peers": {"fixed cosine": {"rows": fixed}},
    }


def table(result: Result) -> Table:
    """Tabulate the shares answered and refused under each rule, a row for each pooling and chunk size."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in [*result["peers"]["fixed cosine"]["rows"], *result["ours"]["rows"]]:
        setting = cells.setdefault((row["pooling"], str(row["chunk_tokens"])), {})
        setting[row["rule"]] = f"{row['answered']:.0%} / {row['refused']:.0%}"
    rules = list(next(iter(cells.values())))
    rows = [[*setting, *(by_rule[rule] for rule in rules)] for setting, by_rule in cells.items()]
    return Table(["pooling", "chunk tokens", *(f"{rule}, answered / refused" for rule in rules)], rows)


EXPLANATION = """\
By default a passage is relevant where at most 10 of 100 unrelated questions find one as close."""
BENCHMARK = Benchmark(__doc__, run, table, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
