"""Texts of any length for benchmarks, from the words of the bundled corpus."""

import random
from collections.abc import Sequence

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus


def corpus_words() -> list[str]:
    """Return the words of the bundled corpus, in order."""
    return " ".join(document.text for document in load_corpus(BUNDLED_CORPUS)).split()


def passage(words: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Return ``n_words`` of the words that follow one another, from a random place."""
    start = rng.randrange(len(words) - n_words)
    return " ".join(words[start : start + n_words])
