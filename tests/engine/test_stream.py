from hypothesis import given
from hypothesis import strategies as st

from engine.generation.stream import TextStream

PIECES = st.lists(st.integers(1, 5), max_size=40)


def cut(content, sizes):
    start = 0
    for size in sizes:
        yield content[start : start + size]
        start += size
    yield content[start:]


@given(text=st.text(st.characters(exclude_categories=["Cs"])), sizes=PIECES)
def test_text_comes_back_whole_and_never_in_half_characters(text, sizes):
    stream = TextStream()
    shown = [stream.push(piece) for piece in cut(text.encode(), sizes)] + [stream.finish()]
    assert "".join(shown) == text


def test_a_character_waits_for_its_last_byte():
    stream, emoji = TextStream(), "🙂".encode()
    assert [stream.push(emoji[i : i + 1]) for i in range(4)] == ["", "", "", "🙂"]


@given(text=st.text("abc"), stop=st.text("abc", min_size=1, max_size=3), sizes=PIECES)
def test_a_stop_text_is_never_shown_wherever_it_is_cut(text, stop, sizes):
    stream, shown = TextStream([stop]), ""
    for piece in cut(text.encode(), sizes):
        shown += stream.push(piece)
        if stream.stopped:
            break
    shown += stream.finish()
    assert shown == text.split(stop)[0]
    assert stream.stopped == (stop in text)


def test_of_several_stop_texts_the_first_to_appear_counts():
    stream = TextStream(["END", "\n"])
    assert stream.push(b"one EN") == "one "
    assert stream.push(b"\n two END") == "EN"
    assert stream.stopped


def test_bytes_that_are_no_text_are_shown_as_such():
    stream = TextStream()
    assert stream.push(b"\xff") + stream.finish() == "\ufffd"
