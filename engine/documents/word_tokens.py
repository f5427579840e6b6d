"""The words of the runs of text between blanks, and the number of tokens of each word.

Plain runs, most of a text in Western languages, are cut into words here and tokenized many at a time; the
tokens are checked against the words. Each word of other runs is tokenized by itself.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..tokenizers.unicode import CHINESE, NONSPACING_MARK, PUNCTUATION, character_class
from ..tokenizers.wordpiece import WordPieceTokenizer

Ints = NDArray[np.int32]

# White space according to Python; the last such character is U+3000.
BLANKS = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
# Punctuation marks and Chinese characters are words of their own, together with their combining marks.
SINGLE = f"[{character_class(PUNCTUATION, CHINESE)}]"
WORD = re.compile(f"{SINGLE}[{character_class(NONSPACING_MARK)}]*|[^{SINGLE[1:]}+")
# Latin letters, digits and punctuation, one character each after normalization. Without the underscore, next
# to which some added tokens are not found.
PLAIN = re.compile("[!-^`-~\u00c0-\u024f\u2010-\u2027]+")
# Whether each plain character, or the blank, is a word of its own.
IS_SINGLE = np.zeros(0x2028, np.bool_)
IS_SINGLE[[match.start() for match in re.finditer(f"{SINGLE}| ", "".join(map(chr, range(0x2028))))]] = True
# Runs and characters cut at a time, plain runs joined to one text, and words of a run compared at a time:
# bounds of memory.
BATCH_RUNS, BATCH_CHARACTERS, TEXT_RUNS, GROUP_WORDS = 1 << 14, 1 << 20, 128, 256
ROW_BYTES = 3 * np.dtype(np.int32).itemsize
MOST_RUNS = 1 << 17  # in a cache, which is then emptied


@dataclass(frozen=True)
class WordCache:
    """Facts about a tokenizer, and the words of runs seen before."""

    blanks: str  # at which it separates words; it drops some of the other `BLANKS`
    continues: NDArray[np.bool_]  # whether each token continues a word, ``(vocab_size,)``
    # characters of each token, ``(vocab_size,)``; 0 for tokens that are no part of a word, such as [MASK]
    lengths: Ints
    # for each run the bytes of an int32 array ``(n_words, 3)``: start and end of each word in the run, and
    # its number of tokens. Most runs of one document occur in the next.
    runs: dict[str, bytes]


WORD_CACHES: WeakKeyDictionary[WordPieceTokenizer, WordCache] = WeakKeyDictionary()


def word_cache(tokenizer: WordPieceTokenizer) -> WordCache:
    """Return the cache of a tokenizer; make it on first use."""
    if tokenizer not in WORD_CACHES:
        cut, *found = tokenizer.ids_batch([f"a{blank}a" for blank in " " + BLANKS])
        blanks = "".join(blank for blank, ids in zip(BLANKS, found, strict=True) if ids == cut)
        continues, lengths = np.zeros(tokenizer.vocab_size, bool), np.zeros(tokenizer.vocab_size, np.int32)
        for number in range(tokenizer.vocab_size):
            with suppress(KeyError):  # an id that no token has
                token = tokenizer.token(number)
                part = token.removeprefix(tokenizer.continuation) or token
                continues[number] = part != token
                lengths[number] = len(part) if WORD.fullmatch(part) else 0
        WORD_CACHES[tokenizer] = WordCache(blanks, continues, lengths, {})
    return WORD_CACHES[tokenizer]


@dataclass(frozen=True)
class RunWords:
    """The words of different runs, one run after the other."""

    first: Ints  # of run i, ``(n_runs + 1,)``
    starts: Ints  # spans of the words in their run, ``(n_words,)``
    ends: Ints
    counts: Ints  # their tokens, ``(n_words,)``


def words_of_runs(runs: Sequence[str], tokenizer: WordPieceTokenizer, cache: WordCache) -> RunWords:
    """Return the words of runs without blanks, from the cache where possible."""
    new = [run for run in runs if run not in cache.runs]
    for batch in batches(new):
        cache.runs.update(cut_plain([run for run in batch if PLAIN.fullmatch(run)], tokenizer, cache))
        cache.runs.update(cut_any([run for run in batch if run not in cache.runs], tokenizer))
    rows = [cache.runs[run] for run in runs]
    if len(cache.runs) > MOST_RUNS:
        WORD_CACHES[tokenizer] = replace(cache, runs={})
    words = np.frombuffer(b"".join(rows), np.int32).reshape(-1, 3)
    first = np.cumsum([0, *map(len, rows)], dtype=np.int32) // ROW_BYTES
    return RunWords(first, words[:, 0], words[:, 1], words[:, 2])


def batches(runs: Sequence[str]) -> Iterator[list[str]]:
    """Yield runs in batches of up to `BATCH_RUNS`, and of hardly more than `BATCH_CHARACTERS`."""
    batch: list[str] = []
    n_characters = 0
    for run in runs:
        batch.append(run)
        n_characters += len(run)
        if len(batch) == BATCH_RUNS or n_characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


def cut_plain(
    runs: Sequence[str], tokenizer: WordPieceTokenizer, cache: WordCache
) -> Iterator[tuple[str, bytes]]:
    """Cut plain runs into words and count the tokens of each; many runs are tokenized as one text.

    The tokens must begin where words begin and be as long as the words together. Otherwise the whole text is
    left out: it may contain an added token or an unknown word.
    """
    texts = [runs[begin : begin + TEXT_RUNS] for begin in range(0, len(runs), TEXT_RUNS)]
    found = plain_ids([" ".join(text) for text in texts], tokenizer)
    for text, ids in zip(texts, found, strict=True):
        words, first = plain_words(text)
        counts = token_counts(np.array(ids, np.int32), words[:, 1] - words[:, 0], cache)
        if counts is not None:
            rows = np.column_stack([words, counts]).astype(np.int32)  # (word, 3)
            content, places = rows.tobytes(), (first * ROW_BYTES).tolist()
            yield from zip(text, (content[a:b] for a, b in pairwise(places)), strict=True)


def plain_words(runs: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the words of plain runs, one run after the other, and the number of each run's first word.

    The words are spans in their run, ``(n_words, 2)``, the first words ``(n_runs + 1,)``.
    """
    codes = np.frombuffer(" ".join(runs).encode("utf-32-le"), np.uint32)
    blank, single = codes == ord(" "), IS_SINGLE[codes]
    borders = np.flatnonzero(np.append(True, single[1:] | single[:-1]))  # of words and blanks
    spans = np.column_stack([borders, np.append(borders[1:], len(codes))])[~blank[borders]]
    origins = np.append(0, np.flatnonzero(blank) + 1)  # (run,)
    first = np.append(np.searchsorted(spans[:, 0], origins), len(spans))
    return spans - np.repeat(origins, np.diff(first))[:, None], first


def token_counts(ids: Ints, lengths: Ints, cache: WordCache) -> Ints | None:
    """Return the number of tokens of each word, or None if tokens and words of these lengths do not match."""
    firsts = np.flatnonzero(~cache.continues[ids])
    covered = np.add.reduceat(cache.lengths[ids], firsts)  # (word,)
    if not np.array_equal(covered, lengths) or firsts[0] != 0:
        return None
    return np.diff(firsts, append=len(ids))


def cut_any(runs: Sequence[str], tokenizer: WordPieceTokenizer) -> Iterator[tuple[str, bytes]]:
    """Cut any runs into words, and count the tokens of each word by itself."""
    special = (re.escape(tokenizer.token(number)) for number in sorted(tokenizer.special_ids))
    pattern = re.compile("|".join([*special, WORD.pattern]))
    cut = []
    for words in map(pattern.findall, runs):
        cut.append([words[begin : begin + GROUP_WORDS] for begin in range(0, len(words), GROUP_WORDS)])
    # Each word by itself, and each group as one text.
    texts = list({text for groups in cut for group in groups for text in (*group, "".join(group))})
    ids = dict(zip(texts, plain_ids(texts, tokenizer), strict=True))
    for run, groups in zip(runs, cut, strict=True):
        spans, place = [], 0
        for word in (word for group in groups for word in separable(group, ids)):
            inner = strip_dropped(word, tokenizer)
            start = place + word.index(inner)
            if inner:
                spans.append((start, start + len(inner), len(ids[word])))
            place += len(word)
        yield run, np.array(spans, np.int32).tobytes()


def plain_ids(texts: Sequence[str], tokenizer: WordPieceTokenizer) -> Iterator[list[int]]:
    """Tokenize texts without special tokens around them."""
    return (tokenizer.around(ids)[1] for ids in tokenizer.ids_batch(list(texts)))


def separable(group: list[str], ids: dict[str, list[int]]) -> list[str]:
    """Return the words, or the whole group as one word if its words are tokenized otherwise by themselves."""
    whole = "".join(group)
    apart = len(group) == 1 or ids[whole] == [number for word in group for number in ids[word]]
    return group if apart else [whole]


def strip_dropped(word: str, tokenizer: WordPieceTokenizer) -> str:
    """Strip the white space around a word that the tokenizer drops as control characters."""
    inner = word.strip()
    if inner == word:
        return word
    around = word.replace(inner, "", 1)
    return inner if len(tokenizer.ids_batch([around])[0]) == tokenizer.n_special else word
