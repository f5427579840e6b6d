"""A passage as the reader scores it: each token painted as the start and as the end of the answer."""

from html import escape

import streamlit as st

from engine.inspection.model.reading import AnswerTokens, Characters, answer_tokens
from engine.models.reader import WINDOW_TOKENS, Reader, Scores
from engine.wording import beginning
from ui.colours import BLUE, GREY, ORANGE, VERMILION, paint
from ui.models import load_reader
from ui.text import Strong, faint_html, sentence_markdown, show_text

WORDS_SHOWN = 80  # characters of an answer in a sentence
CHIP = f"border:1px solid {GREY};border-radius:3px;padding:1px 6px;white-space:nowrap"


def reader_or_reason() -> Reader | None:
    """Return the reader; where it cannot be loaded None, with a line that says why."""
    reader, reason = load_reader()
    if reader is None:
        st.warning(sentence_markdown(f"No reader: {reason}."), icon=":material/visibility_off:")
    return reader


@st.cache_data(max_entries=64, show_spinner=False)
def windows_of(question: str, passage: str, _reader: Reader) -> list[Scores]:
    """Read a passage; cached."""
    return _reader.scores(question, [passage])


def show_scores(question: str, passage: str, words: Characters, reader: Reader) -> None:
    """Draw a passage with its tokens' probabilities, and how its best words and no answer compare."""
    windows = windows_of(question, passage, reader)
    found = answer_tokens(windows, words)
    if found is None:
        st.info("None of these words is read.")
        return
    st.markdown(compared(passage[slice(*words)], found))
    show_text(painted_scores(passage, found.window, words))
    others = (
        f" The passage is read in {len(windows)} windows of {WINDOW_TOKENS} tokens: what is pale is not in "
        "the one with the best words."
        if len(windows) > 1
        else ""
    )
    st.caption(
        "Each token: the upper half, blue, is its probability as the start of the answer, the lower half, "
        "orange, as its end (softmax over the passage and \\[CLS\\]; half the depth is a quarter of the "
        f"probability). The best words are underlined.{others}"
    )


def compared(words: str, found: AnswerTokens) -> str:
    """Say in Markdown how the scores of words and of no answer compare, and which of them wins."""
    window, shares = found.window, found.window.probabilities
    cls_start, cls_end = window.cls_logits
    as_start, as_end, total = shares[1 + found.first, 0], shares[1 + found.last, 1], found.start + found.end
    return sentence_markdown(
        f"“{beginning(words, WORDS_SHOWN)}”: start {found.start:+.2f} ({as_start:.0%}), end {found.end:+.2f} "
        f"({as_end:.0%}), together {total:+.2f}. No answer, [CLS]: start {cls_start:+.2f} "
        f"({shares[0, 0]:.0%}), end {cls_end:+.2f} ({shares[0, 1]:.0%}), together {window.no_answer:+.2f}. ",
        Strong(f"{'The words win' if found.score > 0 else 'No answer wins'} by {abs(found.score):.2f}."),
    )


def painted_scores(text: str, window: Scores, words: Characters) -> str:
    """Return a passage as HTML, behind a mark of [CLS]; each token in both colours, ``words`` underlined."""
    no_answer, *shares = window.probabilities.tolist()
    offsets = window.window.offsets
    html = f'<span style="{CHIP};{both_colours(*no_answer)}" title="[CLS]">no answer</span> '
    place = offsets[0][0]
    html += faint_html(text[:place])
    for (start, end), (as_start, as_end) in zip(offsets, shares, strict=True):
        if end <= place:  # one character can be several tokens: the first is drawn
            continue
        is_answer = words[0] <= start < words[1]
        first = place if is_answer and place > words[0] else max(start, place)  # one line under all words
        html += escape(text[place:first])
        line = f";border-bottom:3px solid {VERMILION}" if is_answer else ""
        html += (
            f'<span title="start {as_start:.1%}, end {as_end:.1%}" '
            f'style="{both_colours(as_start, as_end)}{line}">{escape(text[first:end])}</span>'
        )
        place = end
    return html + faint_html(text[place:])


def both_colours(as_start: float, as_end: float) -> str:
    """Return the style of a token by its probabilities, whose square roots are the depth of the colours."""
    upper, lower = paint(BLUE, as_start**0.5), paint(ORANGE, as_end**0.5)
    return f"background:linear-gradient({upper} 50%,{lower} 50%)"
