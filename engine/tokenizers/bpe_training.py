"""Learning a byte-level BPE vocabulary from a text (Sennrich et al. 2016; on bytes, Radford et al. 2019).

The most frequent pair of neighbouring symbols becomes one symbol, repeatedly. The result equals that of
the `tokenizers` library's ``BpeTrainer``.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import regex

from ..errors import InputError
from .bpe import BPETokenizer
from .bpe_vocabulary import BYTE_LEVEL, BPEVocabulary, byte_characters, byte_symbols
from .patterns import GPT2, cut

Pair = tuple[int, int]
N_BYTES = 256


def learn_merges(text: str, vocab_size: int) -> list[tuple[str, str]]:
    """Learn merges, pairs of symbols, from a text; in the order of learning.

    The text is split into words by GPT-2's pattern, and no merge crosses a word boundary. The vocabulary has
    the 256 bytes and one token for each merge; fewer than asked for if no word has two symbols left.
    """
    if vocab_size < N_BYTES:
        raise InputError(
            f"a vocabulary of {vocab_size} has no room for the {N_BYTES} bytes: give {N_BYTES} or more"
        )
    if not text:
        raise InputError("there is no text to learn merges from: give one")
    symbols = sorted(byte_characters().values())
    words, counts = _words(text, {symbol: number for number, symbol in enumerate(symbols)})
    pairs, places = _count_pairs(words, counts)
    merges: list[tuple[str, str]] = []
    while len(symbols) < vocab_size and pairs:
        # Of equally frequent pairs, the one with the oldest symbols.
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append((symbols[best[0]], symbols[best[1]]))
        for number in places.pop(best):
            _replace(words[number], best, len(symbols), counts[number], number, pairs, places)
        del pairs[best]
        symbols.append("".join(merges[-1]))
    return merges


def bpe_tokenizer(merges: Sequence[tuple[str, str]]) -> BPETokenizer:
    """Return the tokenizer of learnt merges; ids are those of the bytes, then those of the merges."""
    symbols = [*sorted(byte_characters().values()), *(left + right for left, right in merges)]
    ranks = {pair: number for number, pair in enumerate(merges)}
    return BPETokenizer(
        BPEVocabulary(
            tokens={symbol: number for number, symbol in enumerate(symbols)},
            added=(),
            alphabet=BYTE_LEVEL,
            rank=lambda left, right: ranks.get((left, right)),
            patterns=(GPT2,),
        )
    )


def _words(text: str, ids: dict[str, int]) -> tuple[list[list[int]], list[int]]:
    """Ids of the bytes of each distinct word, and its count."""
    spans = cut(regex.compile(GPT2), text, 0, len(text))
    counted = Counter(text[start:end] for start, end in spans)
    return [[ids[symbol] for symbol in byte_symbols(word)] for word in counted], list(counted.values())


def _count_pairs(
    words: Sequence[Sequence[int]], counts: Sequence[int]
) -> tuple[Counter[Pair], defaultdict[Pair, set[int]]]:
    """Count of each pair of neighbours, and the numbers of the words that contain it."""
    pairs: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += counts[number]
            places[pair].add(number)
    return pairs, places


def _replace(
    word: list[int],
    pair: Pair,
    merged: int,
    count: int,
    number: int,
    pairs: Counter[Pair],
    places: defaultdict[Pair, set[int]],
) -> None:
    """Merge a pair everywhere in a word, from the left, and update the counts of its neighbours."""
    i = 0
    while i < len(word) - 1:
        if (word[i], word[i + 1]) == pair:
            for before, after in _neighbours(word, i, merged):
                _add(pairs, before, -count)
                _add(pairs, after, count)
                places[after].add(number)
            word[i : i + 2] = [merged]
        i += 1


def _neighbours(word: Sequence[int], i: int, merged: int) -> list[tuple[Pair, Pair]]:
    """Pairs next to ``word[i : i + 2]``, before and after those two are merged."""
    changed = []
    if i > 0:
        changed.append(((word[i - 1], word[i]), (word[i - 1], merged)))
    if i + 2 < len(word):
        changed.append(((word[i + 1], word[i + 2]), (merged, word[i + 2])))
    return changed


def _add(pairs: Counter[Pair], pair: Pair, count: int) -> None:
    pairs[pair] += count
    if pairs[pair] <= 0:
        del pairs[pair]
