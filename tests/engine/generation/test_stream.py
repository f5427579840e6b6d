from hypothesis import example, given
from hypothesis import strategies as st

from engine.generation.stream import TextStream

PIECES = st.lists(st.integers(1, 5), max_size=40)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab🙂é東"))


def cut(content, sizes):
    start = 0
    for size in sizes:
        yield content[start : start + size]
        start += size
    yield content[start:]


def stream(content, sizes, stop=()):
    """Everything a stream shows of ``content``, cut into tokens, and whether it met a stop text."""
    texts, shown = TextStream(stop), []
    for piece in cut(content, sizes):
        shown.append(texts.push(piece))
        if texts.stopped:
            break
    shown.append(texts.finish())
    return shown, texts.stopped


def before_stop(text, stops):
    """A text up to the stop text that is complete first, reading character by character."""
    for end in range(len(text) + 1):
        lengths = [len(stop) for stop in stops if stop and text[:end].endswith(stop)]
        if lengths:
            return text[: end - max(lengths)], True
    return text, False


@given(content=TEXTS.map(str.encode) | st.binary(), sizes=PIECES)
def test_text_comes_back_whole_and_never_in_half_characters(content, sizes):
    shown, _ = stream(content, sizes)
    text = content.decode("utf-8", errors="replace")
    assert "".join(shown) == text
    for upto in range(len(shown)):
        assert text.startswith("".join(shown[:upto]))


@example(text="xabcd", stops=["abcd", "bc"], sizes=[4, 1])  # of two, the first to be complete counts
@given(
    text=st.text("ab🙂é"), stops=st.lists(st.text("ab🙂é", min_size=1, max_size=4), max_size=3), sizes=PIECES
)
def test_an_answer_ends_before_the_first_stop_text_wherever_tokens_cut_it(text, stops, sizes):
    shown, stopped = stream(text.encode(), sizes, stops)
    assert ("".join(shown), stopped) == before_stop(text, stops)


@given(text=st.text("ab"), stop=st.text("ab", min_size=1, max_size=4), sizes=PIECES)
def test_text_waits_only_where_it_may_become_the_stop_text(text, stop, sizes):
    texts, read, shown = TextStream([stop]), "", ""
    for piece in cut(text.encode(), sizes):
        read += piece.decode()
        shown += texts.push(piece)
        if texts.stopped:
            return
        assert stop.startswith(read[len(shown) :])
