"""From a wrong answer to its cause, by evidence, and to its cure, by asking again with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from ...documents.document import Failure
from ...evaluation.answers import ShortAnswer
from ...generation.answer import Answer
from ...generation.answer_json import found_answer_json
from ...generation.conversation import Turn
from ...wording import counted
from .asking import CUTTING, Searched, is_right, says, touches
from .chain import Chain, Link, chain_of, given_hit
from .location import Location, locate
from .suspects import Case, Cause, Cure, Suspect, in_words_of_passage, lowered, quoting_passage, suspects
from .table_rows import heads_place, scattered

NONE_NEEDED = "The right answer is given now."
NOT_READ = "None of the documents holds this text."
MOST_LISTED = 4  # notes of files


@dataclass(frozen=True)
class Trial:
    """An answer with a cure, whether it is right, and what it took."""

    cure: Cure
    answer: Answer
    is_right: bool
    seconds: float
    n_chunks: int


@dataclass(frozen=True)
class Diagnosis:
    """The cause of an answer, the links that show it, and the best cure that was tried."""

    question: str
    place: Location | None
    cause: Cause
    sentence: str
    before: Answer
    chain: Chain
    settings: Mapping[str, Any]
    n_chunks: int
    # None where no cure was tried; gives the right answer only if `Trial.is_right`
    trial: Trial | None = None
    n_tried: int = 0
    is_unfinished: bool = False  # whether cures were left out

    def to_json(self) -> dict[str, Any]:
        """Return it for the command line."""
        trial = self.trial
        cure = None
        if trial is not None:
            cure = {
                "words": trial.cure.words(self.settings),
                "settings": dict(trial.cure.settings),
                "question": trial.cure.question or self.question,
                "gives_right_answer": trial.is_right,
                "seconds": round(trial.seconds, 3),
                "chunks": {"before": self.n_chunks, "after": trial.n_chunks},
            }
        return {
            "question": self.question,
            "cause": self.cause,
            "sentence": self.sentence,
            "links": [
                {"link": link.name, "holds": link.holds, "evidence": link.evidence, **link.figures}
                for link in self.chain.links
            ],
            "cure": cure,
            "cures_tried": self.n_tried,
            "before": found_answer_json(self.before),
            "after": None if trial is None else found_answer_json(trial.answer),
        }

    @property
    def cure_words(self) -> str:
        """Say what the cure does, or that none that was tried gives the right answer."""
        if self.cause == "none":
            return "None is needed."
        if self.cause == "not_read":
            return "No setting and no wording can give it: add the text, or a file that holds it."
        if self.trial is None:
            return "No cure was tried yet."
        words = self.trial.cure.words(self.settings)
        if self.trial.is_right:
            return f"{words}: the right answer is then given."
        if self.is_unfinished:
            return f"No right answer by the first {counted(self.n_tried, 'cure')}. Nearest: {words}."
        return f"None of {self.n_tried:,} cures that were tried gives the right answer. Next best: {words}."


@dataclass
class Trials:
    """The cures that are tried on a case, each once."""

    question: str
    turns: Sequence[Turn]
    place: Location
    wanted: ShortAnswer
    searched: Searched
    stop: Callable[[], bool]
    done: dict[str, Trial] = field(default_factory=dict)
    cut: dict[tuple[Any, ...], Searched] = field(default_factory=dict)  # by the settings of cutting

    def run(self, cures: Iterable[Cure]) -> Iterator[Trial]:
        """Try cures until one gives the right answer; then those that were refused, with lower thresholds."""
        refused: list[Trial] = []
        for cure in cures:
            if self.stop():
                return
            trial = self.one(cure)
            yield trial
            if trial.is_right:
                return
            if trial.answer.judged.status == "refused":
                refused.append(trial)
        for trial in refused:
            for _ in range(2):  # the relevance of passages, then the confidence in words
                if self.stop():
                    return
                values = {**self.searched.settings, **trial.cure.settings}
                more = lowered(trial.answer, values).settings
                if not more or trial.answer.judged.status != "refused":
                    break
                trial = self.one(replace(trial.cure, settings={**trial.cure.settings, **more}))
                yield trial
                if trial.is_right:
                    return

    def one(self, cure: Cure) -> Trial:
        """Ask with a cure."""
        key = repr(cure)
        if key not in self.done:
            start = perf_counter()
            searched = self.under(cure.settings)
            answer = searched.answer(cure.question or self.question, self.turns)
            right = is_right(answer, self.wanted, self.place)
            took = perf_counter() - start
            self.done[key] = Trial(cure, answer, right, took, len(searched.index.chunks))
        return self.done[key]

    def under(self, changes: Mapping[str, Any]) -> Searched:
        """Return the documents under changed settings, cut once for each way to cut."""
        values = {**self.searched.settings, **changes}
        key = tuple(values[name] for name in CUTTING)
        if key not in self.cut:
            self.cut[key] = self.searched.under(changes)
        return replace(self.cut[key], settings=values)

    @property
    def reach_passage(self) -> bool:
        """Whether the words of a trial are of the passage."""
        read = [trial.answer.reading for trial in self.done.values()]
        return any(words is not None and touches(words, self.place) for words in read)

    @property
    def best(self) -> Trial | None:
        """The trial that comes nearest to the right answer."""
        return max(self.done.values(), key=self.nearness, default=None)

    def nearness(self, trial: Trial) -> tuple[bool, ...]:
        """Order trials by how far the passage comes."""
        answer = trial.answer
        is_quoted = any(touches(quote, self.place) for quote in answer.quotes)
        is_given = given_hit(answer, self.place) is not None
        return trial.is_right, is_quoted and answer.judged.status != "refused", is_quoted, is_given


def diagnose(
    question: str,
    passage: str,
    searched: Searched,
    wanted: ShortAnswer = ShortAnswer(()),  # noqa: B008 (it is frozen)
    turns: Sequence[Turn] = (),
    place: Location | None = None,
    failures: Sequence[Failure] = (),
    may_cut: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> Diagnosis:
    """Find out why a question is not answered from a passage, and try what gives the right answer.

    The documents may have changed a few words of the passage; ``place`` is where it is, if that is known.
    Without the right answer, ``wanted``, words or a sentence of the passage count as right. ``turns`` are the
    conversation before the question, ``failures`` files that may have had the passage. With ``may_cut``,
    cures may cut and embed the documents anew; ``stop`` is called before each cure: once it returns true,
    none is tried.
    """
    documents = list(searched.index.documents.values())
    before = searched.answer(question, turns)
    place = place or place_of(passage, documents, wanted)
    is_found = place is not None and place.how != "approximate"
    heads = None if is_found else heads_place(passage, documents)
    place = place or heads or scattered(passage, documents)
    base = Diagnosis(
        question, place, "none", NONE_NEEDED, before, Chain(()), searched.settings, len(searched.index.chunks)
    )
    if place is None:
        if wanted and before.reading and says(wanted, before.reading.text):
            return replace(base, chain=Chain((Link("read", False, NOT_READ),)))
        return not_read(base, passage, failures, searched)
    chain = chain_of(place, before, searched, wanted)
    # Names of columns answer nothing, nor does a quoted row of bare values, nor a quote below others.
    is_quoted = chain.holds("read") is not False and any(touches(one, place) for one in before.quotes[:1])
    is_told = heads is None and (before.reading is not None or is_quoted)
    if is_told and is_right(before, wanted, place):
        return replace(base, chain=chain)
    text = searched.index.document_text(place.document)[place.start : place.end]
    case = Case(question, turns, place, text, passage, wanted, before, chain, searched)
    trials = Trials(question, turns, place, wanted, searched, stop)
    first: Suspect | None = None
    for suspect in suspects(case, may_cut and bool(searched.documents)):
        first = first or suspect
        is_cured = any(trial.is_right for trial in trials.run(suspect.cures))
        if is_cured or suspect.certain or (suspect.cause == "read_as_follow_up" and trials.reach_passage):
            first = suspect
            break
    assert first is not None, "the last suspicions always stand"
    if not any(trial.is_right for trial in trials.done.values()):
        for _ in trials.run(other_cures(case, first.cures[:1], may_cut and bool(searched.documents))):
            pass
    found = replace(base, cause=first.cause, sentence=first.sentence, chain=chain)
    unfinished = stop() or (bool(searched.documents) and not may_cut)
    return replace(found, trial=trials.best, n_tried=len(trials.done), is_unfinished=unfinished)


def other_cures(case: Case, own: Sequence[Cure], may_cut: bool) -> list[Cure]:
    """Return cures that are tried on top of the cause's ``own`` first one, which gave no right answer."""
    [base] = own or (Cure(),)
    values, asked = case.searched.settings, replace(case, question=base.question or case.question)
    worded = [each.question for one in (asked, case) for each in in_words_of_passage(one)[:1]]
    worded = list(dict.fromkeys(worded))
    ways: list[dict[str, Any]] = [{}, {"k": 10}, {"k": 1}, {"retriever": "bm25"}, {"retriever": "dense"}]
    ways += [{"retriever": "reader"}]
    ways += [{"chunk_tokens": n, "overlap": 0} for n in (64, 32, 256)] * may_cut
    cures = [
        Cure({**base.settings, **way}, question)
        for question in (base.question, *worded)
        for way in ways
        if any(values[k] != v for k, v in way.items()) or question != base.question
    ]
    quoting = (quoting_passage(replace(case, question=each)) for each in (asked.question, *worded))
    return cures + [Cure({**base.settings, **way}, each) for each in quoting for way in ({}, ways[3])]


def place_of(passage: str, documents: Sequence[Any], wanted: ShortAnswer) -> Location | None:
    """Find a passage; a text that is only alike must still hold its numbers, and the answer near it."""
    place = locate(passage, documents)
    if place is None or place.how != "approximate":
        return place
    [text] = [document.text for document in documents if document.name == place.document]
    around, numbers = place.around(text), [word for word in passage.split() if any(map(str.isdigit, word))]
    is_same = wanted.is_in(around) if wanted else all(number in around for number in numbers)
    return place if is_same else None


def not_read(base: Diagnosis, passage: str, failures: Sequence[Failure], searched: Searched) -> Diagnosis:
    """Return the diagnosis of a passage that is in no document, with what reading left out of the files."""
    documents = list(searched.index.documents.values())
    notes = [f"{document.name}: {note}" for document in documents for note in document.notes]
    notes += [failure.reason for failure in failures]
    left_out = f" Left out in reading: {'; '.join(notes[:MOST_LISTED])}." if notes else ""
    near = locate(passage, documents)
    alike = f" The most similar text is in {near.document}, alike to {near.likeness:.0%}." if near else ""
    link = Link("read", False, f"{NOT_READ}{alike}{left_out}")
    return replace(base, cause="not_read", sentence=link.evidence, chain=Chain((link,)))
