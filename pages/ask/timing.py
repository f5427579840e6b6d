"""The time that each stage of an answer took."""

import plotly.graph_objects as go
import streamlit as st

from engine.generation.answer import Answer, Timings, WritingTimes
from engine.retrieval.retrievers import RETRIEVERS
from ui.colours import BLUE, ORANGE
from ui.figures import numbered_bars, styled
from ui.report import Report, element
from ui.text import readable_seconds


def show_timing(report: Report, answer: Answer) -> None:
    """Draw the time that each stage took."""
    report.parts.append(element("h2", "Time"))
    report.caption(f"The answer stood after {readable_seconds(answer.timed.until_quotes_s)}.")
    by_server = answer.written is not None and answer.written.server is not None
    if by_server:
        server_metrics(report, answer.timed.writing)
    elif answer.written:
        decoder_metrics(report, answer.timed.writing)
    figure = timing_figure(answer.timed, answer.written is not None)
    [bars] = figure.data
    words = ", ".join(f"{stage} {time}" for stage, time in zip(bars.y, bars.text, strict=True))
    report.figure(figure, f"Time of each stage: {words}")
    if RETRIEVERS[answer.retrieved.retriever].uses_bm25:
        st.caption(
            "The search includes BM25's scores of this question. The words of all chunks are indexed once, "
            "before the first question."
        )
    elif answer.retrieved.retriever == "maxsim":
        st.caption(
            "The search reads the best 50 chunks token by token; those read for an earlier question "
            "are not read again."
        )
    if by_server:
        st.caption(
            "How fast a server reads the prompt, and which part it reuses, is not visible from here. “Read "
            "prompt” is the time until its first word."
        )
    elif answer.written and (cache := st.session_state.get("prefix_cache")):
        st.caption(
            f"Kept for the next question: keys and values of {len(cache):,} tokens, "
            f"{cache.n_bytes / 1e6:.1f} MB."
        )


def decoder_metrics(report: Report, times: WritingTimes) -> None:
    """Draw the rates of the built-in decoder, and the prompt tokens that it reused."""
    metrics = {
        "Prompt tokens per second": (
            rate(times.prompt_tokens_per_s),
            None,
            "The prompt is read in blocks, many tokens at once.",
        ),
        "Prompt tokens not read again": (
            f"{times.reused_tokens:,} of {times.prompt_tokens:,}",
            None,
            "A prompt that begins like the previous one is read from the first difference on: the keys and "
            "values of all tokens before it are kept.",
        ),
        "Answer tokens per second": (
            rate(times.answer_tokens_per_s),
            None,
            "Each pass reads every weight of the model and yields one token, or several guessed ones.",
        ),
    }
    report.metrics(metrics, "Tokens read and written")
    if times.guessed_tokens:
        st.caption(
            f"{times.guessed_tokens:,} of the answer's {times.answer_tokens:,} tokens were guessed by "
            "looking up its last words in the prompt, and checked several in one pass (prompt lookup). The "
            "model still chose every token: wrong guesses are dropped."
        )


def server_metrics(report: Report, times: WritingTimes) -> None:
    """Draw the times of a server, as measured from outside."""
    metrics = {
        "Time to the first word": (
            readable_seconds(times.prompt_s),
            None,
            "Includes the network, and loading the model if the server has to.",
        ),
        "Answer tokens per second": (
            f"about {rate(times.answer_tokens_per_s)}",
            None,
            "Counted by the tokenizer of the built-in model; the server's tokens differ.",
        ),
    }
    report.metrics(metrics, "Times of the server")


def rate(per_s: float | None) -> str:
    """Return a rate as text, a dash if it is unknown."""
    return f"{per_s:,.0f}" if per_s else "–"


def timing_figure(timed: Timings, is_written: bool) -> go.Figure:
    """Bars of the seconds that each stage took, in order from the top; of a text only where there is one."""
    stages = {
        "Tokenize question": timed.search.tokenize_s,
        "Encode question": timed.search.encode_s,
        "Search index": timed.search.search_s,
        "Rank sentences": timed.evidence_s,
        "Find the words": timed.reader_s,
    }
    colours = [BLUE] * len(stages)
    if is_written:
        stages |= {
            "Read prompt": timed.writing.prompt_s,
            "Generate text": timed.writing.generate_s,
            "Check text": timed.check_s,
        }
        colours += [ORANGE] * 3
    seconds = stages.values()
    figure = numbered_bars(seconds, stages, map(readable_seconds, seconds), colours, "%{y}: %{text}")
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="seconds", rangemode="tozero", range=[0, max(seconds) * 1.25])
    return styled(figure, height=80 + 34 * len(stages))
