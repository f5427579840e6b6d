"""Answers in a few words: ``python -m benchmarks.reader [--squad FILE …] [--gemma FILE] [--fit] [--json]``.

The words that the reader takes from the product's own four passages, and how well its confidence tells right
from wrong.

Without files, the bundled questions, whose first half settings were chosen on. Each file of SQuAD's format
is a corpus of its articles; of it ``--questions`` with an answer are drawn, as many without, and half as many
that are about the articles of another set. ``--fit`` computes the weights of the confidence
(`engine.generation.confidence`) from the first file and the bundled half to choose on, and reports all sets
with them.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np

from benchmarks.answers import confidence_weights
from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Decoder, Encoder
from engine.documents.document import Document
from engine.documents.loaders import load_corpus
from engine.documents.splitters import split
from engine.evaluation.answers import AnswerQuestion, ShortAnswer, load_answer_questions
from engine.generation.answer import Answer
from engine.generation.answering import ask
from engine.generation.confidence import (
    DEFAULT_ANSWER_THRESHOLD,
    READING_WEIGHTS,
    confidence_of,
    reading_figures,
)
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.layers.tracing import Array
from engine.models.reader import Reader
from engine.retrieval.index import build_index
from engine.retrieval.relevance import null_scores_of
from engine.training.reading.articles import read_squad

# Every passage is read, and everything shown: what is refused is counted here, by the confidence.
SETTINGS = AnswerSettings(SearchSettings(min_relevance=0), answer_threshold=0, refuse_threshold=0)
RIGHT_F1 = 0.5  # of words that count as the right answer
NEAR, OTHER = "near", "another subject"
PEER_TOKENS = 16  # of a language model's answer
EXAMPLES = (
    ("The mill was built in 1874 by two brothers.", "When was the mill built?", "1874"),
    ("Anna Lind led the society until 1931.", "Who led the society until 1931?", "Anna Lind"),
    ("A seat costs $12.50, and $9 for members.", "What do members pay for a seat?", "$9"),
    ("The river rises in the Hale Hills.", "Who painted the bridge over the river?", "not answered"),
)


@dataclass(frozen=True)
class Asked:
    """A question, its right answers (none where the documents hold none), and its kind."""

    text: str
    answers: tuple[ShortAnswer, ...]
    kind: str = ""

    def f1(self, text: str) -> float:
        """F1 of the words of a text with the answer that is nearest to it."""
        return max((answer.f1(text) for answer in self.answers), default=0.0)


@dataclass(frozen=True)
class Read:
    """A question and what the reader made of it."""

    asked: Asked
    answer: Answer

    @property
    def f1(self) -> float:
        """F1 of the reader's words."""
        return self.asked.f1(self.answer.spans[0].text) if self.answer.spans else 0.0

    @property
    def is_right(self) -> bool:
        """Whether the reader's words are the answer, or nearly."""
        return self.f1 >= RIGHT_F1

    @property
    def figures(self) -> dict[str, float]:
        """What its confidence depends on."""
        return reading_figures(self.answer.spans, self.answer.evidence)


def squad_set(path: Path, n: int) -> tuple[list[Document], list[Asked]]:
    """Return the articles of a file of SQuAD's format, ``n`` questions with an answer and ``n`` without."""
    articles, rng = read_squad(path), np.random.default_rng(0)
    answered, near = [], []
    for article in articles:
        for question in article.questions:
            if question.span is None:
                near.append(Asked(question.text, (), NEAR))
            else:
                answers = tuple(ShortAnswer(((words,),)) for words in question.answers)
                answered.append(Asked(question.text, answers))
    drawn = [[found[i] for i in rng.permutation(len(found))[:n]] for found in (answered, near)]
    return [article.document for article in articles], drawn[0] + drawn[1]


def bundled_set(half: str) -> tuple[list[Document], list[Asked]]:
    """Return the bundled documents and half of their questions."""

    def asked(question: AnswerQuestion) -> Asked:
        kind = "" if question.answer else NEAR
        return Asked(question.text, (question.answer,) if question.answer else (), kind)

    return load_corpus(), [asked(q) for q in load_answer_questions() if q.half == half]


def read_set(
    documents: Sequence[Document], questions: Sequence[Asked], encoder: Encoder, reader: Reader
) -> list[Read]:
    """Answer questions about documents, with the settings of the app but for `SETTINGS`."""
    chunks = [chunk for document in documents for chunk in split(document, encoder.tokenizer)]
    index = build_index(chunks, encoder, documents=documents)
    null_scores = null_scores_of(index, encoder)
    return [
        Read(asked, ask(asked.text, index, encoder, None, SETTINGS, null_scores, reader=reader))
        for asked in questions
    ]


def auc(above: Sequence[float], below: Sequence[float]) -> float | None:
    """Return how often a value of the first list is above one of the second; None where one is empty."""
    if not above or not below:
        return None
    differences = np.subtract.outer(np.array(above), np.array(below))
    return float(np.mean((differences > 0) + 0.5 * (differences == 0)))


def figures_of(rows: Sequence[Read], weights: Mapping[str, float]) -> Result:
    """Return the figures of a set: those of questions with an answer, of refusals, and of the confidence."""
    rows = [row for row in rows if row.answer.spans]
    answerable = [row for row in rows if row.asked.answers]
    short = [row for row in rows if row.answer.best_span]
    confidence = {id(row): confidence_of(row.figures, dict(weights)) for row in short}
    shown = [row for row in short if confidence[id(row)] >= DEFAULT_ANSWER_THRESHOLD]
    of_kind = {
        kind: [confidence[id(row)] for row in short if row.asked.kind == kind and not row.asked.answers]
        for kind in (NEAR, OTHER)
    }
    sure = [confidence[id(row)] for row in short if row.asked.answers]
    right = np.array([row.is_right for row in short])
    return {
        "n_questions": len(rows),
        "f1": mean(row.f1 for row in answerable),
        "exact": mean(row.f1 == 1 for row in answerable),
        "answered_right": sum(row.is_right for row in shown) / len(answerable),
        "wrong_confident": sum(not row.is_right for row in shown) / len(rows),
        "auc_near": auc(sure, of_kind[NEAR]),
        "auc_other": auc(sure, of_kind[OTHER]),
        "calibration_error": calibration_error(np.array(list(confidence.values())), right),
        "reader_s": median(row.answer.timed.reader_s for row in rows),
    }


def tenths(confidence: Array, right: Array) -> list[list[float]]:
    """Return for each tenth of the confidence that occurs its mean, the share that is right, and its size."""
    places = np.minimum((10 * confidence).astype(int), 9)
    return [
        [float(confidence[own].mean()), float(right[own].mean()), int(own.sum())]
        for own in (places == tenth for tenth in range(10))
        if own.any()
    ]


def calibration_error(confidence: Array, right: Array) -> float:
    """Return the mean distance of confidence and share that is right, over `tenths` by their sizes."""
    return sum(n * abs(sure - share) for sure, share, n in tenths(confidence, right)) / len(confidence)


def fitted(rows: Sequence[Read]) -> dict[str, float]:
    """Compute the weights of the confidence from a set that is read."""
    short = [row for row in rows if row.answer.best_span]
    return confidence_weights([row.figures for row in short], [row.is_right for row in short])


def peer_answer(decoder: Decoder, question: str, passages: Sequence[str]) -> str:
    """Have a language model answer in a few words from passages, after four examples."""
    asked = (*EXAMPLES, ("\n\n".join(passages), question, ""))
    prompt = "\n\n".join(f"Text: {text}\nQuestion: {each}\nAnswer: {answer}" for text, each, answer in asked)
    ids = decoder.prompt_ids(prompt.rstrip())
    written = "".join(token.text for token in decoder.generate(ids, PEER_TOKENS))
    return written.strip().split("\n")[0].rstrip(".")


def run(arguments: Namespace) -> Result:
    """Read all sets with the reader, and some questions of each with the language models."""
    encoder = Encoder.load()
    reader = Reader.load(encoder=encoder)
    sets = {path.name: squad_set(path, arguments.questions) for path in arguments.squad}
    sets |= {f"bundled, half to {name}": bundled_set(half) for name, half in HALVES.items()}
    read: dict[str, list[Read]] = {}
    for name, (documents, questions) in sets.items():
        # The bundled halves are about the same documents.
        foreign = [each for other, each in sets.items() if other.split(",")[0] != name.split(",")[0]]
        unrelated = foreign[0][1] if foreign else []
        other = [Asked(each.text, (), OTHER) for each in unrelated if each.answers]
        say(f"{name}: {len(questions)} questions")
        read[name] = read_set(documents, [*questions, *other[: arguments.questions // 2]], encoder, reader)
    chosen_on = (next(iter(read)), f"bundled, half to {CHOSEN}")
    weights = READING_WEIGHTS
    if arguments.fit:
        weights = fitted([row for name in dict.fromkeys(chosen_on) for row in read[name]])
    peers = {"SmolLM2-135M-Instruct": "SmolLM2-135M-Instruct"}
    if arguments.gemma:
        peers["Gemma 3 270M"] = str(arguments.gemma)
    found: Result = {
        "workload": f"{sum(map(len, read.values()))} questions, four passages each",
        "ours": {name: figures_of(rows, weights) for name, rows in read.items()},
        "peers": {},
    }
    for peer, source in peers.items() if arguments.peer_questions else ():
        decoder = Decoder.load(source)
        found["peers"][peer] = {
            name: peer_figures(decoder, rows, arguments.peer_questions) for name, rows in read.items()
        }
    return found | ({"fit": weights} if arguments.fit else {})


def peer_figures(decoder: Decoder, rows: Sequence[Read], n: int) -> Result:
    """Return F1 and exact match of a language model on the first questions with an answer."""
    answerable = [row for row in rows if row.asked.answers and row.answer.spans][:n]
    f1 = []
    for row in answerable:
        passages = [hit.chunk.text for hit in row.answer.retrieved.hits]
        f1.append(row.asked.f1(peer_answer(decoder, row.asked.text, passages)))
    return {
        "n_questions": len(answerable),
        "f1": mean(f1),
        "exact": mean(value == 1 for value in f1),
        "f1_of_the_reader": mean(row.f1 for row in answerable),
    }


CHOSEN = "choose on"
HALVES = {CHOSEN: "tune", "report": "report"}
FIGURES = {
    "F1": "f1",
    "exact match": "exact",
    "answered and right": "answered_right",
    "wrong and confident": "wrong_confident",
    "AUC against near": "auc_near",
    "AUC against another subject": "auc_other",
    "calibration error": "calibration_error",
}


def table(result: Result) -> Table:
    """Tabulate the figures, a column for each set; below, the language models on their share of questions."""
    columns = result["ours"]
    rows = [
        [label, *("" if each[key] is None else f"{each[key]:.3f}" for each in columns.values())]
        for label, key in FIGURES.items()
    ]
    rows.append(
        ["milliseconds of the reader", *(f"{1000 * each['reader_s']:.0f}" for each in columns.values())]
    )
    for peer, by_set in result["peers"].items():
        cells = [
            f"{each['f1']:.3f} (reader {each['f1_of_the_reader']:.3f}) of {each['n_questions']}"
            for each in by_set.values()
        ]
        rows.append([f"F1 of {peer}", *cells])
    none = [""] * (len(columns) - 1)
    rows += [[f"weight: {name}", f"{value:.3f}", *none] for name, value in result.get("fit", {}).items()]
    return Table(["", *columns], rows)


def add_options(parser: ArgumentParser) -> None:
    """Add the files and the sizes."""
    parser.add_argument("--squad", type=Path, nargs="*", default=[], help="files of SQuAD's format")
    parser.add_argument("--questions", type=int, default=200, help="with an answer, of each file")
    parser.add_argument(
        "--peer-questions", type=int, default=40, help="that language models answer, 0 for none"
    )
    parser.add_argument("--gemma", type=Path, help="a GGUF file of Gemma 3 270M")
    parser.add_argument("--fit", action="store_true", help="compute the weights of the confidence anew")


BENCHMARK = Benchmark(__doc__, run, table, add_options=add_options)


if __name__ == "__main__":
    BENCHMARK.main()
