"""Questions drafted from documents, for a person to keep, edit or strike.

Sentences are drawn (`drafts_sentences`), the decoder writes questions about each (`drafts_wording`), and the
reader chooses: in the passage around a sentence it has to find the answer in that sentence, and nowhere else
as well. Drafts differ from questions that people ask, so each is marked as `DRAFTED` wherever it counts until
somebody has read it.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..documents.document import Document, document_languages
from ..documents.language import ENGLISH
from ..errors import InputError
from ..generation.decoder import Decoder
from ..generation.reading import question_spans, whole_span
from ..layers.norm import l2_normalize
from ..layers.tracing import Array
from ..models.reader import Reader
from ..retrieval.bm25 import Bm25
from ..weights.fetch import Progress
from .drafts_sentences import FEWEST_WORDS, MOST_WORDS, Sentence, sentences_of, strips
from .drafts_wording import Writer, fits, is_fit, shared_words
from .questions import DRAFTED, Question, Reference, stem

MOST_DOCUMENTS = 1000  # whose sentences are drawn from; of more documents, so many are drawn
UNANSWERED = 6  # one draft of so many asks what the documents do not say
PASSES = 4  # over the strips: sentences of each that are tried until a draft passes
N_ELSEWHERE = 6  # other passages, likely by their words, in which the reader looks for an answer too
NAME = re.compile(r"(?<=[\w,] )[A-Z][\w'’-]+(?: (?:(?:of|the|de|van|von) )?[A-Z][\w'’-]+)*")
ARTICLE = re.compile(r"\b(?:the|an?) (?:\w+ )?$", re.IGNORECASE)  # before a name that others cannot replace
SURE = 3.0  # score of the reader for an answer of a strict draft
N_NAMES = 8  # that are tried in place of a name


def draft_questions(
    documents: Sequence[Document],
    n: int,
    seed: int,
    decoder: Decoder,
    reader: Reader,
    done: Sequence[Question] = (),
    on_progress: Progress | None = None,
    is_stopped: Callable[[], bool] | None = None,
    strict: bool = False,
) -> Iterator[Question]:
    """Draft questions from documents, and yield each as it is ready: ``n`` with those ``done``, or fewer.

    One of six asks what the documents do not say: it has no reference. The same seed drafts the same, and
    goes on from those ``done`` of a run that was stopped. ``on_progress`` is called with the drafts made and
    ``n``, ``is_stopped`` after every question that is tried: drafts end soon after it returns true.
    With ``strict`` only questions remain whose answer is of the kind asked for, and sure.
    `InputError` where ``n`` is less than 1, or no document has a sentence in English that can be asked about.
    """
    if n < 1:
        raise InputError(f"{n} questions: draft 1 or more, better 60")
    rng = np.random.default_rng(seed)
    every = [each for document in in_english(documents, rng) for each in sentences_of(document)]
    n_answered = n - n // UNANSWERED
    found = strips(every, n_answered, rng)
    if not found:
        raise InputError(
            f"no document has a sentence of {FEWEST_WORDS} to {MOST_WORDS} words in English prose, the "
            "language that decoder and reader know: load one that has, or label questions of your own"
        )
    drafter = Drafter(every, decoder, reader, seed, is_stopped or (lambda: False), strict)
    made = {each.text: each for each in done}
    for drafts in (answered(found, n_answered, made, drafter), unanswered(n - n_answered, made, drafter)):
        for draft in drafts:
            made[draft.text] = draft
            if on_progress is not None:
                on_progress(len(made), n)
            yield draft


def in_english(documents: Sequence[Document], rng: np.random.Generator) -> list[Document]:
    """Return the documents in English, in order; of very many, of `MOST_DOCUMENTS` drawn at random."""
    if len(documents) > MOST_DOCUMENTS:
        places = np.sort(rng.choice(len(documents), MOST_DOCUMENTS, replace=False))
        documents = [documents[place] for place in places]
    languages = document_languages(documents)
    return [each for each in documents if languages[each.name] == ENGLISH]


def answered(
    found: Sequence[Sequence[Sentence]], n: int, made: dict[str, Question], drafter: "Drafter"
) -> Iterator[Question]:
    """Yield drafts with an answer, one of each strip: of another of its sentences in each pass over them."""
    places = {(each.corpus_id, each.references[0].start) for each in made.values() if each.references}
    left = [own for own in found if places.isdisjoint((stem(s.document.name), s.start) for s in own)]
    n_made = len(places)
    for turn in range(PASSES):
        tried, left = left, []
        for own in tried:
            if n_made == n or drafter.is_stopped():
                return
            draft = drafter.about(own[turn]) if turn < len(own) else None
            if draft is None or draft.text in made:
                left.append(own)
            else:
                n_made += 1
                yield draft


def unanswered(n: int, made: dict[str, Question], drafter: "Drafter") -> Iterator[Question]:
    """Yield drafts that the documents do not answer, until there are ``n`` of them."""
    n_made = sum(not each.references for each in made.values())
    for draft in [each for each in made.values() if each.references]:
        if n_made == n or drafter.is_stopped():
            return
        other = drafter.about_another(draft)
        if other is not None and other.text not in made:
            n_made += 1
            yield other


class Drafter:
    """Drafts a question about a sentence, or about what none says."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        decoder: Decoder,
        reader: Reader,
        seed: int,
        is_stopped: Callable[[], bool],
        strict: bool = False,
    ) -> None:
        self.strict = strict
        self.sentences, self.reader, self.seed, self.is_stopped = sentences, reader, seed, is_stopped
        self.writer = Writer(decoder)
        self.bm25 = Bm25([each.text for each in sentences])
        self.named: dict[str, list[Sentence]] = {}  # the sentences of each name
        for sentence in sentences:
            for name in NAME.findall(sentence.text):
                self.named.setdefault(name, []).append(sentence)

    def about(self, sentence: Sentence) -> Question | None:
        """Return a question about a sentence that is answered best there; None where there is none.

        Of several the one that shares least words with the sentence: copied words favour a search by words.
        """
        fit: list[tuple[float, str, float, Reference]] = []
        for question in self.writer.questions(sentence.text, self.seed + sentence.start):
            if self.is_stopped():
                return None
            if is_fit(question, sentence.text) and (read := self.read_here(question, sentence)):
                fit.append((shared_words(question, sentence.text), question, *read))
        for _, question, score, answer in sorted(fit, key=lambda each: each[0]):
            if score > self.read_elsewhere(question, self.elsewhere(question, sentence)):
                about = stem(sentence.document.name)
                return Question(question, about, (sentence.reference,), answer, DRAFTED, self.seed)
        return None

    def read_here(self, question: str, sentence: Sentence) -> tuple[float, Reference] | None:
        """Return the reader's best answer, if it is in the sentence, and its score above none; else None."""
        text, (first, last) = sentence.document.text, sentence.passage
        passage = text[first:last]
        for best in self.reader.read(question, [passage], [question_spans(passage)], n_best=1):
            start, end = (first + place for place in whole_span(question, passage, best.start, best.end))
            is_here = best.score > 0 and sentence.start <= start and end <= sentence.end
            if is_here and (not self.strict or self.is_sure(question, best.score, start, end, sentence)):
                return best.score, Reference(text[start:end], start, end)
        return None

    def is_sure(self, question: str, score: float, start: int, end: int, sentence: Sentence) -> bool:
        """Whether an answer is of the kind asked for, and sure, also where the sentence is read alone."""
        answer = sentence.document.text[max(sentence.start, start - 1) : end]
        alone = float(self.reader.score(question, [sentence.text]).max())
        return fits(question, answer, sentence.text) and min(score, alone) > SURE

    def read_elsewhere(self, question: str, others: Sequence[Sentence]) -> float:
        """Return the best score of an answer in the passages of sentences, -inf where there are none."""
        texts = [each.document.text[slice(*each.passage)] for each in others]
        return float(self.reader.score(question, texts).max()) if texts else -np.inf

    def elsewhere(self, question: str, own: Sentence) -> list[Sentence]:
        """Return the sentences outside the passage of a sentence that are likest to a question by words."""
        scores = self.bm25.scores([question])[0]
        found: list[Sentence] = []
        for place in np.argsort(-scores, kind="stable")[: 10 * N_ELSEWHERE]:
            other = self.sentences[place]
            if scores[place] > 0 and not any(other.is_near(each) for each in (own, *found)):
                found.append(other)
        return found[:N_ELSEWHERE]

    def about_another(self, draft: Question) -> Question | None:
        """Ask of another thing what a draft asks of the one that it names; None where the documents answer.

        The name is replaced by the likest one of another document, or of another passage where there is only
        one; the reader finds no answer in the sentences that have it.
        """
        for match in NAME.finditer(draft.text):
            name, before = match.group(), draft.text[: match.start()]
            place = draft.corpus_id, draft.references[0].start
            own = [
                each for each in self.named.get(name, ()) if (stem(each.document.name), each.start) == place
            ]
            if not own or ARTICLE.search(before):
                continue
            for other in self.names_like(name, own[0]):
                question = draft.text.replace(name, other)
                sentences = self.named[other][: 2 * N_ELSEWHERE]
                if self.read_elsewhere(question, sentences) < 0:
                    corpus_id = stem(sentences[0].document.name)
                    return Question(question, corpus_id, (), None, DRAFTED, self.seed)
        return None

    def names_like(self, name: str, sentence: Sentence) -> list[str]:
        """Return the names likest to one, of other documents than a sentence's, or passages if it has all."""
        documents = {each.document.name for each in self.sentences}
        text, (first, last) = sentence.document.text, sentence.passage
        own = text[first:last] if len(documents) == 1 else text
        parts = set(name.split())
        others = [each for each in self.named if parts.isdisjoint(each.split()) and each not in own]
        if not others:
            return []
        likeness = self.vectors(others) @ self.vectors([name])[0]  # (n_others,)
        return [others[place] for place in np.argsort(-likeness, kind="stable")[:N_NAMES]]

    def vectors(self, names: Sequence[str]) -> Array:
        """Return the mean embedding of the tokens of each name, ``(n_names, d_model)``, of length 1."""
        tokenizer, table = self.reader.tokenizer, self.reader.weights.token_table
        ids = (tokenizer.around(each.ids)[1] for each in tokenizer.encode_batch(list(names)))
        return l2_normalize(np.array([table[own].mean(axis=0) for own in ids]))
