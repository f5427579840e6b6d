"""Questions with passages to train a span reader on, made from files of SQuAD's format.

The paragraphs of an article are one document, cut into chunks as the app cuts documents. A question's passage
is the chunk that holds its answer. Questions that a passage does not answer are made in three ways: the chunk
of the same article that shares most words with the question but lacks the answer, a chunk of another article,
and the right passage for a question whose name or number was swapped for another of the article.
"""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.documents.document import Chunk, Document
from engine.documents.splitters import DEFAULT_SPLITTING, Splitting, split
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.tokenizers.text_tokenizer import TextTokenizer

NO_ANSWER = -1  # in place of the tokens of an answer
# Names within a sentence, and numbers of three or four digits.
NAMES = re.compile(r"(?<=[^.!?] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*|\b\d{3,4}\b")
LONGEST_QUESTION = 40  # tokens
POOL = 20  # batches whose examples are sorted by length together


@dataclass(frozen=True)
class Question:
    """A question and the span of its article's text that answers it, None where nothing does."""

    text: str
    span: tuple[int, int] | None
    paragraph: int  # start of the paragraph that it was asked about


@dataclass(frozen=True)
class Article:
    """An article as one text: its title as a heading, and its paragraphs."""

    document: Document
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Shares:
    """The share of the questions that is asked again about a passage without an answer, by the kind of it."""

    same_article: float = 0.25
    other_article: float = 0.05
    swapped_name: float = 0.12


@dataclass(frozen=True)
class ReadingSet:
    """Tokenized questions and passages, and the examples made of them."""

    # ids of the tokens of each, without special tokens
    questions: list[Array]
    passages: list[Array]
    # ``(n_examples, 4)``: the question, the passage, and the first and last token of the answer in it, both
    # `NO_ANSWER` where the passage does not answer
    examples: Array


def read_squad(path: Path) -> list[Article]:
    """Read a file of SQuAD's format, JSON or JSON packed by gzip.

    Raises
    ------
    InputError
        It is not of this format, or an answer does not stand at its offset.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        articles = json.loads(content)["data"]
        return [read_article(article) for article in articles]
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
                answer, start = most_given(question["answers"])
                span = first + start, first + start + len(answer)
                if text[slice(*span)] != answer:
                    raise InputError(
                        f"the answer {answer!r} to {question['question']!r} does not stand at character "
                        f"{start} of its paragraph: mend answer_start"
                    )
            questions.append(Question(question["question"], span, first))
    return Article(Document(title, text), tuple(questions))


def most_given(answers: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """Return the answer, with its start, that most people gave, the shortest of those given equally often."""
    counts = Counter((answer["text"], answer["answer_start"]) for answer in answers)
    return min(counts, key=lambda answer: (-counts[answer], len(answer[0])))


def reading_set(
    articles: Sequence[Article],
    tokenizer: TextTokenizer,
    splitting: Splitting = DEFAULT_SPLITTING,
    shares: Shares = Shares(),
    seed: int = 0,
) -> ReadingSet:
    """Make examples of all questions, and of some of them again about passages that do not answer them."""
    rng = np.random.default_rng(seed)
    chunks = [split(article.document, tokenizer, splitting) for article in articles]
    passages = [chunk for of_article in chunks for chunk in of_article]
    encodings = tokenizer.encode_batch([chunk.text for chunk in passages])
    questions, examples, first = list[str](), list[tuple[int, int, int, int]](), 0

    def add(question: str, passage: int, span: tuple[int, int] | None) -> None:
        tokens = NO_ANSWER, NO_ANSWER
        if span is not None:
            start = passages[passage].start
            tokens = tokens_of(encodings[passage].offsets[1:-1], span[0] - start, span[1] - start)
        questions.append(question)
        examples.append((len(questions) - 1, passage, *tokens))

    for article, own in zip(articles, chunks, strict=True):
        names = Counter(NAMES.findall(article.document.text))
        words = [words_of(chunk.text) for chunk in own]
        for question in article.questions:
            right = passage_of(question, own)
            if right is None:  # a chunk ends within the answer
                continue
            add(question.text, first + right, question.span)
            if question.span is None:
                continue
            answer = article.document.text[slice(*question.span)]
            if rng.random() < shares.same_article:
                near = nearest_without(question.text, answer, own, words)
                if near is not None:
                    add(question.text, first + near, None)
            if rng.random() < shares.other_article:
                other = int(rng.integers(len(passages)))
                if answer.lower() not in passages[other].text.lower():
                    add(question.text, other, None)
            if rng.random() < shares.swapped_name:
                swapped = swap_name(question.text, own[right].text, names, rng)
                if swapped is not None:
                    add(swapped, first + right, None)
        first += len(own)
    asked = tokenizer.ids_batch(questions)
    return ReadingSet(
        [np.array(ids[1:-1][:LONGEST_QUESTION], np.int32) for ids in asked],
        [np.array(encoding.ids[1:-1], np.int32) for encoding in encodings],
        np.array(examples, np.int32),
    )


def tokens_of(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Return the first and the last token that share characters with a span."""
    inside = [number for number, (first, last) in enumerate(offsets) if first < end and start < last]
    return (inside[0], inside[-1]) if inside else (NO_ANSWER, NO_ANSWER)


def passage_of(question: Question, chunks: Sequence[Chunk]) -> int | None:
    """Return the chunk that holds a question's answer, or its paragraph's start where nothing answers it."""
    start, end = question.span or (question.paragraph, question.paragraph + 1)
    return next((i for i, chunk in enumerate(chunks) if chunk.start <= start and end <= chunk.end), None)


def words_of(text: str) -> set[str]:
    """Return the words of a text in small letters."""
    return set(re.findall(r"\w+", text.lower()))


def nearest_without(
    question: str, answer: str, chunks: Sequence[Chunk], words: Sequence[set[str]]
) -> int | None:
    """Return the chunk with most of a question's words, rare ones first, among those without the answer."""
    asked = words_of(question)
    counts = Counter(word for of_chunk in words for word in of_chunk & asked)
    weights = {word: math.log(1 + len(chunks) / count) for word, count in counts.items()}
    others = [i for i, chunk in enumerate(chunks) if answer.lower() not in chunk.text.lower()]
    return max(others, key=lambda i: sum(weights[word] for word in words[i] & asked), default=None)


def swap_name(question: str, passage: str, names: Counter[str], rng: np.random.Generator) -> str | None:
    """Put another name (or number) of the article in place of one of a question's; None where it has none."""
    found = list(NAMES.finditer(question))
    if not found:
        return None
    match = found[rng.integers(len(found))]
    others = [
        name
        for name in names
        if name[0].isdigit() == match[0][0].isdigit() and name not in passage and name not in question
    ]
    if not others:
        return None
    return question[: match.start()] + others[rng.integers(len(others))] + question[match.end() :]


@dataclass(frozen=True)
class ReadingBatch:
    """Questions with passages, one sequence of tokens each: ``[CLS] question [SEP] passage [SEP]``."""

    # ids of the tokens, and their segments: 0 in the question, 1 in the passage and behind it
    sequences: list[list[int]]
    types: list[list[int]]
    # first and last token of the answer in its sequence, ``(n_texts, 2)``; 0, which is [CLS], where the
    # passage does not answer
    targets: Array

    def part(self, rows: slice) -> "ReadingBatch":
        """Return some of its texts."""
        return ReadingBatch(self.sequences[rows], self.types[rows], self.targets[rows])


def batches(
    found: ReadingSet, tokenizer: TextTokenizer, batch_size: int, crop_tokens: int, seed: int, number: int
) -> Iterator[ReadingBatch]:
    """Yield the batches of one pass over all examples, those of like length together, in a random order.

    Each pass, by its ``number``, crops longer passages anew, to ``crop_tokens`` around the answer.
    """
    rng = np.random.default_rng([seed, number])
    before, _, after = tokenizer.around(tokenizer.encode("").ids)
    for rows in batch_rows(found, batch_size, crop_tokens, rng):
        sequences, types, targets = [], [], []
        for question, passage, first, last in found.examples[rows].tolist():
            ids = found.passages[passage]
            start = crop_start(len(ids), first, last, crop_tokens, rng)
            head = [*before, *found.questions[question].tolist(), *after]
            tail = [*ids[start : start + crop_tokens].tolist(), *after]
            sequences.append(head + tail)
            types.append([0] * len(head) + [1] * len(tail))
            shift = len(head) - start
            has_answer = first != NO_ANSWER
            targets.append(
                [first + shift, min(last, start + crop_tokens - 1) + shift] if has_answer else [0, 0]
            )
        yield ReadingBatch(sequences, types, np.array(targets))


def batch_rows(
    found: ReadingSet, batch_size: int, crop_tokens: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Yield the examples of each batch: within a pool of `POOL` batches, sorted by their tokens."""
    asked = np.array([len(question) for question in found.questions])
    read = np.array([min(len(passage), crop_tokens) for passage in found.passages])
    lengths = asked[found.examples[:, 0]] + read[found.examples[:, 1]]  # (n_examples,)
    order, pool = rng.permutation(len(lengths)), POOL * batch_size
    for start in range(0, len(order), pool):
        rows = order[start : start + pool]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        groups = [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
        yield from (groups[i] for i in rng.permutation(len(groups)))


def crop_start(n_tokens: int, first: int, last: int, crop_tokens: int, rng: np.random.Generator) -> int:
    """Draw where a passage's crop starts, so that it holds the answer, or the answer's start."""
    if n_tokens <= crop_tokens:
        return 0
    lowest, highest = 0, n_tokens - crop_tokens
    if first != NO_ANSWER:
        lowest, highest = max(0, last + 1 - crop_tokens), min(first, highest)
    return int(rng.integers(lowest, highest + 1)) if lowest <= highest else min(first, n_tokens - crop_tokens)
