"""Follow-up questions: ``python -m benchmarks.follow_ups [--json]``.

Questions of conversations ("And in 2022?"), asked as typed, with the topic where they need one, and as a
person wrote them out.
"""

import csv
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import PAGES, figures_of, index_of, interval
from benchmarks.command import Benchmark, Result, Table
from benchmarks.processes import say
from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS
from engine.documents.splitters import DEFAULT_SPLITTING
from engine.evaluation.answers import ANSWER_METRICS, AnswerQuestion, AnswerRow, ShortAnswer, score_answer
from engine.generation.answering import ask
from engine.generation.conversation import Turn, follow_up
from engine.models.reader import shipped_reader
from engine.retrieval.index import Index
from engine.retrieval.relevance import NullScores

FOLLOW_UPS = Path(__file__).parent / "follow_ups.csv"
METRICS = ("found", "right")
AS_TYPED, WITH_TOPIC, BY_HAND = "as typed", "with the topic", "written out by a person"
KINDS = {"follow-ups": True, "complete questions": False}  # whether they need a topic
REPORTED = "report"  # the half of the questions on which nothing was chosen


@dataclass(frozen=True)
class FollowUp:
    """A question of a conversation: the one before, itself, itself written out, and its answer."""

    before: str
    question: AnswerQuestion
    standalone: str

    @property
    def needs_topic(self) -> bool:
        """Whether it cannot be understood without the one before."""
        return self.question.text != self.standalone


def load_follow_ups() -> list[FollowUp]:
    """Read the questions."""
    with FOLLOW_UPS.open(encoding="utf-8", newline="") as file:
        return [
            FollowUp(
                row["before"],
                AnswerQuestion(
                    row["question"], ShortAnswer.parse(row["answer"]), row["document"], half=row["half"]
                ),
                row["standalone"],
            )
            for row in csv.DictReader(file)
        ]


def run(arguments: Namespace) -> Result:
    """Ask every question in three ways."""
    encoder = Encoder.load()
    reader = shipped_reader(encoder)
    indexes = {folder: index_of(folder, encoder, DEFAULT_SPLITTING) for folder in (BUNDLED_CORPUS, PAGES)}
    pages = {path.name for path in PAGES.iterdir()}
    every = [each for each in load_follow_ups() if each.question.half == REPORTED]
    rows: dict[tuple[str, bool], list[AnswerRow]] = {}
    for number, each in enumerate(every, start=1):
        index, null_scores = indexes[PAGES if each.question.document in pages else BUNDLED_CORPUS]
        read, turns = with_topic(each, index, encoder, null_scores)
        for way, text in {AS_TYPED: each.question.text, WITH_TOPIC: read, BY_HAND: each.standalone}.items():
            kept = turns if way == WITH_TOPIC else ()
            answer = ask(text, index, encoder, null_scores=null_scores, turns=kept, reader=reader)
            scored = score_answer(each.question, answer, 0.0)
            rows.setdefault((way, each.needs_topic), []).append(scored)
        say(f"{number} of {len(every)}")
    return {
        "workload": f"{len(every)} questions of conversations, {encoder.name}",
        "ours": {},
        "peers": {
            way: {REPORTED: {name: figures_of(rows[way, needs]) for name, needs in KINDS.items()}}
            for way in (AS_TYPED, WITH_TOPIC, BY_HAND)
        },
    }


def with_topic(
    each: FollowUp, index: Index, encoder: Encoder, null_scores: NullScores
) -> tuple[str, tuple[Turn, ...]]:
    """Ask the question before, and return what the next one is read as."""
    before = ask(each.before, index, encoder, null_scores=null_scores, reader=shipped_reader(encoder))
    turn = Turn(each.before, before.shown_text)
    return follow_up(each.question.text, [turn], index, encoder, null_scores)


def table(result: Result) -> Table:
    """Tabulate the half to report: a row for each kind of question and way to ask it."""
    rows = [
        [f"{kind}, {way}", *(interval(figures[REPORTED][kind], name) for name in METRICS)]
        for kind, needs_topic in KINDS.items()
        for way, figures in result["peers"].items()
        if needs_topic or way != BY_HAND
    ]
    return Table(["half to report", *(ANSWER_METRICS[name].label for name in METRICS)], rows)


EXPLANATION = """\
The topic's words find nearly what a person's own wording finds."""
BENCHMARK = Benchmark(__doc__, run, table, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
