"""Answer a question from passages: search, quote, write, check and judge."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from ..documents.document import Chunk
from ..errors import InputError
from ..models.reader import Reader
from ..retrieval.embedding_model import Model
from ..retrieval.evidence import Quote, find_evidence
from ..retrieval.index import Hit, Index
from ..retrieval.relevance import NullScores
from .answer import N_QUOTES, N_READ, Answer, Judged, Timings, WritingTimes, Written, best_sentences
from .checks import CheckedSentence, check_sentences
from .confidence import (
    QUOTE_WEIGHTS,
    READING_WEIGHTS,
    SURE_OF_WORDS,
    confidence_of,
    quote_figures,
    reading_figures,
    status_of,
)
from .conversation import Turn
from .decoder import Decoder
from .passage_search import retrieve
from .passages import ids_without, without_thinking
from .prompt import Prompt, assemble_prompt
from .reading import read_passages
from .sentences import sentences_of
from .settings import DEFAULT_ANSWER, DEFAULT_MIN_RELEVANCE, AnswerSettings
from .streamed_text import StreamedText, ignore, read_stream
from .thinking import OPEN
from .writer import Writer


def ask(
    question: str,
    index: Index,
    encoder: Model,
    writer: Writer | None = None,
    settings: AnswerSettings = DEFAULT_ANSWER,
    null_scores: NullScores | None = None,
    on_text: Callable[[str], None] = ignore,
    on_found: Callable[[Answer], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    turns: Sequence[Turn] = (),
    on_thought: Callable[[str], None] = ignore,
    reader: Reader | None = None,
) -> Answer:
    """Answer a question from the best passages of an index; without a relevant one no text is written.

    The reader finds the words of all passages that answer: they can although the cosine is low, so where no
    passage is relevant by that, words that the reader is sure of count (`SURE_OF_WORDS`), unless the
    threshold is above its default. The sentences that answer best are quoted. Where the settings ask for it,
    a language model adds a text, and each of its sentences is checked against the passages.

    Parameters
    ----------
    question, index, encoder, null_scores
        As in `retrieve`.
    writer
        The language model that writes a text, where ``settings.write`` asks for one.
    on_text, on_thought
        Called with each piece of the text, and of the thought before it, as it is written.
    on_found
        Called with the answer so far, before the language model writes.
    stop
        Called after each piece; once it returns true the text ends there, its ``finish_reason`` is
        ``"stopped"``, and it is not read again.
    turns
        Earlier turns of the conversation, for the prompt: `follow_up` returns them with the question.
    reader
        Finds the answer's words; without one there are quotes only, as there are in other languages than
        English.
    """
    if settings.write:
        if writer is None:
            raise InputError("a text is to be written, and no language model is loaded: choose one")
        writer.check(settings)
    answer = find_answer(question, index, encoder, settings, null_scores, reader)
    if not answer.retrieved.relevant:
        return answer
    if on_found is not None:
        on_found(answer)
    if settings.write and writer is not None:
        return add_text(answer, encoder, writer, settings, on_text, stop, turns, on_thought)
    return answer


def find_answer(
    question: str,
    index: Index,
    encoder: Model,
    settings: AnswerSettings = DEFAULT_ANSWER,
    null_scores: NullScores | None = None,
    reader: Reader | None = None,
) -> Answer:
    """Return the reader's words and the quotes, judged: the steps of `ask` before a language model writes."""
    retrieved = retrieve(question, index, encoder, settings.search, null_scores)
    found = {hit.chunk.document: index.documents.get(hit.chunk.document) for hit in retrieved.hits}
    notes = {name: document.notes for name, document in found.items() if document and document.notes}
    answer = Answer(question, retrieved, (), None, Judged(), Timings(retrieved.times), file_notes=notes)
    reads = reader if answer.is_english else None
    is_strict = settings.search.min_relevance > DEFAULT_MIN_RELEVANCE
    if not retrieved.relevant and (is_strict or reads is None):
        return answer
    start = perf_counter()
    evidence = find_evidence(question, retrieved.hits, index, encoder)
    ranked = perf_counter()
    spans = read_passages(question, retrieved.hits, reads, evidence) if reads else ()
    timed = replace(answer.timed, evidence_s=ranked - start, reader_s=perf_counter() - ranked)
    read = judged(replace(answer, evidence=evidence, spans=spans, timed=timed), settings)
    if retrieved.relevant:
        return read
    if read.reading is None or read.judged.confidence < SURE_OF_WORDS:
        return replace(answer, timed=timed)
    return replace(read, retrieved=replace(retrieved, answering=(read.reading.place,)))


def judged(answer: Answer, settings: AnswerSettings) -> Answer:
    """Return an answer with its confidence and status."""
    if answer.best_span:
        figures, weights = reading_figures(answer.spans, answer.evidence), READING_WEIGHTS
    else:
        figures = quote_figures(answer.question, answer.evidence, answer.text, N_QUOTES)
        weights = QUOTE_WEIGHTS
    confidence = confidence_of(figures, weights)
    status = status_of(confidence, settings.answer_threshold, settings.refuse_threshold)
    return replace(answer, judged=replace(answer.judged, confidence=confidence, status=status))


def add_text(
    answer: Answer,
    encoder: Model,
    writer: Writer,
    settings: AnswerSettings,
    on_text: Callable[[str], None] = ignore,
    stop: Callable[[], bool] = lambda: False,
    turns: Sequence[Turn] = (),
    on_thought: Callable[[str], None] = ignore,
) -> Answer:
    """Have the model write a text from the evidence or the relevant passages, check it and judge anew."""
    start = perf_counter()
    prompt, places = answer_prompt(answer, writer, settings, turns)
    opened = writer.server is None and prompt.text.rstrip().endswith(OPEN)  # as some templates leave it
    deltas = writer.generate(prompt, settings, stop)
    found = read_stream(deltas, on_text, on_thought, stop, opened, settings.max_new_tokens)
    end = perf_counter()
    first = end if found.first_at is None else found.first_at
    n_tokens = len(writer.decoder.tokenizer.encode(found.text)) if writer.server else len(found.ids)
    passages = [source.text for source in prompt.sources]
    sentences = check_sentences(found.text, passages, answer.question, encoder.tokenizer)
    if settings.check and found.ids and found.finish_reason != "stopped":
        sentences = with_log_prob_drop(sentences, found, prompt, writer.decoder)
    written = Written(
        text=found.text,
        finish_reason=found.finish_reason,
        model=writer.name,
        server=writer.url,
        prompt=prompt,
        source_places=places,
        ids=found.ids,
        thought=found.thought,
        thought_ids=found.thought_ids,
    )
    times = WritingTimes(
        prompt_s=first - start,
        prompt_tokens=len(prompt.ids),
        reused_tokens=writer.reused_tokens,
        generate_s=end - first,
        answer_tokens=n_tokens,
        guessed_tokens=found.n_guessed,
        thought_tokens=len(found.thought_ids),
    )
    timed = replace(answer.timed, writing=times, check_s=perf_counter() - end)
    checked = replace(answer.judged, sentences=sentences)
    return judged(replace(answer, written=written, judged=checked, timed=timed), settings)


def answer_prompt(
    answer: Answer, writer: Writer, settings: AnswerSettings, turns: Sequence[Turn]
) -> tuple[Prompt, tuple[int, ...]]:
    """Return the prompt with the best sentences or the relevant passages, and the hit of each source."""
    hits, budget = answer.retrieved.hits, settings.max_prompt_tokens
    decoder = replace(writer.decoder, thinks=True) if settings.think else writer.decoder
    best = best_sentences(answer.evidence, N_READ) if settings.reads == "sentences" else ()
    read = quoted_hits(best, hits) or [hits[place] for place in answer.retrieved.relevant]
    prompt = assemble_prompt(answer.question, read, decoder, budget, turns)
    while len(best) > 1 and (prompt.left_out or any(source.cut for source in prompt.sources)):
        best = best[:-1]  # without the worst
        prompt = assemble_prompt(answer.question, quoted_hits(best, hits), decoder, budget, turns)
    places = tuple(quote.place for quote in reversed(best)) or answer.retrieved.relevant
    return prompt, places[: len(prompt.sources)]


def quoted_hits(quotes: Sequence[Quote], hits: Sequence[Hit]) -> list[Hit]:
    """Return sentences as passages of a prompt, the best last, each with the score of its passage.

    Next to the question, the best counts most: on half of the bundled questions the model is right in 32 %
    so, and in 24 % with the best first.
    """
    return [
        Hit(Chunk(quote.document, quote.start, quote.end, quote.text, 0), hits[quote.place].score)
        for quote in reversed(quotes)
    ]


def with_log_prob_drop(
    sentences: Sequence[CheckedSentence], written: StreamedText, prompt: Prompt, decoder: Decoder
) -> tuple[CheckedSentence, ...]:
    """Add to each sentence how much less probable it is without the passages; never behind a thought."""
    ids = ids_without(prompt, [source.number for source in prompt.sources], decoder)
    without = decoder.log_probabilities([*ids, *written.ids], len(ids))  # (n_answer,)
    complete = np.array(written.log_probabilities)
    if written.thought_ids:
        read = without_thinking(prompt, decoder).ids
        complete = decoder.log_probabilities([*read, *written.ids], len(read))
    drops = complete - without
    by_tokens = sentences_of(written.ids, decoder.tokenizer)  # of the text with the white space around it
    offset = max("".join(each.text for each in by_tokens).find(written.text), 0)
    ends = [each.end for each in by_tokens[:-1]]
    found = []
    for each in sentences:
        own = by_tokens[bisect_left(ends, each.end + offset)]  # a token may hold two ends, as ".\n" does
        found.append(replace(each, log_prob_drop=float(drops[own.first_token : own.last_token].mean())))
    return tuple(found)
