"""Articles with questions from files of SQuAD's format, and questions with the passages read for them."""

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...documents.document import Document
from ...errors import InputError
from ...evaluation.questions import bounded_content

Span = tuple[int, int]  # characters
HEADINGS = (
    "Overview", "Background", "History", "Details", "Description", "Summary", "Further information", "Notes",
    "Context", "In brief", "Development", "Structure", "Results", "General", "Introduction",
)  # fmt: skip
HEADED = re.compile(r"(?<=[a-z,] )[A-Z]\w+(?: [A-Z]\w+){0,2}")  # names within a sentence


@dataclass(frozen=True)
class Question:
    """A question and the span of its article's text that answers it, None where nothing does."""

    text: str
    span: Span | None
    paragraph: int  # start of the paragraph that it was asked about
    answers: tuple[str, ...] = ()  # all that people gave, as `span` or otherwise


@dataclass(frozen=True)
class Article:
    """An article as one text: its title as a heading, and its paragraphs."""

    document: Document
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Asked:
    """A question with the passage that is read for it."""

    question: str
    passage: str
    span: Span | None  # the answer in the passage, None where it does not answer
    near: Span | None  # the place that then looks most like an answer, if known: a crop of the passage has it
    kind: str  # how the pair was made


def read_squad(path: Path) -> list[Article]:
    """Read a file of SQuAD's format, JSON or JSON packed by gzip.

    Raises `InputError` where it is not of this format, or an answer does not stand at its offset.
    """
    try:
        content = bounded_content(path)
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        articles = json.loads(content)["data"]
        return [read_article(article) for article in articles]
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a file of questions in SQuAD's format ({error})") from error


def read_article(raw: dict[str, Any]) -> Article:
    """Join the paragraphs of an article, and move the spans of its answers to the joined text."""
    title = raw.get("title", "").replace("_", " ")
    text, questions = f"# {title}\n\n" if title else "", []
    for paragraph in raw["paragraphs"]:
        first = len(text)
        text += paragraph["context"] + "\n\n"
        for question in paragraph["qas"]:
            span = None
            if question["answers"] and not question.get("is_impossible", False):
                # The one that most people gave, the shortest of those given equally often.
                counts = Counter((one["text"], one["answer_start"]) for one in question["answers"])
                answer, start = min(counts, key=lambda one: (-counts[one], len(one[0])))
                span = first + start, first + start + len(answer)
                if text[slice(*span)] != answer:
                    raise InputError(
                        f"the answer {answer!r} to {question['question']!r} does not stand at character "
                        f"{start} of its paragraph: mend answer_start"
                    )
            given = tuple(dict.fromkeys(each["text"] for each in question["answers"])) if span else ()
            questions.append(Question(question["question"], span, first, given))
    return Article(Document(title, text), tuple(questions))


def with_headings(article: Article, rng: np.random.Generator, share: float = 0.5) -> Article:
    """Put a heading above a share of the paragraphs: a name that it has, or a usual one."""
    text, moved, pieces, done = article.document.text, [], list[str](), 0
    starts = sorted({question.paragraph for question in article.questions})
    shifts, shift = {}, 0
    for start in starts:
        if rng.random() < share:
            found = HEADED.findall(text[start : text.find("\n\n", start)])
            names = found if found and rng.random() < 0.6 else HEADINGS
            heading = f"## {names[rng.integers(len(names))]}\n\n"
            pieces += [text[done:start], heading]
            done, shift = start, shift + len(heading)
        shifts[start] = shift
    for question in article.questions:
        by = shifts[question.paragraph]
        span = question.span and (question.span[0] + by, question.span[1] + by)
        moved.append(replace(question, span=span, paragraph=question.paragraph + by))
    return Article(Document(article.document.name, "".join([*pieces, text[done:]])), tuple(moved))
