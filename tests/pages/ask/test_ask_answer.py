from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from engine.documents.document import Chunk, Document
from engine.generation.answer import NOTHING_FOUND, Answer, Judged, Retrieval, SearchTimes, Timings, Written
from engine.generation.prompt import Prompt, Source
from engine.generation.settings import DEFAULT_ANSWER
from engine.retrieval.evidence import Quote
from engine.retrieval.index import Hit
from engine.retrieval.relevance import NullScores, chance_words
from pages.ask.answer import pieces_of
from tests.apps import app_of, by_label, plain
from ui.asking import Asked
from ui.chunk_settings import Cut
from ui.settings import Settings

NULL_SCORES = NullScores(np.linspace(-0.2, 0.6, 1000), np.linspace(0.2, 0.6, 100))
SCORES = (0.10, 0.70, 0.05)  # as words order them
DOCUMENTS = {f"{n}.md": Document(f"{n}.md", f"text {n}") for n in range(3)}
HITS = tuple(Hit(Chunk(f"{n}.md", 0, 6, f"text {n}", 3), score) for n, score in enumerate(SCORES))


def answer(hits=HITS, min_relevance=90, status="answered", confidence=0.0, sentences=(), **changed):
    """An answer; other settings are those of its text, or its evidence."""
    source = Source(1, "1.md", 0, 6, "text 1", 0.70, 3, False)
    times = SearchTimes(0.1, 0.1, 0.1)
    prompt = Prompt((), "", (1,) * 9, 3, (source,), (), 100)
    evidence = changed.pop("evidence", ())
    return Answer(
        question="Which?",
        retrieved=Retrieval(hits, (None,) * len(hits), NULL_SCORES, min_relevance, "bm25", times),
        evidence=evidence,
        written=replace(Written("This.", "stop", "small", None, prompt, (1,)), **changed),
        judged=Judged(status, confidence, sentences),
        timed=Timings(times),
    )


def asked(**changed):
    settings = Settings(Cut("sentences", 64, 0, 0, 256), "cls", DEFAULT_ANSWER, True)
    time = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    given = {"typed": "Which?", "question": "Which?", "turns": (), "settings": settings}
    given |= {
        "documents": DOCUMENTS,
        "chosen": (*DOCUMENTS.values(),),
        "encoder": "small-encoder",
        "time": time,
    }
    return Asked(**(given | changed))


def sources(shown):
    from pages.ask.answer import show_sources
    from tests.pages.ask.test_ask_answer import DOCUMENTS
    from ui.report import Report

    show_sources(Report(), shown, DOCUMENTS)


def refusal(shown):
    from ui.nothing_found import show_nothing_found
    from ui.report import Report

    show_nothing_found(Report(), shown)


def captions(page, shown):
    app = app_of(page, args=(shown,)).run()
    return app, [plain(caption.value) for caption in app.caption]


def test_a_source_has_the_rank_its_retriever_gave_it_and_what_was_left_out_is_said():
    app, said = captions(sources, answer())
    assert said[0] == (
        "from the passage of rank 2 by BM25 (words) · cosine 0.700 · closer than all random pairs"
    )
    left_out = by_label(app.expander, "Left out: 2 of 3 passages found")
    words = [plain(caption.value) for caption in left_out.caption]
    assert words[0].startswith("Not close enough: more than 10 of 100 unrelated questions")
    assert words[1].startswith("0.md · rank 1 · cosine 0.100")
    assert words[2].startswith("2.md · rank 3 · cosine 0.050")


def test_what_a_model_read_is_listed_by_its_numbers():
    two = tuple(Source(n + 1, f"{n}.md", 0, 6, f"text {n}", 0.7, 3, False) for n in range(2))
    read = {"prompt": Prompt((), "", (1,), 3, two, (), 100), "source_places": (0, 1)}
    best = Quote("1.md", 0, 6, "text 1", 1, 0.5, (), 1.0, 0.9)
    assert [source.number for _, source in pieces_of(answer(**read, evidence=(best,)))] == [1, 2]


def notes(shown):
    from pages.ask.answer import show_notes
    from ui.report import Report

    show_notes(Report(), shown)


def test_what_was_left_out_of_the_files_of_an_answer_stands_above_it():
    file_notes = {"0.md": ("1 picture left out",), "1.md": ("1 *formula* could not be read", "x" * 300)}
    file_notes |= {"2.md": ("cut",)}
    [line] = app_of(notes, args=(replace(answer(), file_notes=file_notes),)).run().caption
    assert plain(line.value).startswith("1.md: 1 *formula* could not be read; xxx")
    assert len(line.value) < 300
    found = replace(answer(), written=None, file_notes=file_notes)  # nothing is quoted: of the passages
    lines = app_of(notes, args=(found,)).run().caption
    assert [plain(each.value)[:4] for each in lines] == ["0.md", "1.md", "2.md"]


def test_where_nothing_counts_the_nearest_is_told_wherever_it_ranks():
    evil = Hit(Chunk("<b>.md", 0, 6, "*text*", 3), 0.7)
    app, said = captions(refusal, answer((HITS[0], evil), min_relevance=100).retrieved)
    assert plain(app.info[0].value) == NOTHING_FOUND
    assert said[0].startswith(
        "The nearest passage of those that the retriever BM25 (words) finds: cosine 0.700"
    )
    assert chance_words(NULL_SCORES.relevance(0.7)) in said[0]
    assert any(r"\<b\>\.md" in caption.value for caption in app.caption)


def test_where_nothing_is_found_at_all_it_is_said_why():
    _, said = captions(refusal, answer(hits=()).retrieved)
    assert said == [
        "The retriever BM25 (words) finds no passage: none shares a word with the question. Ask in "
        "other words, or choose another retriever under Search in the sidebar."
    ]
