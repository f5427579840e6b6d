"""Examples to train a span reader on: questions with passages, tokenized, and the batches of a pass.

The paragraphs of an article are one document, cut into chunks as one of the product's splitters cuts it; a
question's passage is the chunk that holds its answer. Questions that a passage does not answer are made of
them (`negatives`), and questions about tables, lists and steps by code (`records`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...documents.document import Chunk
from ...documents.splitters import Splitting, split
from ...layers.tracing import Array
from ...tokenizers.text_tokenizer import TextTokenizer
from .articles import Article, Asked, Span, read_squad, with_headings
from .negatives import ArticleText, holds, negated, opposite, other_chunk, other_words, without_sentence
from .record_tables import draw
from .records import records

__all__ = ["NO_ANSWER", "ReadingBatch", "ReadingSet", "Shares", "batches", "read_squad", "reading_set"]

NO_ANSWER = -1  # in place of the tokens of an answer
LONGEST_QUESTION = 40  # tokens
POOL = 20  # batches whose examples are sorted by length together
KINDS = (
    "answered", "asked by people", "other chunk", "other article", "sentence out", "swapped", "opposite",
    "negated", "record", "record without",
)  # fmt: skip
# How articles are cut, and how often: the default, and the other splitters and sizes of the product.
SPLITTINGS = (
    (0.30, Splitting("sentences", 192)),
    (0.10, Splitting("sentences", 96)),
    (0.10, Splitting("sentences", 256, 48)),
    (0.10, Splitting("recursive", 128, 24)),
    (0.08, Splitting("recursive", 256)),
    (0.08, Splitting("paragraphs", 192)),
    (0.08, Splitting("markdown", 160)),
    (0.10, Splitting("fixed", 128, 32)),
    (0.06, Splitting("sliding", 128)),
)


@dataclass(frozen=True)
class Shares:
    """How many examples of each kind are made.

    Of each question with an answer, one of the kinds without an answer is made with these chances; where a
    question has no word to swap, say, none is. ``records`` is the share of all examples that are about tables
    and lists; ``people`` is how often the questions of a paragraph are repeated about which people asked some
    that it does not answer.
    """

    other_chunk: float = 0.19
    other_article: float = 0.03
    sentence_out: float = 0.18
    swapped: float = 0.21
    opposite: float = 0.25
    negated: float = 0.04
    records: float = 0.065
    people: int = 3
    headings: float = 0.3  # of the articles


@dataclass(frozen=True)
class ReadingSet:
    """Tokenized questions and passages, and the examples made of them."""

    # ids of the tokens of each, without special tokens
    questions: list[Array]
    passages: list[Array]
    # ``(n_examples, 6)``: the question, the passage, the first and last token of the answer in it, both
    # `NO_ANSWER` where the passage does not answer, a token that a crop of the passage must have, `NO_ANSWER`
    # if it may be any, and the number of the kind in `KINDS`
    examples: Array


def reading_set(
    articles: Sequence[Article],
    tokenizer: TextTokenizer,
    splitting: Splitting | None = None,
    shares: Shares = Shares(),
    seed: int = 0,
) -> ReadingSet:
    """Make examples of all questions, and more without an answer, of articles cut by drawn splittings."""
    asked, names = list[Asked](), list[list[str]]()
    cut = [cut_article(each, tokenizer, splitting, shares, [seed, i]) for i, each in enumerate(articles)]
    for number, (article, chunks) in enumerate(cut):
        rng = np.random.default_rng([seed, number, 1])
        read = ArticleText.of(article.document.text, chunks)
        others = draw(rng, cut)[1]
        names.append([name for name, used in read.names.items() if used.count > 1])
        asked += asked_of(article, read, others, shares, rng)
    n_records = round(shares.records / (1 - shares.records) * len(asked))
    return tokenized([*asked, *records(articles, names, n_records, seed)], tokenizer)


def cut_article(
    article: Article, tokenizer: TextTokenizer, splitting: Splitting | None, shares: Shares, seed: list[int]
) -> tuple[Article, list[Chunk]]:
    """Cut an article by a splitting that is drawn, with headings above some of its paragraphs or without."""
    rng = np.random.default_rng(seed)
    if splitting is None:
        number = rng.choice(len(SPLITTINGS), p=[weight for weight, _ in SPLITTINGS])
        splitting = SPLITTINGS[number][1]
        if rng.random() < shares.headings or splitting.method == "markdown":
            article = with_headings(article, rng)
    return article, split(article.document, tokenizer, splitting)


def asked_of(
    article: Article, read: ArticleText, others: Sequence[Chunk], shares: Shares, rng: np.random.Generator
) -> Iterator[Asked]:
    """Yield the questions of an article with their passages, and those made of them."""
    by_people = {question.paragraph for question in article.questions if question.span is None}
    for question in article.questions:
        first, last = question.span or (question.paragraph, question.paragraph + 1)
        holding = [each for each in read.chunks if each.chunk.start <= first and last <= each.chunk.end]
        if not holding:  # chunks end within the answer
            continue
        chunk = draw(rng, holding)
        start, passage = chunk.chunk.start, chunk.chunk.text
        span = question.span and (question.span[0] - start, question.span[1] - start)
        asked = Asked(question.text, passage, span, None, "answered" if span else "asked by people")
        yield from [asked] * (shares.people if question.paragraph in by_people else 1)
        if span is None:
            continue
        made: list[Asked | None] = []
        if rng.random() < shares.other_chunk:
            made.append(other_chunk(asked, read, rng))
        if rng.random() < shares.other_article and others:
            other = draw(rng, others).text
            is_other = not holds(f" {other.lower()} ", passage[slice(*span)])
            made += [Asked(question.text, other, None, None, "other article")] * is_other
        if rng.random() < shares.sentence_out:
            made.append(without_sentence(asked, chunk))
        if rng.random() < shares.swapped:
            made.append(other_words(asked, read, chunk, rng))
        if rng.random() < shares.opposite:
            made.append(opposite(asked, chunk, rng))
        if rng.random() < shares.negated:
            made.append(negated(asked, chunk, rng))
        yield from filter(None, made)


def tokenized(asked: Sequence[Asked], tokenizer: TextTokenizer) -> ReadingSet:
    """Tokenize questions and passages, equal ones once, and find the tokens of the spans."""
    questions = {text: i for i, text in enumerate(dict.fromkeys(each.question for each in asked))}
    passages = {text: i for i, text in enumerate(dict.fromkeys(each.passage for each in asked))}
    encodings = tokenizer.encode_batch(list(passages))
    examples = []
    for each in asked:
        number = passages[each.passage]
        offsets = encodings[number].offsets[1:-1]
        first, last = tokens_of(offsets, each.span)
        if each.span and first == NO_ANSWER:  # an answer without a token
            continue
        near, _ = tokens_of(offsets, each.near)
        examples.append((questions[each.question], number, first, last, near, KINDS.index(each.kind)))
    return ReadingSet(
        [np.array(ids[1:-1][:LONGEST_QUESTION], np.int32) for ids in tokenizer.ids_batch(list(questions))],
        [np.array(encoding.ids[1:-1], np.int32) for encoding in encodings],
        np.array(examples, np.int32),
    )


def tokens_of(offsets: Sequence[Span], span: Span | None) -> tuple[int, int]:
    """Return the first and the last token that share characters with a span."""
    if span is None:
        return NO_ANSWER, NO_ANSWER
    first = bisect_right(offsets, span[0], key=lambda offset: offset[1])
    last = bisect_left(offsets, span[1], key=lambda offset: offset[0]) - 1
    return (first, last) if first <= last else (NO_ANSWER, NO_ANSWER)


def sample(found: ReadingSet, n: int, seed: int) -> ReadingSet:
    """Draw ``n`` of the examples, or take all where there are fewer."""
    rows = np.random.default_rng(seed).permutation(len(found.examples))[:n]
    return ReadingSet(found.questions, found.passages, found.examples[rows])


def kind_counts(found: ReadingSet) -> dict[str, int]:
    """Return how many examples there are of each kind."""
    return dict(zip(KINDS, np.bincount(found.examples[:, 5], minlength=len(KINDS)).tolist(), strict=True))


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
    """Yield the batches of one pass over all examples, of like length together, in a random order.

    Each pass, by its ``number``, crops longer passages anew, to ``crop_tokens`` around the answer.
    """
    rng = np.random.default_rng([seed, number])
    before, _, after = tokenizer.around(tokenizer.encode("").ids)
    for rows in batch_rows(found, batch_size, crop_tokens, rng):
        sequences, types, targets = [], [], []
        for question, passage, first, last, near, _ in found.examples[rows].tolist():
            ids = found.passages[passage]
            has_answer = first != NO_ANSWER
            kept = (first, last) if has_answer else (near, near)
            start = crop_start(len(ids), *kept, crop_tokens, rng)
            head = [*before, *found.questions[question].tolist(), *after]
            tail = [*ids[start : start + crop_tokens].tolist(), *after]
            sequences.append(head + tail)
            types.append([0] * len(head) + [1] * len(tail))
            shift = len(head) - start
            span = [first + shift, min(last, start + crop_tokens - 1) + shift]
            targets.append(span if has_answer else [0, 0])
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
