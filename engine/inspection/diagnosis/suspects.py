"""What may have caused a wrong or refused answer, by its evidence, each with the cures that are its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Any, Literal

from ...documents.language import ENGLISH, LANGUAGES, detected
from ...documents.sentences import lines_around
from ...evaluation.answers import ShortAnswer
from ...generation.answer import Answer
from ...generation.conversation import Turn
from ...generation.reading import AnswerSpan
from ...retrieval.evidence import CandidateSentence, has_digit, short_sentences
from ...retrieval.retrievers import RETRIEVERS, usable_retrievers
from ...settings import SETTINGS, changes_in_words, default
from ...wording import beginning, counted
from .asking import Searched, touches
from .chain import SHOWN, WHOLE, Chain
from .location import Location
from .table_rows import flattened, heads_place, is_twin, took_head
from .wordings import (
    content_words,
    differing,
    in_words_of,
    is_token,
    misspelled,
    other_forms,
    reads_as_words,
    respelled,
    share_covered,
)

Cause = Literal[
    "not_read",
    "flattened",
    "split",
    "beyond_limit",
    "other_words",
    "typing_error",
    "other_language",
    "read_as_follow_up",
    "header_for_row",
    "near_twin",
    "number_form",
    "outranked",
    "not_among_k",
    "reader_took_other",
    "refused_by_threshold",
    "none",
]
FEW_WORDS = 0.34  # of a question's content words, below which it is in other words than the passage
JUST_BEHIND = 2  # ranks after the last passage that is read
MOST_K = 10  # passages that can be read
THRESHOLDS = ("min_relevance", "refuse_threshold")


@dataclass(frozen=True)
class Cure:
    """Changes of settings, by their keys, and another wording of the question; empty for as it is."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""

    def words(self, now: Mapping[str, Any]) -> str:
        """Say what it does: ``Ask “…”``, ``set chunk size 32 → 192``."""
        parts = [f"ask “{self.question}”"] * bool(self.question)
        if self.settings.get("follow_ups") is False:
            parts.append("ask it as a new topic")
        changes = {key: value for key, value in self.settings.items() if key != "follow_ups"}
        if changed := changes_in_words(now, changes):
            parts.append(f"set {', '.join(changed.values())}")
        said = ", and ".join(parts)
        return said[:1].upper() + said[1:]


@dataclass(frozen=True)
class Suspect:
    """A possible cause: its evidence in a sentence, and its cures."""

    cause: Cause
    sentence: str
    cures: tuple[Cure, ...] = ()
    certain: bool = False  # it needs no cure that works to be named: its evidence leaves no doubt


@dataclass(frozen=True)
class Case:
    """A wrong or refused answer to a question, and the passage that should have answered it."""

    question: str
    turns: Sequence[Turn]
    place: Location
    passage: str  # as the documents have it
    given: str  # as it was given
    wanted: ShortAnswer
    before: Answer
    chain: Chain
    searched: Searched

    @property
    def language(self) -> str:
        """The language of the passage."""
        return detected(self.passage) or self.searched.index.languages[self.place.document]

    @property
    def taken(self) -> AnswerSpan | CandidateSentence | None:
        """The words or the sentence that were taken in place of the passage's, also where refused."""
        spans, quotes = self.before.spans[:1], self.before.evidence[:1]
        return next((each for each in (self.before.best_span, *quotes, *spans) if each is not None), None)

    @property
    def answers(self) -> list[str]:
        """The words that answer, which no other wording of the question may give away."""
        known = [each for part in self.wanted.parts for each in part]
        own = self.chain.own_span
        return known or ([] if own is None else [own.text])

    @property
    def around(self) -> str:
        """The passage with the text around it, which says what its pronouns stand for."""
        text, place = self.searched.index.document_text(self.place.document), self.place
        return f"{self.context} {place.around(text)}"

    @property
    def context(self) -> str:
        """The passage with what stands above it: the name of its document and its headings."""
        return " ".join([self.place.document.rpartition(".")[0], *self.headings, self.passage])

    @property
    def unit(self) -> str:
        """The row, or else the sentences, that the passage stands in."""
        return unit_at(self.place.start, self.place.end, self.place.document, self)

    @property
    def covered(self) -> float:
        """How much of the question the passage says, words by how rare they are in the documents."""
        return share_covered(self.question, self.around, self.language, self.searched.index.words)

    @property
    def headings(self) -> Sequence[str]:
        """The headings above the passage."""
        document = self.searched.index.documents.get(self.place.document)
        return document.section_at(self.place.start).headings if document else ()


def suspects(case: Case, may_cut: bool) -> Iterator[Suspect]:
    """Yield what the evidence points at, the most specific first; ``may_cut`` allows cures that cut anew."""
    values = case.searched.settings
    if case.before.question != case.question:
        added = case.before.question.removeprefix(case.question.strip()).strip()
        yield Suspect(
            "read_as_follow_up",
            f"The question was read as one that follows on those before, with the words {added}.",
            (Cure({"follow_ups": False}),),
        )
    stricter = {key: default(key) for key in THRESHOLDS if values[key] > default(key)}
    if stricter and case.chain.holds("sure") is False:
        yield Suspect("refused_by_threshold", refusal(case), (lowered(case.before, values), Cure(stricter)))
    yield from of_the_question(case)
    yield from of_tables(case, may_cut)
    yield from of_cutting(case, may_cut)
    yield from of_search_and_reading(case, may_cut)


def of_the_question(case: Case) -> Iterator[Suspect]:
    """Yield another language, typing errors, numbers in another form."""
    own, question, tokenizer = case.language, case.question, case.searched.model.tokenizer
    asked = detected(question) or (ENGLISH if reads_as_words(question, tokenizer) else "")
    covered = share_covered(question, case.context, own)
    is_text = case.chain.holds("read") is not False  # bare values are in no language and in no words
    if asked and own and asked != own and (is_text or covered == 0):
        yield Suspect(
            "other_language",
            f"The question is in {LANGUAGES[asked].label}, the passage in {LANGUAGES[own].label}.",
            in_words_of_passage(case),
            certain=True,
        )
    near = misspelled(question, case.around, case.searched.index, tokenizer)
    if near:
        listed = "; ".join(
            f"“{word}”: nearest is {', '.join(f'“{each}”' for each in own)}" for word, own in near.items()
        )
        yield Suspect(
            "typing_error",
            f"No document holds words of the question ({listed}).",
            (Cure(question=respelled(question, near)),),
            certain=any(
                own[0] in case.around.lower() and not is_token(word, tokenizer) for word, own in near.items()
            ),
        )
    if forms := other_forms(question, f"{case.unit}\n{case.passage}"):
        listed = " and ".join(f"“{asked}” as “{form}”" for asked, form in forms.items())
        worded = respelled(question, {asked: [form] for asked, form in forms.items()})
        yield Suspect(
            "number_form",
            f"The passage writes {listed}.",
            (Cure(question=worded), Cure({"retriever": "bm25"}, worded)),
            certain=2 * covered < 1 or not taken_holds(case, forms),
        )
    is_unlike = share_covered(question, f"{case.context} {case.unit}", own) == 0  # few words stand for a unit
    if is_text and is_unlike and case.covered < FEW_WORDS:
        yield other_words(case, certain=True)


def taken_holds(case: Case, forms: Mapping[str, str]) -> bool:
    """Whether what was taken in place of the passage has one of the numbers asked for, in any form."""
    taken = case.taken
    if taken is None:
        return True
    text = unit_at(taken.start, taken.end, taken.document, case)
    return any(asked in text for asked in forms) or bool(other_forms(" ".join(forms), text))


def other_words(case: Case, certain: bool) -> Suspect:
    """Return the suspicion that the question says it in other words."""
    how_many = "few words" if case.covered else "no word"
    sentence = f"The question shares {how_many} with the passage, function words aside."
    return Suspect("other_words", sentence, in_words_of_passage(case), certain)


def in_words_of_passage(case: Case) -> tuple[Cure, ...]:
    """Return wordings of the question with words of the passage, but for those that answer it."""
    found = in_words_of(case.question, case.passage, case.answers, case.searched.index, case.language)
    ways: list[dict[str, Any]] = [{}, {"retriever": "bm25"}]
    return tuple(Cure(way, words) for words in found for way in ways if differs(way, case.searched.settings))


def quoting_passage(case: Case) -> str:
    """Return a wording that has a row, or a sentence, quoted as a whole, for a person to read."""
    document = case.searched.index.documents[case.place.document]
    is_row = document.row_at(case.place.start) is not None or case.chain.holds("read") is False
    return f"List what {'stands in the row' if is_row else 'is written'}: {case.question.strip()}"


def differs(changes: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether changes change settings; those without one do nothing."""
    return all(now[key] != value for key, value in changes.items())


def of_tables(case: Case, may_cut: bool) -> Iterator[Suspect]:
    """Yield tables that were flattened, heads taken for rows, and rows or sentences that nearly repeat it."""
    documents, place = case.searched.index.documents, case.place
    document, taken = documents.get(place.document), case.taken
    if document is None:
        return
    said: dict[Cause, str] = {}
    if heads_place(case.given, [document]) is not None:
        said["header_for_row"] = "The first row of the table was taken for the names of its columns."
    elif taken is not None and took_head(documents[taken.document], taken.start, taken.end):
        took = beginning(taken.text, SHOWN)
        said["header_for_row"] = f"“{took}” was taken, which are names of columns and no row."
    if lost := flattened(document, place):
        said["flattened"] = (
            f"The table was read as plain text: {lost}, so a value does not say of what it is."
        )
    for cause, sentence in said.items():
        quoted = Cure(question=quoting_passage(case))
        yield Suspect(cause, sentence, (quoted, *in_words_of_passage(case)), certain=True)
    yield from twins(case, may_cut)


def twins(case: Case, may_cut: bool) -> Iterator[Suspect]:
    """Yield the row or sentence that was taken, where it differs from the passage in a word or two."""
    taken, place = case.taken, case.place
    if taken is None or (touches(taken, place) and place.start <= taken.start):
        return
    own = case.unit
    other = unit_at(taken.start, taken.start + 1, taken.document, case)  # it may run on into the next row
    if other == own or not is_twin(own, other, case.answers):
        return
    words, _, _ = differing(own, other, case.answers)
    if not words:  # what tells them apart is a number, or above them
        above = f"{taken.document.rpartition('.')[0]} {other}"
        words = other.lower().split()
        numbers = [word for word in own.split() if has_digit(word) and word.lower() not in words]
        asked = [word for word in numbers if not any(word in answer for answer in case.answers)]
        words = asked or differing(case.context, above, case.answers)[0]
    question = f"{case.question.strip()} ({' '.join(words)})"
    contexts = [Cure({"context": each}) for each in asked_in_headings(case)[0]] * may_cut
    yield Suspect(
        "near_twin",
        f"“{beginning(other, SHOWN)}” was taken, which differs from the passage in a word or two.",
        (*contexts, *(Cure(question=question),) * bool(words), *in_words_of_passage(case)),
        certain=True,
    )


def unit_at(start: int, end: int, name: str, case: Case) -> str:
    """Return the row, or else the sentences, that a span of a document stands in."""
    document = case.searched.index.documents.get(name)
    if document is None:
        return ""
    if (row := document.row_at(start)) is not None:
        return document.text[slice(*row)]
    own = [
        document.text[first:last]
        for first, last in short_sentences(document.text, *lines_around(document.text, start, end))
        if first < end and start < last
    ]
    return " ".join(own)


def of_cutting(case: Case, may_cut: bool) -> Iterator[Suspect]:
    """Yield a passage that no chunk holds whole, and one that lies beyond the token limit."""
    values, chain, limit = case.searched.settings, case.chain, case.searched.text_limit
    now, keys = values["chunk_tokens"], ("splitter", "chunk_tokens", "overlap")
    reset = {key: default(key) for key in keys if values[key] != default(key)}
    if chain.unread:
        n = sum(end - start for start, end in chain.unread)
        smaller = [{"chunk_tokens": n} for n in (size(limit), 128, 64) if n < now]
        encoder = case.searched.model.as_encoder
        further = [{"max_tokens": encoder.config.max_positions}] if encoder is not None else []
        cures = [reset] * bool(reset) + smaller + [way for way in further if limit < way["max_tokens"]]
        yield Suspect(
            "beyond_limit",
            f"{n:,} of its {case.place.end - case.place.start:,} characters are beyond the {limit:,} tokens "
            "that are read of a chunk.",
            tuple(map(Cure, cures)) * may_cut,
            certain=2 * n >= case.place.end - case.place.start and chain.holds("given") is False,
        )
    if chain.share < WHOLE:
        larger = [{"chunk_tokens": n} for n in (128, 192, 256, 384, 512) if now < n <= limit]
        overlap = {"overlap": now // 2}
        ways = [reset] * bool(reset) + [overlap, *larger, {"splitter": "sentences"}, {"parent_tokens": 512}]
        fitting = (way for way in ways if differs(way, values))
        yield Suspect(
            "split",
            f"It was cut apart: no chunk holds more than {chain.share:.0%} of it.",
            tuple(Cure(way) for way in fitting) * may_cut,
        )


def size(limit: int) -> int:
    """Return the largest chunk size of the settings within a limit."""
    step, least = int(SETTINGS["chunk_tokens"].step), int(SETTINGS["chunk_tokens"].low)
    return max(least, min(limit, int(SETTINGS["chunk_tokens"].high or limit)) // step * step)


def of_search_and_reading(case: Case, may_cut: bool) -> Iterator[Suspect]:
    """Yield what broke in the search, at the reader, and at the thresholds."""
    values, chain = case.searched.settings, case.chain
    sure = Suspect("refused_by_threshold", refusal(case), (lowered(case.before, values),))
    is_refused, is_alike = case.before.judged.status == "refused", case.covered >= FEW_WORDS
    if is_refused and is_alike:
        yield sure
    if chain.holds("given") is not False:
        took_other = case.before.retrieved.relevant and not (is_refused and chain.holds("reader"))
        if not (took_other or is_alike):
            yield other_words(case, certain=False)
        yield from [reader_took_other(case, may_cut)] * bool(took_other)
        yield sure
        return
    rank = chain.rank
    is_behind = rank is not None and rank <= max(default("k"), values["k"] + JUST_BEHIND)
    if is_behind and default("k") > values["k"]:
        yield not_among_k(case, (default("k"), MOST_K))
    if not is_alike:
        yield other_words(case, certain=False)
    usual = [default("retriever")] * (values["retriever"] != default("retriever"))
    halves = [name for name, each in chain.by_half.items() if each.rank and each.rank <= values["k"]]
    if is_behind and not halves:
        yield not_among_k(case, (rank or MOST_K, MOST_K))
    yield outranked(case, [*usual, *halves], may_cut)


def refusal(case: Case) -> str:
    """Say by which threshold the answer was refused."""
    return next((link.evidence for link in case.chain.links if link.name == "sure"), "")


def lowered(answer: Answer, values: Mapping[str, Any]) -> Cure:
    """Return the threshold that refuses an answer, at the value that shows it; no change where none does."""
    found = answer.retrieved
    if not found.relevant and found.hits:
        relevance = found.null_scores.relevance(max(hit.score for hit in found.hits))
        return Cure({"min_relevance": min(floor(relevance), values["min_relevance"])})
    if answer.judged.status == "refused":
        return Cure({"refuse_threshold": floor(100 * answer.judged.confidence)})
    return Cure()


def not_among_k(case: Case, numbers: Sequence[int]) -> Suspect:
    """Return the suspicion that too few passages are read."""
    rank, k = case.chain.rank, case.searched.settings["k"]
    where = "is not found" if rank is None else f"ranks {rank:,}"
    return Suspect(
        "not_among_k",
        f"It {where}, and only the first {k:,} are read.",
        tuple(Cure({"k": number}) for number in dict.fromkeys(numbers) if number > k),
        certain=True,
    )


def outranked(case: Case, better: Sequence[str], may_cut: bool) -> Suspect:
    """Return the suspicion that the retriever puts others first; ``better`` are retrievers that may not."""
    ranking, values = case.chain.ranking, case.searched.settings
    retriever, usable = values["retriever"], usable_retrievers(case.searched.model)
    n_above = len(ranking.above) if ranking else 0
    names = dict.fromkeys([*better, *(name for name in usable if not RETRIEVERS[name].reads_all)])
    halves = " and ".join(RETRIEVERS[name].label for name in better if name in case.chain.by_half)
    by = f"; by {halves} only it would be read" if halves else ""
    contexts, above = asked_in_headings(case)
    by += f"; only “{above}” above it holds words of the question" if above else ""
    smaller = [{"chunk_tokens": n} for n in (96, 48) if n < values["chunk_tokens"]] * may_cut
    ways: list[dict[str, Any]] = [{"context": each} for each in contexts] * may_cut
    ways += [*({"retriever": name} for name in names), {"k": MOST_K}, *smaller]
    return Suspect(
        "outranked",
        f"By {RETRIEVERS[retriever].label} it ranks below {counted(n_above, 'other chunk')}{by}.",
        tuple(Cure(way) for way in ways if differs(way, values)),
        certain=True,
    )


def asked_in_headings(case: Case) -> tuple[list[str], str]:
    """Return the kinds of context of `CONTEXTS` that put words of a question before a chunk without them.

    Also what stands above the chunk and holds these words; empty where nothing does.
    """
    ranking = case.chain.ranking
    chunk = case.searched.index.chunks[ranking.row].indexed if ranking else ""
    lacking = content_words(case.question, case.language).keys() - content_words(chunk, case.language).keys()
    title = case.place.document.rpartition(".")[0]
    added = {"headings": " › ".join(case.headings), "title": " › ".join([title, *case.headings])}
    found = [each for each, above in added.items() if lacking & content_words(above, case.language).keys()]
    return found, added[found[0]] if found else ""


def reader_took_other(case: Case, may_cut: bool) -> Suspect:
    """Return the suspicion that other words or another sentence were taken."""
    values, taken = case.searched.settings, case.taken
    what = f"“{beginning(taken.text, SHOWN)}” of {taken.document}" if taken else "other words"
    rank = case.chain.rank
    hit = rank if rank is not None and rank < values["k"] else 1
    smaller = [{"chunk_tokens": n} for n in (64, 32) if n < values["chunk_tokens"]] * may_cut
    ways: list[dict[str, Any]] = [{"k": hit}, {"retriever": "reader"}, *smaller]
    settings = tuple(Cure(way) for way in ways if differs(way, values))
    return Suspect(
        "reader_took_other",
        f"The passage was read, and {what} was taken.",
        (*in_words_of_passage(case), *settings),
    )
