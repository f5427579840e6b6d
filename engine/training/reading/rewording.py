"""Questions in other words: common words replaced by near ones of the token table.

Questions that were written with their passage in sight share its words, and a reader trained only on them
comes to rely on that; people ask in words of their own. The token table of an encoder trained on sentences
has words of one meaning near each other (rules, regulations; chosen, selected), so no dictionary is needed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...layers.tracing import Array
from ...tokenizers.text_tokenizer import TextTokenizer
from .examples import ReadingBatch
from .record_tables import draw
from .word_kinds import OPPOSITES, STOP_WORDS, WORD_KIND

WORD_INSIDE = re.compile(r"(?<=[^.!?:\n] )[A-Za-z][a-z]{2,}\b")  # not first in its sentence
LEAST_COUNT, LOWER_CASE = 5, 0.9  # of a common word: how often it is there, and written without a capital
LEAST_COSINE, N_NEAR = 0.46, 4
CANDIDATES = 30
ROWS = 2048  # of the table at once
SHARE = 0.5  # of the questions
# Chances of a word of a question to be replaced: where the passage has it, and where not.
IN_PASSAGE, ELSEWHERE = 0.45, 0.15
NEGATIONS = ("un", "in", "im", "non", "dis", "de", "re", "under", "over")


def common_words(texts: Iterable[str]) -> set[str]:
    """Return the words that are hardly ever written with a capital, so no names."""
    counts, lower = Counter[str](), Counter[str]()
    for text in texts:
        found = Counter(WORD_INSIDE.findall(text))
        for word, n in found.items():
            counts[word.lower()] += n
            lower[word] += n
    return {word for word, n in counts.items() if n >= LEAST_COUNT and lower[word] >= LOWER_CASE * n}


def near_tokens(texts: Iterable[str], tokenizer: TextTokenizer, token_table: Array) -> dict[int, list[int]]:
    """Return for each token of a common word up to `N_NEAR` that mean about the same, the nearest first.

    Inflections, opposites and words of a kind (months, colours) are left out. ``token_table`` is
    ``(vocab_size, d_model)``.
    """
    common = common_words(texts) - STOP_WORDS - set(WORD_KIND)
    words = {n: word for n in range(tokenizer.vocab_size) if (word := tokenizer.readable(n)) in common}
    ids = np.fromiter(words, np.int64)
    vectors = token_table[ids].astype(np.float32) - token_table.mean(axis=0, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)  # (n_words, d_model)
    near = dict[int, list[int]]()
    for start in range(0, len(ids), ROWS):
        cosines = vectors[start : start + ROWS] @ vectors.T  # (rows, n_words)
        order = np.argsort(-cosines, axis=1)[:, : CANDIDATES + 1]
        for number, cosine, places in zip(ids[start : start + ROWS].tolist(), cosines, order, strict=True):
            found = [int(ids[i]) for i in places if cosine[i] >= LEAST_COSINE]
            found = [other for other in found if means_the_same(words[number], words[other])][:N_NEAR]
            if found:
                near[number] = found
    return near


def means_the_same(word: str, other: str) -> bool:
    """Whether a near word may stand in for another: no inflection of it, and not its opposite."""
    stem = 4 if min(len(word), len(other)) >= 6 else 3
    if word[:stem] == other[:stem] or OPPOSITES.get(word) == other or OPPOSITES.get(other) == word:
        return False
    negated = any(word == prefix + other or other == prefix + word for prefix in NEGATIONS)
    return not negated and {word[:2], other[:2]} != {"in", "de"}  # increase, decrease


def in_other_words(
    batch: ReadingBatch, near: Mapping[int, list[int]], tokenizer: TextTokenizer, rng: np.random.Generator
) -> ReadingBatch:
    """Replace words in half of the questions, whose tokens stand before those of their passages."""
    sequences = [list(ids) for ids in batch.sequences]
    for ids, types, result in zip(batch.sequences, batch.types, sequences, strict=True):
        if rng.random() >= SHARE:
            continue
        n_head = types.index(1)
        passage = set(ids[n_head:])
        for i in range(1, n_head - 1):
            others, is_whole = near.get(ids[i]), not tokenizer.token(ids[i + 1]).startswith("##")
            if others and is_whole and rng.random() < (IN_PASSAGE if ids[i] in passage else ELSEWHERE):
                result[i] = draw(rng, others)
    return replace(batch, sequences=sequences)
