"""Drafted questions and labels: ``python -m benchmarks.drafts PATH … [--n 60] [--cache FOLDER] [--json]``.

Settings of a search, ordered by unread drafts of questions and by labelled questions about the same
documents.

A PATH is a file of SQuAD's format, whose articles are divided among ``--corpora`` corpora; a folder in BEIR's
format (such as Cranfield), the documents that answer its first questions; or a folder of documents (*.md)
with their labelled questions (*questions.csv), each document a corpus. ``--order FILE`` writes what
the app knows of settings on other corpora.
"""

import json
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Decoder, Encoder
from engine.documents.document import Document
from engine.documents.sentences import sentence_spans
from engine.evaluation.beir import as_collection, load_beir
from engine.evaluation.bootstrap import mean_interval
from engine.evaluation.drafts import draft_questions
from engine.evaluation.questions import Question, Reference, load_questions, stem, to_jsonl
from engine.evaluation.setting_order import KEYS, SettingOrder, expected_gains
from engine.evaluation.significance import LEVEL
from engine.evaluation.sweep import SweepInputs, sweep
from engine.layers.tracing import Array
from engine.models.reader import shipped_reader
from engine.retrieval.vector_cache import VectorCache
from engine.settings import Configuration
from engine.training.reading.articles import Article, read_squad

SIZES = (64, 96, 128, 192, 256)
ARMS = (("dense", "mean"), ("dense", "cls"), ("bm25", "mean"), ("hybrid", "mean"), ("weighted", "mean"))
METRICS = ("mrr", "found_at_equal_reading")
SEPARATED = 1.96  # standard errors of the paired difference


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
        ids, texts = found.query_ids[:n_questions], found.questions[:n_questions]
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


def measured(
    corpus: Corpus, questions: Sequence[Question], encoder: Encoder, cache: VectorCache
) -> dict[str, Array]:
    """Return the metrics of every setting and question, ``(n_settings, n_questions)`` each."""
    every = configurations()
    inputs = SweepInputs(corpus.documents, questions, every, {encoder.name: encoder})
    rows = {row.configuration: row for row in sweep(inputs, cache)}
    return {metric: np.array([rows[one].values[metric] for one in every]) for metric in METRICS}


def drafted(corpus: Corpus, n: int, folder: Path | None, decoder: Decoder) -> list[Question]:
    """Draft questions, and return those with an answer; a folder keeps them."""
    file = folder / f"{corpus.name}.drafts.jsonl" if folder else None
    if file and file.exists():
        return load_questions(file)
    made = draft_questions(corpus.documents, n, 0, decoder, shipped_reader())
    drafts = [each for each in made if each.references]
    if file:
        file.write_text(to_jsonl(drafts), "utf-8")
    return drafts


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
    """Return the mean of BM25 minus that of dense search with mean pooling, over the sizes in sentences."""
    arms = [(one.splitter, one.pooling, one.retriever) for one in configurations()]
    own = (means[[arm == ("sentences", "mean", name) for arm in arms]] for name in ("bm25", "dense"))
    return float(np.subtract(*(each.mean() for each in own)))


def deviations(values: Array) -> Array:
    """Return the mean of each setting minus that of all, ``(n_settings,)``."""
    means: Array = values.mean(axis=1)
    return means - means.mean()


def noise(values: Array) -> float:
    """Return the variance between questions of a setting's values, each minus the mean of all settings."""
    n = len(values)
    return float((values - values.mean(axis=0)).var(axis=1, ddof=1).mean() * n / (n - 1))


def fitted(known: Sequence[tuple[Array, Array]]) -> SettingOrder:
    """Fit the order of settings to the values of labels and of drafts on corpora, by moments."""
    gains, drafted = (np.array([deviations(pair[n]) for pair in known]) for n in (0, 1))
    added = drafted - gains  # (n_corpora, n_settings)
    question = float(np.mean([noise(values) for pair in known for values in pair]))
    of_labels, of_drafts = (question * np.mean([1 / pair[n].shape[1] for pair in known]) for n in (0, 1))
    between = gains.var(axis=0, ddof=1).mean() - of_labels
    off = added.var(axis=0, ddof=1).mean() - of_labels - of_drafts
    cells, gain, more = configurations(), gains.mean(axis=0), added.mean(axis=0)
    place = cells.index(Configuration())
    order = {
        one: (float(a - gain[place]), float(b - more[place]))
        for one, a, b in zip(cells, gain, more, strict=True)
    }
    return SettingOrder(order, len(known), max(float(between), 1e-6), max(float(off), 0.0), question)


def clearly(drafts: Array, cells: Sequence[Configuration], order: SettingOrder) -> list[tuple[int, int]]:
    """Return the pairs of settings, the better first, of which one is said to be clearly worse."""
    found, are_drafts = [], np.ones(drafts.shape[1], bool)
    for one in range(len(cells)):
        every = expected_gains([cells[one], *cells], drafts[[one, *range(len(cells))]], are_drafts, order)
        found += [
            (one, n) for n, each in enumerate(every[1:]) if each.difference < 0 and each.p_value < LEVEL
        ]
    return found


def agreement(labels: Array, drafts: Array, order: SettingOrder) -> dict[str, Any]:
    """Compare what drafts make one expect with labels, ``(n_settings, n_questions)`` each.

    The ``order`` is fitted to other corpora.
    """
    cells = configurations()
    kept = [place for place, one in enumerate(cells) if is_compared(one)]
    mine, theirs = labels.mean(axis=1), drafts.mean(axis=1)
    fixed, moved = (
        expected_gains(cells, values, np.ones(values.shape[1], bool), order)
        for values in (drafts[:, :0], drafts)
    )
    before, after = (np.array([one.difference for one in each]) for each in (fixed, moved))
    pairs = separated(drafts[kept])
    surely = clearly(drafts[kept], [cells[place] for place in kept], order)
    rng, halves = np.random.default_rng(0), []
    for _ in range(100):
        places = rng.permutation(labels.shape[1])
        halves.append(tau(*(labels[kept][:, half].mean(axis=1) for half in (places[::2], places[1::2]))))
    own = mine[kept]
    return {
        "n_labels": labels.shape[1],
        "n_drafts": drafts.shape[1],
        "tau_drafts": tau(own, theirs[kept]),
        "tau_fixed": tau(own, before[kept]),
        "tau": tau(own, after[kept]),
        "tau_halves": float(np.mean(halves)),
        "pairs_drafts": len(pairs),
        "right_drafts": sum(bool(own[a] > own[b]) for a, b in pairs),
        "pairs": len(surely),
        "right": sum(bool(own[a] > own[b]) for a, b in surely),
        "words_labels": words_minus_vectors(mine),
        "words_drafts": words_minus_vectors(theirs),
        "words": words_minus_vectors(after),
        "words_off": abs(words_minus_vectors(after) - words_minus_vectors(mine)),
        "regret": float(own.max() - own[after[kept].argmax()]),
        "gain": float(own[after[kept].argmax()] - own[before[kept].argmax()]),
    }


def run(options: Namespace) -> Result:
    """Measure the corpora of all paths."""
    encoder, decoder, folder = Encoder.load(), Decoder.load(), options.cache
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    values: dict[str, dict[str, tuple[Array, Array]]] = {metric: {} for metric in METRICS}
    for path in options.paths:
        for corpus in corpora(path, options.articles, options.corpora, options.questions):
            cache = VectorCache(folder / f"{corpus.name}.sqlite" if folder else None)
            made = drafted(corpus, options.n, folder, decoder)
            n = len(corpus.questions)
            for metric, found in measured(corpus, [*corpus.questions, *made], encoder, cache).items():
                values[metric][corpus.name] = found[:, :n], found[:, n:]
            say(f"{corpus.name}: {len(made)} drafts")
    if options.order:
        orders = {metric: fitted(list(of.values())) for metric, of in values.items()}
        options.order.write_text(to_json(orders), "utf-8")
    rows, at_equal_reading = (compared(values[metric]) for metric in METRICS)
    n = len(rows) - 1
    return {
        "workload": f"{n} labelled corpora, {options.n} drafts each, 16 settings by MRR",
        "ours": rows | {"all, found in 1,024 tokens": at_equal_reading["all"]},
    }


def compared(values: dict[str, tuple[Array, Array]]) -> dict[str, dict[str, Any]]:
    """Return the `agreement` on each corpus, with the order of the others, and that on all, by name."""
    rows = {
        name: agreement(*own, fitted([both for other, both in values.items() if other != name]))
        for name, own in values.items()
    }
    every = list(rows.values())
    totals = {key: float(np.nanmean([row[key] for row in every])) for key in every[0]}
    totals |= {key: sum(row[key] for row in every) for key in every[0] if key.startswith(("pairs", "right"))}
    gain = mean_interval(np.array([row["gain"] for row in every]))
    return rows | {"all": totals | {"gain_low": gain.low, "gain_high": gain.high}}


def to_json(orders: dict[str, SettingOrder]) -> str:
    """Return orders of settings as the engine reads them."""
    found = {}
    for metric, order in orders.items():
        rows = [[*(getattr(one, key) for key in KEYS), *np.round(own, 4)] for one, own in order.gains.items()]
        numbers = {key: round(getattr(order, key), 5) for key in ("n_corpora", "between", "off", "question")}
        found[metric] = numbers | {"settings": sorted(rows, key=lambda row: -row[-2])}
    return json.dumps(found).replace("[[", "[\n[").replace("], [", "],\n[") + "\n"


def table(result: Result) -> Table:
    """Each corpus, and all of them."""
    rows = []
    for name, row in result["ours"].items():
        taus = [f"{row[key]:.2f}" for key in ("tau_halves", "tau_fixed", "tau_drafts", "tau")]
        pairs = [
            f"{row[right]} of {row[pairs]}, {row[right] / max(1, row[pairs]):.0%}"
            for right, pairs in (("right_drafts", "pairs_drafts"), ("right", "pairs"))
        ]
        words = [f"{row[key]:+.2f}" for key in ("words_labels", "words_drafts", "words")]
        words.append(f"{row['words_off']:.2f}")
        gain = f"{row['gain']:+.3f}"
        if "gain_low" in row:
            gain += f" [{row['gain_low']:+.3f}, {row['gain_high']:+.3f}]"
        rows.append([name, *taus, *pairs, *words, gain])
    return Table([*AGREEMENT, *DIFFERENCES], rows)


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
    parser.add_argument("--order", type=Path, help="write the order of settings to this file, JSON")


AGREEMENT = ("", "tau: halves", "fixed", "drafts", "both", "pairs right: drafts", "both")
DIFFERENCES = ("BM25 − dense: labels", "drafts", "both", "off", "gain over fixed")
EXPLANATION = """\
*tau* is Kendall's correlation with the order by the labels: of their *halves* with each other, of the *fixed*
order, that of the labels of the other corpora, of unread *drafts* alone, and of *both*, the fixed order moved
by the drafts, as the app shows it. *Pairs* are those said to differ, *right* where labels order them alike;
*off* is how far the difference of BM25 and dense search is from the labels'. The fixed order does most of the
work: drafts move it towards some corpora and away from others, and what both put first gains nothing over
what it puts first. So they tell what is clearly worse, and recommend nothing."""

BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options, explanation=EXPLANATION)

if __name__ == "__main__":
    BENCHMARK.main()
