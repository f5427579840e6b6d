"""Texts of any length for benchmarks, from the words and sentences of the bundled corpus."""

import random
from collections.abc import Iterator, Sequence

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus


def corpus_words() -> list[str]:
    """Return the words of the bundled corpus, in order."""
    return " ".join(document.text for document in load_corpus()).split()


def passage(words: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Return ``n_words`` of the words that follow one another, from a random place."""
    start = rng.randrange(len(words) - n_words)
    return " ".join(words[start : start + n_words])


def drawn_sentences() -> Iterator[str]:
    """Yield sentences of the bundled corpus without end, drawn by a seed, each with its number."""
    texts = [path.read_text("utf-8") for path in sorted(BUNDLED_CORPUS.iterdir())]
    sentences = [one.strip() for text in texts for one in text.replace("\n", " ").split(". ") if one.strip()]
    draw = random.Random(0)
    while True:
        yield f"{draw.choice(sentences)} ({draw.randrange(10**6)})."
