"""The sentences of passages that answer a question best: what an answer quotes.

A sentence says little without those around it: in "It was extended in 1986" the subject stands elsewhere. So
each sentence is read with its passage, and its vector is the mean of its own tokens' (late chunking, Günther
et al. 2024). What all candidates share, such as the subject of the passages, tells none of them apart: their
mean is subtracted from question and sentences before the cosine, and a word counts the more, the fewer
candidates have it. A linear model of `FEATURES` ranks the sentences; ``python -m benchmarks.answers --fit``
computes its weights.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import compress, groupby, takewhile

import numpy as np

from ..documents.chunk_context import RULE
from ..documents.document import Chunk, Document
from ..documents.language import ENGLISH
from ..documents.sentences import CELL_GAP, MARK_AT_END, sentence_spans, stripped
from ..layers.activation import softmax
from ..layers.norm import l2_normalize
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.parallel import row_spans
from .bm25 import word_idf
from .embedding_model import Model, encode_by
from .embedding_spec import NO_LIMIT, EmbeddingSpec
from .index import Hit, Index
from .language_fit import is_for_english
from .maxsim import unit_vectors
from .vector_cache import VectorCache
from .words import IS_UNSPACED, words

LONGEST_SENTENCE = 450  # characters; what is longer, as a table is, is quoted in parts
SHORTEST_SENTENCE = 3
HEADING = re.compile(r"#{1,6}\s.*|(=+)\s.*\s\1")  # in Markdown, and in the spelling of WikiText
LINK_TARGET = re.compile(r"\[(?!\^)[^]\n]+\]:\s*\S+(\s+[\"'(].*)?")  # "[name]: address", but no note
LIST_NUMBER, BULLET = re.compile(r"\d+[.)]\s+"), re.compile(r"[-–*•◦▪●○■]\s|・")
LABEL = re.compile(r"(:\**\s|：)\s*\S")  # "Best month: June"
HEADING_WORDS, HEADING_LENGTH = 4, 60  # at most, of a line that is a heading because no full stop ends it
RUN_TOKENS = 192  # of the sentences that are read together
KEPT_TEXTS = 2048  # with their sentences or words
latest_vectors = cache(partial(VectorCache, None, 20 * 1024**2))  # in memory, for indexes without a cache
spans_of = lru_cache(maxsize=KEPT_TEXTS)(sentence_spans)

SMALL_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|"
    "trillion|half|third|quarter|first|second|twice|once"
)
MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
# What a question asks for, and what a sentence that answers it holds: the first kind that fits counts.
KINDS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "number": (
        re.compile(
            r"\bhow (many|much|long|large|big|far|old|tall|fast|often|high|low|small|deep|heavy|wide)\b"
            r"|\b(percent(age)?|share|number|price|cost|size|length|amount|rate|proportion|dose|sum|age)\b",
            re.IGNORECASE,
        ),
        re.compile(rf"\d|\b({SMALL_NUMBERS})\b", re.IGNORECASE),
    ),
    "date": (
        re.compile(r"\bwhen\b|\b(what|which) (year|date|day|month|season|decade|century)\b", re.IGNORECASE),
        re.compile(
            rf"\b(1\d|20)\d\d\b|\b({MONTHS})\b|\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
            r"century|spring|summer|autumn|winter|days?|weeks?|months?|years?)\b",
            re.IGNORECASE,
        ),
    ),
    "name": (
        re.compile(r"\bwho(m|se)?\b|\bwhere\b|\bname of\b", re.IGNORECASE),
        re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'’-]+"),
    ),
}


@dataclass(frozen=True)
class CandidateSentence:
    """A sentence that may be quoted: ``text`` is the span ``[start, end)`` of its document."""

    document: str
    start: int
    end: int
    text: str
    place: int  # of its passage among the hits

    def holds(self, document: str, start: int) -> bool:
        """Whether a character of a document is within this sentence."""
        return self.document == document and self.start <= start < self.end


@dataclass(frozen=True)
class Quote(CandidateSentence):
    """A sentence with its score."""

    cosine: float  # of its vector and the question's, without subtracting a mean
    features: tuple[float, ...] = field(repr=False)  # the values of `FEATURES`
    score: float  # the weighted sum of these
    probability: float  # the softmax of the scores of all candidates


@dataclass(frozen=True)
class Run:
    """Consecutive sentences that are read together: their ids, and the tokens of each sentence among them."""

    ids: tuple[int, ...]
    tokens: tuple[tuple[int, int], ...]


def candidates(hits: Sequence[Hit], index: Index) -> list[CandidateSentence]:
    """Return the sentences of passages, each once, in the order of the passages.

    Headings and questions are left out. A row of a table is quoted whole where none of its cells holds
    several sentences: "price: 4" does not say of what.

    A sentence belongs to a passage that holds at least half of it, or that it fills at least half of. Where a
    passage begins or ends within one, it is whole all the same.
    """
    found: dict[tuple[str, int, int], CandidateSentence] = {}
    for place, hit in enumerate(hits):
        chunk = hit.chunk
        text = index.document_text(chunk.document)
        if record := record_span(index.documents[chunk.document], chunk):
            key = chunk.document, *record
            found.setdefault(key, CandidateSentence(*key, text[slice(*record)], place))
            continue
        before = max(0, chunk.start - LONGEST_SENTENCE)
        for start, end in short_sentences(text, before, chunk.end + LONGEST_SENTENCE):
            inside = min(end, chunk.end) - max(start, chunk.start)
            is_own = 2 * inside >= min(end - start, chunk.end - chunk.start)
            if is_own and not is_question(text[start:end]) and not is_heading(text, start, end, chunk):
                key = chunk.document, start, end
                found.setdefault(key, CandidateSentence(*key, text[start:end], place))
    return list(found.values())


def record_span(document: Document, chunk: Chunk) -> tuple[int, int] | None:
    """Return the row of a table that a chunk is in, None where it is none or is no record of short cells."""
    row = document.row_at(chunk.end - 1)  # before the first of a sheet stands its name
    if row is None or row[1] - row[0] > LONGEST_SENTENCE:
        return None
    text = document.text[slice(*row)]
    return row if len(sentence_spans(text)) <= text.count("\n") + 1 else None


def is_question(sentence: str) -> bool:
    """Whether a sentence is a question, which is no evidence for an answer."""
    return sentence.rstrip(" \n\"'”’)*_").endswith(("?", "？", "؟"))


def is_heading(text: str, start: int, end: int, chunk: Chunk) -> bool:
    """Whether ``text[start:end]`` is a heading, of columns too, a line of marks, or the target of a link.

    A line of a few words without a full stop, such as "2. Copenhagen, Denmark", is one too, unless it holds
    a number of its own, a label with its value or cells of a table, or an item of a list follows. Two
    characters of a script without blanks count as a word.
    """
    line = text[start:end]
    if HEADING.fullmatch(line) or LINK_TARGET.fullmatch(line) or not any(map(str.isalnum, line)):
        return True
    if is_row_of_heads(text, end) or is_above_numbers(text, start, end):
        return True
    begins_line = text[start - 1 : start] in ("", "\n")
    if not begins_line or end >= chunk.end or text[end] != "\n":
        return False
    title = LIST_NUMBER.sub("", line)
    n_words = max(len(title.split()), len(IS_UNSPACED.findall(title)) // 2)
    is_short = len(title) <= HEADING_LENGTH and n_words <= HEADING_WORDS
    is_value = has_digit(title) or CELL_GAP in line or LABEL.search(line)
    is_said = is_value or BULLET.match(line) or MARK_AT_END.search(line)
    after = text[end : end + 8].lstrip()
    return is_short and not is_said and not BULLET.match(after) and not LIST_NUMBER.match(after)


def short_sentences(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences in ``text[first:last]``, without white space around them.

    Those longer than `LONGEST_SENTENCE` are cut where a clause, or else a word, ends.
    """
    for start, end in spans_of(text[first:last]):
        start, end = stripped(text, first + start, first + end)
        while end - start > LONGEST_SENTENCE:
            cut = clause_end(text, start)
            yield stripped(text, start, cut)
            start, end = stripped(text, cut, end)
        if end - start >= SHORTEST_SENTENCE:
            yield start, end


def clause_end(text: str, start: int) -> int:
    """Return where to cut a long sentence: after the last mark that divides clauses, or the last word."""
    low, high = start + LONGEST_SENTENCE // 4, start + LONGEST_SENTENCE
    for mark in ("\n", ". ", "; ", " "):
        place = text.rfind(mark, low, high)
        if place >= 0:
            return place + 1
    return high


def runs_of(
    sentences: Sequence[CandidateSentence], encoder: Encoder, max_tokens: int | None
) -> Iterator[Run]:
    """Yield the sentences of each passage in runs that the encoder reads at once."""
    tokenizer = encoder.tokenizer
    before, _, after = tokenizer.around(tokenizer.encode("").ids)
    room = min(RUN_TOKENS, encoder.token_limit(max_tokens)) - tokenizer.n_special
    texts = tokenizer.ids_batch([sentence.text for sentence in sentences])
    inner = [tokenizer.around(ids)[1][:room] for ids in texts]
    for _, group in groupby(range(len(sentences)), key=lambda number: sentences[number].place):
        ids: list[int] = [*before]
        tokens: list[tuple[int, int]] = []
        for number in group:
            if tokens and len(ids) - len(before) + len(inner[number]) > room:
                yield Run((*ids, *after), tuple(tokens))
                ids, tokens = [*before], []
            tokens.append((len(ids), len(ids) + len(inner[number])))
            ids += inner[number]
        yield Run((*ids, *after), tuple(tokens))


def sentence_vectors(
    sentences: Sequence[CandidateSentence], encoder: Encoder, index: Index
) -> tuple[Array, Array]:
    """Return vectors ``(n_sentences, d_model)`` of sentences, and of the runs that each was read in.

    Both are means of unit token vectors, scaled to length 1.
    """
    runs = list(runs_of(sentences, encoder, index.spec.max_tokens))
    found = run_means(list(dict.fromkeys(runs)), encoder, index.cache or latest_vectors())
    own = np.concatenate([found[run][:-1] for run in runs])
    around = np.concatenate([found[run][-1:].repeat(len(run.tokens), axis=0) for run in runs])
    return l2_normalize(own), l2_normalize(around)


def run_means(runs: Sequence[Run], encoder: Encoder, cache: VectorCache) -> dict[Run, Array]:
    """Return the mean of each sentence of distinct runs, and of the run: ``(n_sentences + 1, d_model)``.

    Those in the cache come from there, the others are put into it.
    """
    spec = EmbeddingSpec(encoder.fingerprint, "sentences", NO_LIMIT, encoder.config.d_model)
    keys = [f"{run.ids} {span}" for run in runs for span in (*run.tokens, None)]
    vectors, is_known = cache.get_many(keys, spec)
    rows = dict(zip(runs, row_spans([len(run.tokens) + 1 for run in runs]), strict=True))
    new = [run for run, own in rows.items() if not is_known[own].all()]
    tokens = unit_vectors([run.ids for run in new], encoder)  # (tokens of all new runs, d_model)
    for run, own in zip(new, row_spans([len(run.ids) for run in new]), strict=True):
        states = tokens[own]
        means = [states[a:b].mean(axis=0) if a < b else 0 * states[0] for a, b in run.tokens]
        vectors[rows[run]] = [*means, states.mean(axis=0)]
    if new:
        cache.put_many([*compress(keys, ~is_known)], vectors[~is_known], spec)
    return {run: vectors[own] for run, own in rows.items()}


# What `sentence_features` computes, with the weight of each.
FEATURES = {
    "cosine without the mean of all candidates": 6.6,
    "cosine without the mean of its passage": 4.7,
    "share of the question's words": 3.7,
    "share of the question's words in its passage": 3.6,
    "holds the kind of answer asked for": 1.0,
    "number of words that the question lacks": 0.6,
}
N_COSINES = 2  # the first features
# Times them in languages that a model was not trained on, whose cosines tell little and spread as much. The
# sentence that answers comes first for 115 of 120 questions in ten languages with 0.25 or 0.5, 103 with 1 and
# 112 with 0, by all-MiniLM-L6-v2 on ``benchmarks/languages.json``.
UNTRAINED = 0.25


def sentence_features(
    question: str,
    sentences: Sequence[CandidateSentence],
    hits: Sequence[Hit],
    vectors: tuple[Array, Array],
    query: Array,
    index: Index,
) -> Array:
    """Compute `FEATURES` of each sentence: ``(n_sentences, n_features)``.

    ``vectors`` are those of `sentence_vectors`, ``query`` is the question's ``(d_model,)``, of length 1. BM25
    of the index tells how rare words are.
    """
    own, around = vectors
    mean = own.mean(axis=0)
    of_hits = [index.languages[hit.chunk.document] for hit in hits]
    asked = telling_words(question, of_hits[0])
    passages = [set(telling_words(hit.chunk.text, own)) for hit, own in zip(hits, of_hits, strict=True)]
    idf = {stem: index.words.idf(stem) for stem in asked}
    present = [set(telling_words(each.text, of_hits[each.place])) for each in sentences]
    rare = {stem: idf[stem] * rarity(sum(stem in each for each in present), len(present)) for stem in idf}
    return np.stack(
        [
            cosines(own - mean, query - mean),
            cosines(own - around, query - around),
            [share_of(rare, each) for each in present],
            [share_of(idf, passages[each.place]) for each in sentences],
            [kind_match(question, each.text, set(asked)) for each in sentences],
            [np.log1p(len(each - set(asked))) for each in present],
        ],
        axis=1,
    )


@lru_cache(maxsize=KEPT_TEXTS)
def telling_words(text: str, language: str) -> list[str]:
    """Return the stems of a text's words, without those that tell nothing of a subject."""
    return words([text], [language], leave_out_more=True)[0]


def cosines(rows: Array, others: Array) -> Array:
    """Return the cosine of each row with a vector, or with its own: ``(n, d), (d,) or (n, d) -> (n,)``."""
    return (l2_normalize(rows) * l2_normalize(others)).sum(axis=-1)


def rarity(n_with: int, n: int) -> float:
    """Return the weight of a word that ``n_with`` of ``n`` sentences hold, 0 if none does."""
    return word_idf(n_with, n) if n_with else 0.0


def share_of(weights: dict[str, float], present: set[str]) -> float:
    """Return the weight of the words that are present, as a share of all; 0 without words."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in present) / total if total else 0.0


def kind_match(question: str, sentence: str, asked: set[str]) -> float:
    """Return 1 if a sentence holds the kind of answer that is asked for, -1 if not, 0 if no kind is known.

    A name counts only if the question does not give it.
    """
    for name, (asks, answers) in KINDS.items():
        if asks.search(question):
            found = [match.group() for match in answers.finditer(sentence)]
            if name == "name":
                found = [one for one, stem in zip(found, words(found), strict=True) if not asked & set(stem)]
            return 1.0 if found else -1.0
    return 0.0


def find_evidence(question: str, hits: Sequence[Hit], index: Index, encoder: Model) -> tuple[Quote, ...]:
    """Rank the sentences of passages by how well they answer a question, best first.

    The passages are of the index, and the encoder made its vectors. Sentences are compared by the mean of
    their tokens, whatever the pooling of the index; a model without token vectors embeds each on its own.
    """
    sentences = candidates(hits, index)
    if not sentences:
        return ()
    if (with_tokens := encoder.as_encoder) is not None:
        vectors = sentence_vectors(sentences, with_tokens, index)
        [query] = with_tokens.encode([question], "mean", max_tokens=index.spec.max_tokens)  # (d_model,)
    else:
        # Each sentence on its own, and for its passage the mean of its sentences: ``(n_sentences, d_model)``.
        own = encode_by(index.spec, "document", [sentence.text for sentence in sentences], encoder)
        places = np.array([sentence.place for sentence in sentences])
        around = np.stack([own[places == place].mean(axis=0) for place in places])
        vectors = own, l2_normalize(around)
        [query] = encode_by(index.spec, "query", [question], encoder)  # (d_model,)
    features = sentence_features(question, sentences, hits, vectors, query, index)
    if is_for_english(encoder):
        is_other = [index.languages[each.document] not in ("", ENGLISH) for each in sentences]
        features[is_other, :N_COSINES] *= UNTRAINED
    scores = features @ np.array(list(FEATURES.values()))  # (n_sentences,)
    probabilities, similar = softmax(scores), vectors[0] @ query
    return tuple(
        Quote(
            **vars(sentences[number]),
            cosine=float(similar[number]),
            features=tuple(features[number].tolist()),
            score=float(scores[number]),
            probability=float(probabilities[number]),
        )
        for number in np.argsort(-scores, kind="stable").tolist()
    )


def is_row_of_heads(text: str, end: int) -> bool:
    """Whether a line that ends at ``text[end]`` names the columns of a table."""
    next_end = text.find("\n", end + 1)
    below = text[end + 1 : None if next_end < 0 else next_end]
    return text[end : end + 1] == "\n" and RULE.fullmatch(below) is not None


def is_above_numbers(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` is the first row of a table without rules that names its columns.

    Its cells differ, and one without a digit has digits in all cells below, of two rows or more.
    """
    heads = text[start:end].split(CELL_GAP)
    above = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
    if len(set(heads)) < max(len(heads), 2) or "|" in above:
        return False
    lines = text[end + 1 : end + 1 + LONGEST_SENTENCE].split("\n")
    rows = list(takewhile(lambda row: row.count(CELL_GAP) == len(heads) - 1, lines))
    columns = zip(*(row.split(CELL_GAP) for row in rows), strict=True)
    return len(rows) > 1 and any(
        not has_digit(head) and all(map(has_digit, own)) for head, own in zip(heads, columns, strict=False)
    )


def has_digit(text: str) -> bool:
    """Whether a text holds a digit."""
    return any(map(str.isdigit, text))
