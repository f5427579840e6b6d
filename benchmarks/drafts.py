"""Drafted questions and labels: ``python -m benchmarks.drafts PATH … [--n 60] [--cache FOLDER] [--json]``.

Settings of a search, ordered by unread drafts of questions and by labelled questions about the same
documents.

A PATH is a file of SQuAD's format, whose articles are divided among ``--corpora`` corpora; a folder in BEIR's
format (such as Cranfield), the documents that answer its first 60 questions; or a folder of documents (*.md)
with their labelled questions (*questions.csv), each document a corpus. ``--order FILE`` writes the mean of
each setting over the corpora, which the app shows with drafts.
"""

import csv
import json
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Decoder, Encoder
from engine.documents.document import Document
from engine.documents.sentences import sentence_spans
from engine.evaluation.beir import as_collection, load_beir
from engine.evaluation.drafts import draft_questions
from engine.evaluation.questions import Question, Reference, load_questions, stem, to_jsonl, to_question
from engine.evaluation.sweep import SweepInputs, sweep
from engine.layers.tracing import Array
from engine.models.reader import shipped_reader
from engine.retrieval.vector_cache import VectorCache
from engine.settings import Configuration
from engine.training.reading.articles import Article, read_squad

SIZES = (64, 96, 128, 192, 256)
ARMS = (("dense", "mean"), ("dense", "cls"), ("bm25", "mean"), ("hybrid", "mean"), ("weighted", "mean"))
ORDERED = ("splitter", "chunk_tokens", "retriever", "pooling")
METRIC = "mrr"
JUDGED = 60  # questions of a folder in BEIR's format
SEPARATED = 1.96  # standard errors of the paired difference
N_SPLITS = 100


def configurations() -> list[Configuration]:
    """Sentences in 5 sizes by 5 ways of search, and a fixed size by 3."""
    cells = [("sentences", size, *arm) for size in SIZES for arm in ARMS]
    cells += [("fixed", 128, *arm) for arm in ARMS if arm[0] != "weighted" and arm[1] != "cls"]
    return [Configuration(splitter=a, chunk_tokens=b, retriever=c, pooling=d) for a, b, c, d in cells]


def is_compared(one: Configuration) -> bool:
    """Whether a setting is one of the 16 that are compared: the default, and others that differ enough."""
    far = one.chunk_tokens in (64, 128, 256) and one.retriever != "weighted"
    return far or one == Configuration()


@dataclass(frozen=True)
class Corpus:
    """Documents with labelled questions."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def corpora(path: Path, n_articles: int, most: int, n_questions: int) -> Iterator[Corpus]:
    """Yield the corpora of a path, each with at most so many questions."""
    if path.is_file():
        articles, name = read_squad(path), path.name.split(".")[0]
        random.Random(0).shuffle(articles)
        for number in range(min(most, len(articles) // n_articles)):
            own = articles[number * n_articles :][:n_articles]
            asked = [question for article in own for question in labelled(article)]
            yield Corpus(
                f"{name} {number + 1}", tuple(one.document for one in own), drawn(asked, n_questions)
            )
    elif (path / "corpus.jsonl").exists():
        found = load_beir(path)
        ids, texts = found.query_ids[:JUDGED], found.questions[:JUDGED]
        judged = {name for number in ids for name, grade in found.qrels[number].items() if grade > 0}
        kept = tuple(document for document in found.documents if document.name in judged)
        one = as_collection(path.name, replace(found, documents=kept, query_ids=ids, questions=texts))
        yield Corpus(path.name, (one.document,), tuple(q for q in one.questions if q.references))
    else:
        every = [
            question for file in sorted(path.glob("*questions.csv")) for question in load_questions(file)
        ]
        for file in sorted(path.glob("*.md")):
            if asked := [question for question in every if question.corpus_id == file.stem]:
                document = Document(file.name, file.read_text("utf-8"))
                yield Corpus(file.stem, (document,), drawn(asked, n_questions))


def labelled(article: Article) -> list[Question]:
    """Return the questions of an article with the sentence that holds the answer."""
    text, found = article.document.text, []
    sentences = [(start, start + len(text[start:end].rstrip())) for start, end in sentence_spans(text)]
    for question in article.questions:
        if question.span:
            start, end = next(one for one in reversed(sentences) if one[0] <= question.span[0])
            reference = Reference(text[start:end], start, end)
            found.append(Question(question.text.strip(), stem(article.document.name), (reference,)))
    return found


def drawn(questions: Sequence[Question], n: int) -> tuple[Question, ...]:
    """Draw so many questions."""
    return tuple(random.Random(0).sample(list(questions), min(n, len(questions))))


def measured(corpus: Corpus, questions: Sequence[Question], encoder: Encoder, cache: VectorCache) -> Array:
    """Return the metric of every setting and question, ``(n_settings, n_questions)``."""
    every = configurations()
    inputs = SweepInputs(corpus.documents, questions, every, {encoder.name: encoder})
    rows = {row.configuration: row for row in sweep(inputs, cache)}
    return np.array([rows[one].values[METRIC] for one in every])


def drafted(corpus: Corpus, n: int, folder: Path | None, decoder: Decoder) -> tuple[list[Question], float]:
    """Draft questions, and return those with an answer and the seconds; a folder keeps them."""
    file = folder / f"{corpus.name}.drafts.jsonl" if folder else None
    if file and file.exists():
        *drafts, last = map(json.loads, file.read_text("utf-8").splitlines())
        return [to_question(each, str(file)) for each in drafts], last["seconds"]
    start = perf_counter()
    drafts = list(draft_questions(corpus.documents, n, 0, decoder, shipped_reader()))
    seconds = perf_counter() - start
    drafts = [each for each in drafts if each.references]
    if file:
        file.write_text(to_jsonl(drafts) + json.dumps({"seconds": seconds}) + "\n", "utf-8")
    return drafts, seconds


def tau(one: Array, other: Array) -> float:
    """Kendall's correlation of two orders of settings."""
    return float(kendalltau(np.round(one, 6), np.round(other, 6)).statistic)


def separated(values: Array) -> list[tuple[int, int]]:
    """Return the pairs of settings, the better first, whose paired difference is above chance."""
    found = []
    for one, other in combinations(range(len(values)), 2):
        difference = values[one] - values[other]  # (n_questions,)
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        if abs(difference.mean()) > SEPARATED * error:
            found.append((one, other) if difference.mean() > 0 else (other, one))
    return found


def words_minus_vectors(means: Array) -> float:
    """Return the mean of BM25 minus that of dense search, over the sizes."""
    cells = configurations()
    own = {
        retriever: [means[i] for i, one in enumerate(cells) if is_arm(one, retriever)]
        for retriever in ("bm25", "dense")
    }
    return float(np.mean(own["bm25"]) - np.mean(own["dense"]))


def is_arm(one: Configuration, retriever: str) -> bool:
    """Whether a setting searches so, with mean pooling, in sentences."""
    return (one.splitter, one.pooling, one.retriever) == ("sentences", "mean", retriever)


def agreement(labels: Array, drafts: Array, others: Array) -> dict[str, Any]:
    """Compare drafts with labels, ``(n_settings, n_questions)`` each, and with the means of other corpora."""
    cells = configurations()
    kept = [place for place, one in enumerate(cells) if is_compared(one)]
    rng = np.random.default_rng(0)
    mine, theirs, fixed = labels[kept].mean(axis=1), drafts[kept].mean(axis=1), others[kept]
    pairs = separated(drafts[kept])
    halves = []
    for _ in range(N_SPLITS):
        order = rng.permutation(labels.shape[1])
        halves.append(tau(*(labels[kept][:, half].mean(axis=1) for half in (order[::2], order[1::2]))))
    return {
        "n_labels": labels.shape[1],
        "n_drafts": drafts.shape[1],
        "tau": tau(mine, theirs),
        "tau_halves": float(np.mean(halves)),
        "tau_fixed": tau(mine, fixed),
        "pairs": len(pairs),
        "pairs_right": sum(bool(mine[a] > mine[b]) for a, b in pairs),
        "pairs_right_fixed": sum(bool((fixed[a] > fixed[b]) == (mine[a] > mine[b])) for a, b in pairs),
        "bm25_minus_dense": words_minus_vectors(labels.mean(axis=1)),
        "bm25_minus_dense_drafts": words_minus_vectors(drafts.mean(axis=1)),
    }


def run(options: Namespace) -> Result:
    """Measure the corpora of all paths."""
    encoder, decoder, folder = Encoder.load(), Decoder.load(), options.cache
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    values: dict[str, tuple[Array, Array]] = {}
    seconds = {}
    for path in options.paths:
        for corpus in corpora(path, options.articles, options.corpora, options.questions):
            cache = VectorCache(folder / f"{corpus.name}.sqlite" if folder else None)
            made, seconds[corpus.name] = drafted(corpus, options.n, folder, decoder)
            asked = measured(corpus, [*corpus.questions, *made], encoder, cache)
            values[corpus.name] = asked[:, : len(corpus.questions)], asked[:, len(corpus.questions) :]
            say(f"{corpus.name}: {len(made)} drafts in {seconds[corpus.name]:.0f} s")
    means = {name: labels.mean(axis=1) for name, (labels, _) in values.items()}
    place = configurations().index(Configuration())
    gains = {name: own - own[place] for name, own in means.items()}  # over the default
    if options.order:
        write_order(options.order, np.array(list(gains.values())))
    rows = {}
    for name, (labels, drafts) in values.items():
        others = np.mean([gains[other] for other in gains if other != name], axis=0)
        rows[name] = agreement(labels, drafts, others) | {"seconds": seconds[name]}
    every = list(rows.values())
    totals = {key: float(np.mean([row[key] for row in every])) for key in every[0]}
    totals |= {key: sum(row[key] for row in every) for key in ("pairs", "pairs_right", "pairs_right_fixed")}
    return {
        "workload": f"{len(rows)} labelled corpora, {options.n} drafts each, 16 settings by MRR",
        "ours": rows | {"all": totals},
    }


def write_order(path: Path, gains: Array) -> None:
    """Write the mean gain of each setting over the default, of corpora ``(n_corpora, n_settings)``."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*ORDERED, "gain", "n_corpora"])
        for one, gain in sorted(zip(configurations(), gains.T, strict=True), key=lambda row: -row[1].mean()):
            table.writerow([*(getattr(one, key) for key in ORDERED), f"{gain.mean():.3f}", len(gain)])


def table(result: Result) -> Table:
    """The corpora where the two orders agree least and most, and the mean of all."""
    found = dict(result["ours"])
    every = found.pop("all")
    order = sorted(found, key=lambda name: found[name]["tau"])
    shown = {f"lowest: {order[0]}": found[order[0]], f"highest: {order[-1]}": found[order[-1]], "all": every}
    rows = []
    for name, row in shown.items():
        share = [row[key] / max(1, row["pairs"]) for key in ("pairs_right", "pairs_right_fixed")]
        taus = [f"{row[key]:.2f}" for key in ("tau", "tau_halves", "tau_fixed")]
        rows.append([name, *taus, f"{row['pairs']}", *(f"{each:.0%}" for each in share)])
    return Table(["", "tau", "halves", "fixed", "pairs", "right", "right, fixed"], rows)


def add_options(parser: ArgumentParser) -> None:
    """Add the paths and sizes."""
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--n", type=int, default=60, help="drafts of a corpus")
    parser.add_argument(
        "--articles", type=int, default=5, help="of a corpus made of a file of SQuAD's format"
    )
    parser.add_argument("--corpora", type=int, default=3, help="made of such a file, at most")
    parser.add_argument("--questions", type=int, default=150, help="labelled ones of a corpus, at most")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors and drafts")
    parser.add_argument("--order", type=Path, help="write the mean gain of each setting to this file, CSV")


EXPLANATION = """\
*tau* is Kendall's correlation of the orders by drafts and by labels, *halves* that of two halves of the
labels, *fixed* that of the labels and the mean order on the other corpora. *Pairs* differ by the drafts,
*right* where labels order them alike. Drafts order settings no better than the fixed order, so they
recommend nothing."""

BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options, explanation=EXPLANATION)

if __name__ == "__main__":
    BENCHMARK.main()
