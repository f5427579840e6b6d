"""Continuations of a prompt, and two answers side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine.generation.sampling import Sampling
from engine.generation.sentences import token_texts
from ui.asking import session_prefix_cache, show_writing
from ui.jobs import Job, start_job
from ui.models import load_decoder


@dataclass(frozen=True)
class Request:
    """A prompt, the beginning of an answer, and the settings of its continuation."""

    prompt_ids: tuple[int, ...]
    begun_ids: tuple[int, ...]
    max_new_tokens: int
    sampling: Sampling


@dataclass(frozen=True)
class Continuation:
    """All tokens of an answer, those of the beginning included; ``reused_tokens`` were not read again."""

    ids: tuple[int, ...]
    reused_tokens: int


def answer_texts(ids: Sequence[int]) -> list[str]:
    """Return the text of each token of an answer, empty for the end token."""
    decoder = load_decoder()
    spoken = [number for number in ids if number not in decoder.end_ids]
    texts = iter(token_texts(spoken, decoder.tokenizer))
    return ["" if number in decoder.end_ids else next(texts) for number in ids]


def start_continuation(name: str, request: Request) -> Job[Continuation]:
    """Start a continuation under a name; stop the one running under the same name, if any."""
    decoder, cache = load_decoder(), session_prefix_cache()

    def work(job: Job[Continuation]) -> Continuation:
        ids = list(request.begun_ids)
        job.write("".join(token_texts(ids, decoder.tokenizer)))
        if not decoder.end_ids.intersection(ids[-1:]):
            steps = decoder.generate(
                [*request.prompt_ids, *ids], request.max_new_tokens, request.sampling, reuse=cache
            )
            for step in steps:
                ids.append(step.token_id)
                job.write(step.text)
                if not job.take_turn():
                    break
        return Continuation(tuple(ids), cache.reused_tokens)

    return start_job(name, work, request=request)


def continuation(job: Job[Continuation]) -> Continuation:
    """Return a finished continuation, after drawing it while it grows."""
    if not job.done:
        place = st.empty()
        with place.container():
            show_writing(job, "Writing…", key="stop-continuation")
        place.empty()
    return job.result()
