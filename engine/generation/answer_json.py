"""Search results and answers as JSON, for the command line and the server."""

from dataclasses import asdict
from typing import Any

from ..documents.document import Chunk
from ..retrieval.evidence import Quote
from .answer import Answer, Retrieval, Timings
from .prompt import Source
from .reading import AnswerSpan


def found_json(question: str, found: Retrieval) -> dict[str, Any]:
    """Return the passages that a search found, best first, and its times."""
    return {
        "question": question,
        "hits": [passage(hit.chunk, found, rank) for rank, hit in enumerate(found.hits)],
        "timings": times_json(Timings(found.times)),
    }


def piece_json(piece: Quote | AnswerSpan, found: Retrieval) -> dict[str, Any]:
    """Return a piece of a passage with its place; its headings, a row among them, are the passage's."""
    return {
        "document": piece.document,
        "start": piece.start,
        "end": piece.end,
        "headings": list(found.hits[piece.place].chunk.headings),
        "text": piece.text,
    }


def reading_json(span: AnswerSpan | None, found: Retrieval) -> dict[str, Any] | None:
    """Return the words that the reader found with their place and score; None where there are none."""
    return None if span is None else {**piece_json(span, found), "score": round(span.score, 4)}


def found_answer_json(answer: Answer) -> dict[str, Any]:
    """Return what stands before a language model writes: the reader's words and quotes."""
    return {
        "question": answer.question,
        "status": answer.judged.status,
        "confidence": round(answer.judged.confidence, 4),
        "answer": reading_json(answer.reading, answer.retrieved),
        "other_answer": reading_json(answer.other_reading, answer.retrieved),
        "quotes": [piece_json(quote, answer.retrieved) for quote in answer.quotes],
        "notes": {name: list(notes) for name, notes in answer.notes.items()},
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer: the reader's words, quotes, text with checked sentences, sources and times."""
    written = answer.written
    return {
        **found_answer_json(answer),
        "text": answer.text,
        **({"thought": written.thought} if written and written.thought else {}),
        "sentences": [
            {
                "text": answer.text[each.start : each.end].strip(),
                "holds": each.is_supported,
                "reason": each.reason,
                "unknown": [answer.text[word.start : word.end] for word in each.unknown],
            }
            for each in answer.judged.sentences
        ],
        "sources": [
            passage(source, answer.retrieved, place)
            for source, place in zip(answer.sources, written.source_places if written else (), strict=True)
        ],
        "timings": times_json(answer.timed),
    }


def times_json(timed: Timings) -> dict[str, float]:
    """Return the seconds of each stage and the tokens, all on one level."""
    rest = {"evidence_s": timed.evidence_s, "reader_s": timed.reader_s, "check_s": timed.check_s}
    return {**asdict(timed.search), **asdict(timed.writing), **rest}


def passage(place: Chunk | Source, found: Retrieval, rank: int) -> dict[str, Any]:
    """Return a passage, hit number ``rank`` from 0, with its score and relevance."""
    score, margin = found.hits[rank].score, found.margins[rank]
    return {
        "document": place.document,
        "start": place.start,
        "end": place.end,
        "headings": list(found.hits[rank].chunk.headings),
        "score": round(score, 6),
        "percentile": round(found.null_scores.percentile(score), 4),
        "relevance": round(found.null_scores.relevance(score), 4),
        "margin": None if margin is None else round(margin, 6),
        "text": place.text,
    }
