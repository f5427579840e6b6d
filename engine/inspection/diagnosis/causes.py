"""The causes that a diagnosis shows, each with the rank that the passage would have without it."""

from collections.abc import Iterator

from engine.inspection.diagnosis.diagnose import Cause, Diagnosis

WHOLE = 0.9  # from this share on a chunk counts as holding a passage whole
MOSTLY = 0.5  # from this share on, a lost part of a passage, or a passage within its chunk, is decisive

NOT_THERE = Cause(
    "not in the corpus",
    "None of the documents holds this text, or anything like it: no setting can find it. Add the document.",
)


def causes(diagnosis: Diagnosis | None) -> tuple[Cause, ...]:
    """Return the causes why a passage is not found, the easiest to fix first; none where it is found.

    A cause is a condition without which the passage would rank among the first ``k``, or text that was
    never read. Where there is none, the question shares no word with the passage, or other chunks are nearer.

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
    """Yield the cause that half of the passage, or its decisive part, lies beyond the token limit."""
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
    """Yield the cause that no chunk holds the passage whole."""
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
    """Yield the cause that near duplicates take the ranks above the passage."""
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
    """Yield the cause that the passage alone would be found, but its chunk's vector is mostly other text."""
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
    """Yield the cause that BM25 finds the passage and no vector does, not even that of the passage alone."""
    rank = diagnosis.bm25.rank
    if diagnosis.bm25.score > 0 and rank <= diagnosis.k < diagnosis.alone.rank:
        yield Cause(
            "word mismatch",
            f"Its words match where its vector does not: BM25, which counts words, ranks it {rank:,}. Names, "
            "codes and numbers are often so. Search by both at once (hybrid).",
            rank,
        )


def other_words(diagnosis: Diagnosis) -> Iterator[Cause]:
    """Yield the cause that question and passage share no content word."""
    if not diagnosis.shared_words:
        yield Cause(
            "other words",
            "The question has no word of the passage but function words, and the vectors do not bridge "
            "that either. Ask in the words of the text.",
        )


def outranked(diagnosis: Diagnosis) -> Cause:
    """Return the cause that remains: other chunks are nearer to the question."""
    return Cause(
        "outranked",
        f"It was cut and read as it should be, but {len(diagnosis.above):,} other chunks are "
        "nearer to the question. See below what they share with it, and which settings rank it higher.",
    )
