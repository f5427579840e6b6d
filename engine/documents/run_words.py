"""The words of runs of text between blanks, and the tokens of each.

Plain runs, the most of a text in Western languages, are cut into words here and tokenized many together;
what the tokenizer gives is checked against their words. The others are tokenized one by one, and each of
their words alone.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from operator import eq
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from engine.tokenizers.unicode import CHINESE, NONSPACING_MARK, PUNCTUATION, character_class
from engine.tokenizers.wordpiece import WordPieceTokenizer

Ints = NDArray[np.int32]

# What Python takes for white space; the last is U+3000.
BLANKS = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
# Whole words but for punctuation and Chinese characters, which are words of their own, with their marks.
ALONE = f"[{character_class(PUNCTUATION, CHINESE)}]"
WORD = re.compile(f"{ALONE}[{character_class(NONSPACING_MARK)}]*|[^{ALONE[1:]}+")
# Latin letters, digits and punctuation, which tokenizers write as one character each. Without the underscore:
# beside it, some added tokens are not found.
PLAIN = re.compile("[!-^`-~\u00c0-\u024f\u2010-\u2027]+")
# Of each plain character and the blank, whether it is no part of a longer word.
IS_ALONE = np.array([re.match(f"{ALONE}| ", chr(code)) is not None for code in range(0x2028)])
# So many runs are cut together, so many plain ones put in one text, and so many words of a run compared
# together: they bound the memory.
BATCH_RUNS, TEXT_RUNS, GROUP_WORDS = 1 << 14, 128, 256
ROW_BYTES = 3 * np.dtype(np.int32).itemsize
MOST_REMEMBERED = 1 << 17  # runs; then they are forgotten


@dataclass(frozen=True)
class Known:
    """What is remembered of a tokenizer from one text to the next.

    Attributes
    ----------
    blanks
        The blanks that it cuts words at; some others are to it no characters at all.
    continues
        Whether a token continues a word, ``(vocab_size,)``.
    lengths
        Characters that a token stands for, ``(vocab_size,)``; 0 for one that is not a word or a part of
        one, such as [MASK] and [UNK].
    runs
        The words of runs met before, which are mostly those of the next document: the bytes of an int32
        array of where each word starts and ends in its run, and its tokens, ``(n_words, 3)``.
    """

    blanks: str
    continues: NDArray[np.bool_]
    lengths: Ints
    runs: dict[str, bytes]


REMEMBERED: WeakKeyDictionary[WordPieceTokenizer, Known] = WeakKeyDictionary()


def known_of(tokenizer: WordPieceTokenizer) -> Known:
    """Return what is remembered of a tokenizer, or ask it for what there is to know."""
    if tokenizer not in REMEMBERED:
        cut, *found = tokenizer.ids_batch([f"a{blank}a" for blank in " " + BLANKS])
        blanks = "".join(blank for blank, ids in zip(BLANKS, found, strict=True) if ids == cut)
        continues, lengths = np.zeros(tokenizer.vocab_size, bool), np.zeros(tokenizer.vocab_size, np.int32)
        for number in range(tokenizer.vocab_size):
            with suppress(KeyError):  # an id that no token has
                token = tokenizer.token(number)
                part = token.removeprefix(tokenizer.continuation) or token
                continues[number] = part != token
                lengths[number] = len(part) if WORD.fullmatch(part) else 0
        REMEMBERED[tokenizer] = Known(blanks, continues, lengths, {})
    return REMEMBERED[tokenizer]


@dataclass(frozen=True)
class Words:
    """The words of different runs, one run after the other.

    ``first[i]`` is the first word of run i, ``(n_runs + 1,)``; ``starts`` and ``ends`` are the spans of
    the words in their run, and ``counts`` their tokens, ``(n_words,)``.
    """

    first: Ints
    starts: Ints
    ends: Ints
    counts: Ints


def words_of_runs(runs: Sequence[str], tokenizer: WordPieceTokenizer, known: Known) -> Words:
    """Return the words of runs without blanks, from memory where an earlier text had the run."""
    new = [run for run in runs if run not in known.runs]
    for begin in range(0, len(new), BATCH_RUNS):
        batch = new[begin : begin + BATCH_RUNS]
        known.runs.update(cut_plain([run for run in batch if PLAIN.fullmatch(run)], tokenizer, known))
        known.runs.update(cut_carefully([run for run in batch if run not in known.runs], tokenizer))
    rows = [known.runs[run] for run in runs]
    if len(known.runs) > MOST_REMEMBERED:
        REMEMBERED[tokenizer] = replace(known, runs={})
    words = np.frombuffer(b"".join(rows), np.int32).reshape(-1, 3)
    first = np.cumsum([0, *map(len, rows)], dtype=np.int32) // ROW_BYTES
    return Words(first, words[:, 0], words[:, 1], words[:, 2])


def cut_plain(
    runs: Sequence[str], tokenizer: WordPieceTokenizer, known: Known
) -> Iterator[tuple[str, bytes]]:
    """Cut plain runs into words and count the tokens of each, many runs in one text.

    Each token that does not continue a word must begin the next one, and those of a word be as long as it
    is, or the whole text is left out: it may spell out an added token, or have an unknown word.
    """
    texts = [runs[begin : begin + TEXT_RUNS] for begin in range(0, len(runs), TEXT_RUNS)]
    found = plain_ids([" ".join(text) for text in texts], tokenizer)
    for text, ids in zip(texts, found, strict=True):
        words, first = plain_words(text)
        counts = token_counts(np.array(ids, np.int32), words[:, 1] - words[:, 0], known)
        if counts is not None:
            rows = np.column_stack([words, counts]).astype(np.int32)  # (word, 3)
            content, places = rows.tobytes(), (first * ROW_BYTES).tolist()
            yield from zip(text, (content[a:b] for a, b in pairwise(places)), strict=True)


def plain_words(runs: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the words of plain runs, one run after the other, and which of them is the first of each.

    The words are their spans in their run, ``(n_words, 2)``; the others ``(n_runs + 1,)``.
    """
    codes = np.frombuffer(" ".join(runs).encode("utf-32-le"), np.uint32)
    blank, alone = codes == ord(" "), IS_ALONE[codes]
    borders = np.flatnonzero(np.append(True, alone[1:] | alone[:-1]))  # of words and blanks
    spans = np.column_stack([borders, np.append(borders[1:], len(codes))])[~blank[borders]]
    origins = np.append(0, np.flatnonzero(blank) + 1)  # (run,)
    first = np.append(np.searchsorted(spans[:, 0], origins), len(spans))
    return spans - np.repeat(origins, np.diff(first))[:, None], first


def token_counts(ids: Ints, lengths: Ints, known: Known) -> Ints | None:
    """Return how many tokens each word has, or None where they are not those of words of these lengths."""
    firsts = np.flatnonzero(~known.continues[ids])
    covered = np.add.reduceat(known.lengths[ids], firsts)  # (word,)
    if not np.array_equal(covered, lengths) or firsts[0] != 0:
        return None
    return np.diff(firsts, append=len(ids))


def cut_carefully(runs: Sequence[str], tokenizer: WordPieceTokenizer) -> Iterator[tuple[str, bytes]]:
    """Cut any runs into words, and count the tokens of each word alone."""
    special = (re.escape(tokenizer.token(number)) for number in sorted(tokenizer.special_ids))
    pattern = re.compile("|".join([*special, WORD.pattern]))
    cut = [list(groups_of(run, pattern)) for run in runs]
    ids = ids_of(cut, tokenizer)
    for run, groups in zip(runs, cut, strict=True):
        spans, place = [], 0
        for word in (word for group in groups for word in settled(group, ids)):
            inner = without_dropped(word, tokenizer)
            start = place + word.index(inner)
            if inner:
                spans.append((start, start + len(inner), len(ids[word])))
            place += len(word)
        yield run, np.array(spans, np.int32).tobytes()


def groups_of(run: str, pattern: re.Pattern[str]) -> Iterator[list[str]]:
    """Yield the words of a run, some of them at a time."""
    words = pattern.findall(run)
    for begin in range(0, len(words), GROUP_WORDS):
        yield words[begin : begin + GROUP_WORDS]


def ids_of(groups: Sequence[Sequence[list[str]]], tokenizer: WordPieceTokenizer) -> dict[str, list[int]]:
    """Tokenize each word, and each group of words as the text has it."""
    texts = list({word for run in groups for group in run for word in (*group, "".join(group))})
    return dict(zip(texts, plain_ids(texts, tokenizer), strict=True))


def plain_ids(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> Iterator[list[int]]:
    """Tokenize texts without special tokens around them."""
    empty, letter, *found = tokenizer.ids_batch(["", "a", *texts])
    before = sum(takewhile(bool, map(eq, empty, letter)))  # special tokens before a text
    after = len(empty) - before
    return (ids[before : len(ids) - after] for ids in found)


def settled(group: list[str], ids: dict[str, list[int]]) -> list[str]:
    """Return the words, or the group as one word where its words alone are not tokenized as within it.

    So it may be beside a token that the text spells out, and with a tokenizer that keeps accents.
    """
    whole = "".join(group)
    apart = len(group) == 1 or ids[whole] == [number for word in group for number in ids[word]]
    return group if apart else [whole]


def without_dropped(word: str, tokenizer: WordPieceTokenizer) -> str:
    """Return a word without the white space around it that the tokenizer drops as control characters."""
    inner = word.strip()
    if inner == word:
        return word
    around = word.replace(inner, "", 1)
    return inner if len(tokenizer.ids_batch([around])[0]) == tokenizer.n_special else word
