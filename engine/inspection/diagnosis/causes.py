"""The causes that a diagnosis shows, each with the rank that the passage would have without it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...documents.splitters import MIN_CHUNK_TOKENS, SPLITTERS
from ...documents.units import sentence_starts
from ...models.prompts import Role
from ...retrieval.relevance import chance_words
from ...retrieval.retrievers import RETRIEVERS
from ...settings import Configuration
from .diagnose import Cause, Diagnosis

WHOLE = 0.9  # from this share on a chunk counts as holding a passage whole
MOSTLY = 0.5  # from this share on, an unread part of a passage, or a passage within its chunk, is decisive

OWN_WORDS = "Ask in the words of the text."
NOT_THERE = Cause(
    "not in the corpus",
    "None of the documents holds this text, or anything like it: no setting can find it.",
    "Add the document.",
)


@dataclass(frozen=True)
class InUse:
    """The settings in use, which no advice may repeat, and the passage's rank under them."""

    configuration: Configuration  # the settings; ``max_tokens`` is a number
    longest: int  # the most tokens that the encoder can read
    rank: int | None  # rank of the passage by their retriever; None where it does not find it
    # the prompts that the model was trained with and the settings leave out, as in `Prompts.in_search`
    prompts_left_out: Mapping[Role, str] = field(default_factory=dict)
    # relevance of the nearest of the ``k`` passages found, as `NullScores.relevance`, and the lowest that
    # gives an answer
    relevance: float = 100.0
    min_relevance: float = 0.0

    @property
    def finds(self) -> bool:
        """Whether the passage is among the first ``k``."""
        return self.rank is not None and self.rank <= self.configuration.k

    @property
    def reads_vectors(self) -> bool:
        """Whether the retriever compares vectors: all do but BM25."""
        return self.configuration.retriever != "bm25"

    @property
    def outcome(self) -> str:
        """The rank in words: ``"BM25 (words) ranks it 7"``."""
        ranks = "does not find it" if self.rank is None else f"ranks it {self.rank:,}"
        return f"{RETRIEVERS[self.configuration.retriever].label} {ranks}"


def causes(diagnosis: Diagnosis | None, used: InUse | None = None) -> tuple[Cause, ...]:
    """Return the causes why a passage is not found, or not used, the easiest to fix first; none where it is.

    A cause is a condition without which the passage would rank among the first ``k`` by cosine, or text that
    was never read. Where there is none, the question shares no word with the passage, or other chunks are
    nearer. Diagnosis and settings are None for a passage that is in no document.
    """
    if diagnosis is None or used is None:
        return (NOT_THERE,)
    if used.finds:
        return () if used.relevance >= used.min_relevance else (not_relevant(used),)
    if diagnosis.found:
        return (reordered(diagnosis, used),)
    if used.reads_vectors and used.prompts_left_out:
        return (prompts_missing(used), *own_causes(diagnosis, used))
    return own_causes(diagnosis, used)


def not_relevant(used: InUse) -> Cause:
    """Return the cause that the passage is found, but nothing found is near enough to give an answer."""
    chance = chance_words(used.relevance)
    return Cause(
        "not relevant",
        f"No answer is given from it: {chance} as the nearest one found here, and at most "
        f"{100 - used.min_relevance:.0f} may.",
        f"{OWN_WORDS[:-1]}, or lower the relevance threshold on “Ask your documents”, in the sidebar.",
        used.rank,
    )


def own_causes(diagnosis: Diagnosis, used: InUse) -> tuple[Cause, ...]:
    """Return the causes in cutting, reading and ranking."""
    found: tuple[Cause, ...] = ()
    if used.reads_vectors:
        cut = (*truncated(diagnosis, used), *split(diagnosis, used)) or tuple(pooled_away(diagnosis, used))
        found = (*cut, *near_duplicates(diagnosis, used), *word_mismatch(diagnosis, used))
    return found or tuple(other_words(diagnosis, used)) or (outranked(diagnosis, used),)


def prompts_missing(used: InUse) -> Cause:
    """Return the cause that the model expects an instruction that was not given."""
    names: dict[Role, str] = {"query": "questions", "document": "documents"}
    before = " and ".join(f"“{text}” before {names[role]}" for role, text in used.prompts_left_out.items())
    return Cause(
        "prompts left out",
        f"The model was trained with {before}, and the settings leave that out.",
        "Use the model's own prompts.",
    )


def reordered(diagnosis: Diagnosis, used: InUse) -> Cause:
    """Return the cause that the passage's vector is near, and the retriever puts others first."""
    return Cause(
        "retriever",
        f"By its vector it would rank {diagnosis.now.rank:,}; {used.outcome}.",
        f"For this question take the retriever {RETRIEVERS['dense'].label}: others change too, so measure "
        "it.",
        diagnosis.now.rank,
    )


def truncated(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that half of the passage, or its decisive part, lies beyond the token limit."""
    if diagnosis.tail_read is None or not diagnosis.unread:
        return
    n_lost, rank = diagnosis.n_unread, diagnosis.tail_read.rank
    ways = ["raise the limit"] * ((used.configuration.max_tokens or 0) < used.longest)
    if rank <= diagnosis.k or n_lost >= MOSTLY * diagnosis.length:
        yield Cause(
            "truncated",
            f"{n_lost:,} of its {diagnosis.length:,} characters lie beyond the token limit, and the encoder "
            f"never read them. With the chunk read to its end it would rank {rank:,} instead of "
            f"{diagnosis.now.rank:,} by cosine.",
            advice([*ways, "cut smaller chunks"]),
            rank,
        )


def split(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that no chunk holds the passage whole."""
    rank, configuration = diagnosis.centred.rank, used.configuration
    splitter = SPLITTERS[configuration.splitter]
    ways = ["let chunks overlap more"] * (
        not splitter.is_sliding and configuration.overlap < configuration.chunk_tokens // 2
    )
    if sentence_starts not in splitter.units:
        ways += ["cut at sentences"]
    elif configuration.chunk_tokens < used.longest:
        ways += ["cut larger chunks"]
    if diagnosis.share < WHOLE and rank <= diagnosis.k:
        yield Cause(
            "split",
            f"It is cut across a border: no chunk holds more than {diagnosis.share:.0%} of it. A chunk of "
            f"that length with all of it in the middle would rank {rank:,} by cosine.",
            advice(ways),
            rank,
        )


def near_duplicates(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that near duplicates take the ranks above the passage."""
    if diagnosis.repeats and diagnosis.without_repeats <= diagnosis.k:
        n_above = sum(len(set(group) - {diagnosis.row}) for group in diagnosis.repeats)
        ways = ["search by maximal marginal relevance"] * (used.configuration.retriever != "mmr")
        yield Cause(
            "near duplicates",
            f"{n_above:,} of the {len(diagnosis.above):,} chunks above it by cosine nearly repeat one "
            f"another or it. With one place for all that say the same it would rank "
            f"{diagnosis.without_repeats:,}.",
            advice(["remove duplicates", *ways]),
            diagnosis.without_repeats,
        )


def pooled_away(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that the passage would be found by itself, but its chunk is mostly other text."""
    rank = diagnosis.by_itself.rank
    ways = ["try smaller chunks: others change too, so measure it"]
    if rank <= diagnosis.k and diagnosis.part < MOSTLY:
        yield Cause(
            "pooled away",
            f"It is {diagnosis.part:.0%} of the text of its chunk, whose one vector stands for everything in "
            f"it. As a chunk of its own it would rank {rank:,} by cosine.",
            advice(ways * (used.configuration.chunk_tokens > 2 * MIN_CHUNK_TOKENS)),
            rank,
        )


def word_mismatch(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that BM25 finds the passage and no vector does, not even the passage's own."""
    rank = diagnosis.bm25.rank
    retriever = RETRIEVERS[used.configuration.retriever]
    way = f"search by both at once ({RETRIEVERS['weighted'].label})"
    if retriever.uses_bm25:
        way = f"the retriever in use, {retriever.label}, mixes both: search by BM25 only"
    if diagnosis.bm25.score > 0 and rank <= diagnosis.k < diagnosis.by_itself.rank:
        yield Cause(
            "word mismatch",
            f"Its words match where its vector does not: BM25, which counts words, ranks it {rank:,}. Names, "
            "codes and numbers are often so.",
            advice([way]),
            rank,
        )


def other_words(diagnosis: Diagnosis, used: InUse) -> Iterator[Cause]:
    """Yield the cause that question and passage share no content word."""
    if used.rank is None:
        yield Cause(
            "other words",
            "The question shares no content word with a chunk of the passage, and BM25 finds no chunk "
            f"without one; by its vector it would rank {diagnosis.now.rank:,}.",
            OWN_WORDS,
        )
    elif not diagnosis.shared_words:
        yield Cause(
            "other words",
            "The question has no word of the passage but function words"
            + (", and the vectors do not bridge that either" if used.reads_vectors else "")
            + ".",
            OWN_WORDS,
        )


def outranked(diagnosis: Diagnosis, used: InUse) -> Cause:
    """Return the cause that remains: other chunks are nearer to the question."""
    is_well_cut = diagnosis.share >= WHOLE and not diagnosis.unread
    n_above = (used.rank or diagnosis.now.rank) - 1
    return Cause(
        "outranked",
        ("It was cut and read as it should be, but " if is_well_cut else "")
        + f"{n_above:,} other chunks rank higher"
        + (", and would if it were cut and read whole" if used.reads_vectors and not is_well_cut else "")
        + ".",
        "See below what they share with the question, and which settings rank it higher.",
    )


def advice(ways: Sequence[str]) -> str:
    """``["raise the limit", "cut smaller chunks"] -> "Raise the limit, or cut smaller chunks."``."""
    words = ", or ".join(ways)
    return f"{words[0].upper()}{words[1:]}." if words else "See below which settings rank it higher."
