"""The report of a diagnosis: every step from the document to the rank, on one page to take away."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from engine import Encoder
from engine.errors import GlassboxError
from engine.evaluation.questions import Question
from engine.inspection.diagnosis.causes import InUse
from engine.inspection.diagnosis.diagnose import Cause, Diagnosis
from engine.inspection.diagnosis.location import Location
from engine.inspection.diagnosis.setting_changes import Effect
from engine.inspection.pooling.similarity_decomposition import decompose_similarity, sum_by_unit, text_units
from engine.retrieval.embedding_model import no_inside
from engine.retrieval.retrievers import RETRIEVERS
from pages.improve.diagnose.ask import Asked, Search
from pages.improve.diagnose.fix import (
    LOSES,
    NO_OTHERS,
    SMALLEST,
    Fixes,
    changed_questions,
    effect_figures,
    effect_words,
)
from pages.improve.diagnose.other_settings import (
    GIVEN,
    OTHERS,
    OTHERS_HIT,
    UNMEASURED,
    Measured,
    found_sentence,
    setting_rows,
)
from pages.improve.diagnose.rank import (
    RANK,
    SHARED,
    Ranking,
    above_rows,
    above_words,
    explained_rows,
    nothing_above,
    rank_figures,
    shared_words,
)
from pages.improve.diagnose.steps import (
    CHUNKS,
    IN_A_DOCUMENT,
    IN_SHORT,
    LOST,
    MEASURED,
    PAINTED,
    READS_ALL,
    TITLES,
    chunk_rows,
    cut_sentence,
    lost_html,
    lost_sentence,
    outcome_words,
    passage_html,
    place_sentence,
    tail_sentence,
)
from ui.report import (
    Html,
    bullets,
    facts,
    figures,
    heading,
    note,
    page_html,
    paragraph,
    quotation,
    section,
    table,
    text_block,
)
from ui.settings_card import settings_words
from ui.similarity.explained import unit_sums
from ui.similarity.figures import contribution_map, painted
from ui.text import Strong

SHARES = (
    "In the figures below, each cell is what a word of the question, down, and a word of the chunk, across, "
    "add to the cosine, which is their sum: blue adds, orange subtracts. Under each figure stands the chunk, "
    "coloured by the sums of its words."
)


@dataclass(frozen=True)
class Diagnosed:
    """What the page draws of a passage that a document contains; ``measured`` where settings were tried."""

    place: Location
    found: Diagnosis
    ranking: Ranking
    used: InUse
    measured: Measured | None

    @property
    def fixes(self) -> Fixes | None:
        """What was measured to help, in place of advice; None for a passage that is found."""
        return self.measured.fixes if self.measured and not self.used.finds else None


def report(asked: Asked, search: Search, causes: Sequence[Cause], diagnosed: Diagnosed | None = None) -> str:
    """Return a diagnosis as one HTML page, each step as on the page; None diagnosed is a text of no document.

    The page draws the contributions of words on demand, so that they are computed here.
    """
    steps = step_sections(asked, search, diagnosed) if diagnosed else ()
    return page_html(
        "Why wasn't it found?",
        asked.question,
        paragraph("The passage that should have been found:", faint=True),
        quotation(Html(escape(asked.passage)), asked.place.document if asked.place else ""),
        section(IN_SHORT, *cause_parts(causes, diagnosed)),
        section(IN_A_DOCUMENT, paragraph(*place_sentence(asked))),
        *steps,
        section("Settings", facts(settings(search))),
    )


def settings(search: Search) -> dict[str, str]:
    """Return the settings of the search in words, and what was searched."""
    return settings_words(search.settings) | {
        "Encoder": search.model.name,
        "Chunks": f"{len(search.index.chunks):,}",
        "Documents searched": ", ".join(document.name for document in search.documents),
    }


def cause_parts(causes: Sequence[Cause], diagnosed: Diagnosed | None) -> Iterator[Html]:
    """The outcome and the causes."""
    outcome = outcome_words(diagnosed.used) if diagnosed else ""
    if diagnosed and diagnosed.used.finds:
        yield note("good", outcome)
    elif outcome:
        yield paragraph(outcome, faint=True)
    fixes = diagnosed.fixes if diagnosed else None
    for cause in causes:
        words = cause.finding if fixes else cause.sentence
        yield note("unsure", Strong(f"{TITLES[cause.kind][0]}."), f" {words}")
    if causes and fixes:
        yield note("plain", f"{MEASURED} ", *fixes.sentence)


def step_sections(asked: Asked, search: Search, diagnosed: Diagnosed) -> Iterator[Html]:
    """The steps after the first."""
    place, found, ranking = diagnosed.place, diagnosed.found, diagnosed.ranking
    percent = dict.fromkeys(("Holds of it", "Reads of it"), "{:.0%}")
    yield section(
        CHUNKS,
        paragraph(*cut_sentence(found)),
        text_block(Html(passage_html(place, search))),
        paragraph(PAINTED, faint=True),
        table(chunk_rows(place, search, found, ranking), percent),
    )
    yield section(LOST, *lost_parts(place, search, found))
    yield section(
        RANK, *rank_parts(search, found, ranking), *explained_parts(asked.question, search, ranking)
    )
    measured = diagnosed.measured
    if measured is None:
        yield section(OTHERS, paragraph(GIVEN if search.cut.given else UNMEASURED))
        return
    yield section(
        OTHERS,
        paragraph(*found_sentence(measured.rows, measured.now)),
        table(setting_rows(measured.rows, measured.now), {OTHERS_HIT: "{:.1f}%"}),
    )
    yield section(SMALLEST, *fix_parts(measured))


def lost_parts(place: Location, search: Search, found: Diagnosis) -> Iterator[Html]:
    """The part of the passage beyond the token limit."""
    yield paragraph(*lost_sentence(search, found))
    if found.unread:
        yield text_block(Html(lost_html(place, search, found)))
        if found.tail_read:
            yield paragraph(*tail_sentence(found, found.tail_read))
        if RETRIEVERS[search.retriever].uses_bm25:
            yield paragraph(READS_ALL, faint=True)


def rank_parts(search: Search, found: Diagnosis, ranking: Ranking) -> Iterator[Html]:
    """The passage's ranks and scores, and the chunks above it."""
    ranks = rank_figures(search, found, ranking)
    yield table(
        [{"Figure": name, "Value": value, "Meaning": words} for name, (value, words) in ranks.items()]
    )
    yield paragraph(shared_words(found))
    if not ranking.above:
        yield paragraph(nothing_above(ranking))
        return
    yield heading("The chunks above it")
    yield table(above_rows(search.index, found, ranking))
    if more := above_words(ranking):
        yield paragraph(more, faint=True)


def explained_parts(question: str, search: Search, ranking: Ranking) -> Iterator[Html]:
    """The similarity to the question explained word by word, for the passage's chunk and the best one."""
    index = search.index
    model, spec = index.encoder(search.model), index.spec
    if not isinstance(model, Encoder):
        yield paragraph(f"{no_inside(SHARED, model)}.", faint=True)
        return
    yield paragraph(SHARES, faint=True)
    for title, row in explained_rows(ranking).values():
        try:
            shares = decompose_similarity(
                model, question, index.chunks[row].text, spec.pooling, spec.max_tokens
            )
        except GlassboxError as error:  # a pooling that has no shares
            yield paragraph(f"{title}: {error}", faint=True)
            continue
        asked, read = text_units(shares.first, "words"), text_units(shares.second, "words")
        matrix = sum_by_unit(shares.matrix, asked, read)  # (n_asked, n_read)
        yield figures({f"{title}: cosine {shares.score:.3f}": contribution_map(matrix, asked, read)})
        by_word = unit_sums(np.asarray(shares.matrix).sum(axis=0), read)
        yield text_block(Html(painted(shares.second, read, by_word, "share")))


def fix_parts(measured: Measured) -> Iterator[Html]:
    """The smallest changes that find the passage, and the effect of one on other questions."""
    fixes = measured.fixes
    yield paragraph(*fixes.sentence)
    if not fixes.changes:
        return
    if len(fixes.changes) > 1:
        yield bullets(fixes.changes)
    yield heading(fixes.changes[fixes.chosen])
    if fixes.effect is None:
        yield paragraph(NO_OTHERS)
        return
    yield from effect_parts(fixes.effect, measured.others, measured.now.cell.k)


def effect_parts(effect: Effect, others: Sequence[Question], k: int) -> Iterator[Html]:
    """The effect of a change on the other labelled questions."""
    yield paragraph(effect_words(others))
    rows = [
        {"Figure": name, "Value": f"{value} ({change})" if change else value, "Meaning": words}
        for name, (value, change, words) in effect_figures(effect, k).items()
    ]
    yield table(rows)
    if len(effect.lost) > len(effect.won):
        yield note("unsure", LOSES)
    for title, texts in changed_questions(effect, others).items():
        yield paragraph(Strong(title))
        yield bullets(texts)
