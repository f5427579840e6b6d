"""The causes that a diagnosis shows, each with the rank that the passage would have without it."""

from collections.abc import Iterator

from engine.inspection.diagnosis import Cause, Diagnosis

WHOLE = 0.9  # share of a passage from which on a chunk counts as holding it whole
MOSTLY = 0.5  # share of a passage that is lost, or of a chunk that is the passage, from which on it decides

NOT_THERE = Cause(
    "not in the corpus",
    "None of the documents holds this text, or anything like it: no setting can find it. Add the document.",
)


def causes(diagnosis: Diagnosis | None) -> tuple[Cause, ...]:
    """Say why a passage is not found, what is mended most directly first; nothing where it is found.

    A cause is what, taken away, brings the passage among the first ``k``, and a passage that was never
    read. Where there is none, the question has no word of the passage, or other chunks are simply nearer.

    Parameters
    ----------
    diagnosis
        The diagnosis, None for a passage that is in no document.
    """
    if diagnosis is None:
        return (NOT_THERE,)
    if diagnosis.found:
        return ()
    lost = (*truncated(diagnosis), *split(diagnosis)) or tuple(pooled_away(diagnosis))
    found = (*lost, *near_duplicates(diagnosis), *word_mismatch(diagnosis))
    return found or tuple(other_words(diagnosis)) or (outranked(diagnosis),)


def truncated(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that the passage lies behind the token limit: half of it, or what finds it."""
    if diagnosis.tail_read is None or not diagnosis.unread:
        return
    n_lost, rank = diagnosis.n_unread, diagnosis.tail_read.rank
    if rank <= diagnosis.k or n_lost >= MOSTLY * diagnosis.length:
        yield Cause(
            "truncated",
            f"{n_lost:,} of its {diagnosis.length:,} characters lie beyond the token limit, and were never "
            f"read. With the chunk read to its end it would rank {rank:,} instead of "
            f"{diagnosis.now.rank:,}. Raise the limit, or cut smaller chunks.",
            rank,
        )


def split(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that no chunk holds the passage whole."""
    rank = diagnosis.centred.rank
    if diagnosis.share < WHOLE and rank <= diagnosis.k:
        yield Cause(
            "split",
            f"It is cut across a border: no chunk holds more than {diagnosis.share:.0%} of it. A chunk of "
            f"that length with all of it in the middle would rank {rank:,}. Let chunks overlap more, or cut "
            "at sentences.",
            rank,
        )


def near_duplicates(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that chunks which say the same take the places before it."""
    if diagnosis.repeats and diagnosis.without_repeats <= diagnosis.k:
        n_above = sum(len(set(group) - {diagnosis.row}) for group in diagnosis.repeats)
        yield Cause(
            "near duplicates",
            f"{n_above:,} of the {len(diagnosis.above):,} chunks above it nearly repeat one another or it. "
            f"With one place for all that say the same it would rank {diagnosis.without_repeats:,}. Remove "
            "duplicates, or search by maximal marginal relevance.",
            diagnosis.without_repeats,
        )


def pooled_away(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that the passage alone would be found, and is lost among the other text of its chunk."""
    rank = diagnosis.alone.rank
    if rank <= diagnosis.k and diagnosis.part < MOSTLY:
        yield Cause(
            "pooled away",
            f"It is {diagnosis.part:.0%} of the text of its chunk, whose one vector stands for everything in "
            f"it. As a chunk of its own it would rank {rank:,}. Try smaller chunks: others change too, so "
            "measure it.",
            rank,
        )


def word_mismatch(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that the words are there, and no vector shows it, not even that of the passage alone."""
    rank = diagnosis.bm25.rank
    if diagnosis.bm25.score > 0 and rank <= diagnosis.k < diagnosis.alone.rank:
        yield Cause(
            "word mismatch",
            f"Its words match where its vector does not: BM25, which counts words, ranks it {rank:,}. Names, "
            "codes and numbers are often so. Search by both at once (hybrid).",
            rank,
        )


def other_words(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield that the question is asked in words that the passage does not use."""
    if not diagnosis.shared_words:
        yield Cause(
            "other words",
            "The question has no word of the passage but function words, and the vectors do not bridge "
            "that either. Ask in the words of the text.",
        )


def outranked(diagnosis: Diagnosis) -> Cause:
    """Say that nothing is wrong with the passage: other chunks are nearer."""
    return Cause(
        "outranked",
        f"It was cut and read as it should be, but {len(diagnosis.above):,} other chunks are "
        "nearer to the question. See below what they share with it, and which settings rank it higher.",
    )
