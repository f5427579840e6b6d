"""How long each stage of an answer took."""

import streamlit as st

from engine.generation.answering import Answer, Timings
from engine.retrieval.retrievers import OF_WORDS
from ui.figures import readable_seconds, timing_figure


def show_timing(answer: Answer) -> None:
    """Show how long each stage took."""
    if answer.server:
        server_metrics(answer.timings)
    else:
        decoder_metrics(answer.timings)
    st.plotly_chart(
        timing_figure(answer.timings), config={"displayModeBar": False}, alt="Seconds of each stage"
    )
    if answer.retriever in OF_WORDS:
        st.caption(
            "The search has BM25's scores of this question in it. The words of all chunks are indexed once, "
            "before the first question."
        )
    elif answer.retriever == "maxsim":
        st.caption(
            "The search reads the best 50 chunks token by token; those that an earlier question had read are "
            "not read again."
        )
    if answer.server:
        st.caption(
            "A server cannot be looked into: how fast it reads the prompt, and what it need not read again, "
            "is not known here. “Read prompt” is all the time until its first word."
        )
    elif cache := st.session_state.get("prefix_cache"):
        st.caption(
            f"Kept for the next question: keys and values of {len(cache):,} tokens, "
            f"{cache.n_bytes / 1e6:.1f} MB."
        )


def decoder_metrics(timings: Timings) -> None:
    """Show the rates of the built-in decoder, and what it had read before."""
    reading, reused, writing = st.columns(3)
    reading.metric(
        "Prompt tokens per second",
        rate(timings.prompt_tokens_per_s),
        help="The prompt is read in blocks, many tokens at once.",
    )
    reused.metric(
        "Prompt tokens not read again",
        f"{timings.reused_tokens:,} of {timings.prompt_tokens:,}",
        help="A prompt that begins like the one before, with the same passages, is read from where they "
        "differ: the keys and values of all tokens before that are kept.",
    )
    writing.metric(
        "Answer tokens per second",
        rate(timings.answer_tokens_per_s),
        help="Every weight of the model is needed for each token, or once for several that were guessed.",
    )
    if timings.guessed_tokens:
        st.caption(
            f"{timings.guessed_tokens:,} of the answer's {timings.answer_tokens:,} tokens were guessed from "
            "the text before, where its last words stood already, and read along with the one before them "
            "(prompt lookup). The model chose every token itself: a wrong guess is dropped."
        )


def server_metrics(timings: Timings) -> None:
    """Show what can be seen of a server from outside."""
    waiting, writing = st.columns(2)
    waiting.metric(
        "Time to the first word",
        readable_seconds(timings.prompt_s),
        help="Includes the way there and back, and loading the model where the server has to.",
    )
    writing.metric(
        "Answer tokens per second",
        f"about {rate(timings.answer_tokens_per_s)}",
        help="Tokens of the built-in model's tokenizer: the server's own are others.",
    )


def rate(per_s: float | None) -> str:
    """Return a rate in words, a dash where it is not known."""
    return f"{per_s:,.0f}" if per_s else "–"
