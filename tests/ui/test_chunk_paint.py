import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from pages.documents.chunks import size_figure
from ui.chunk_paint import painted

TEXT = "one two three four five"


def chunk(start, end, n_tokens=8, text=TEXT, **more):
    return Chunk("d.md", start, end, text[start:end], n_tokens, **more)


def paint(chunks, read_ends=None, text=TEXT):
    ends = [c.end for c in chunks] if read_ends is None else read_ends
    return painted(Document("d.md", text), chunks, dict(enumerate(ends)), 0, len(text))


def marks(html, tag="mark"):
    return [unescape(text) for text in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html)]


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 12)).map(
        lambda span: (span[0], span[0] + span[1], span[0] + min(span[1], span[2]))
    ),
    max_size=8,
)


@given(st.text(min_size=45, max_size=60), spans, st.integers(0, 20), st.integers(20, 45))
def test_the_text_stays_as_it_is_whatever_is_painted_on_it(text, spans, start, end):
    chunks = [chunk(first, last, text=text) for first, last, _ in spans]
    stops = {n: stop for n, (_, _, stop) in enumerate(spans)}
    html = painted(Document("d.md", text), chunks, stops, start, end)
    shown = re.sub(r"<[^>]*>", "", re.sub(r"<sup[^>]*>.*?</sup>", "", html))
    assert unescape(shown) == text[start:end]


def test_a_chunk_has_its_number_its_place_and_its_text():
    html = paint([chunk(0, 7), chunk(8, 23, headings=("Tides", "Spring & neap"), page=3)])
    assert marks(html) == [TEXT[0:7], TEXT[8:23]]
    assert re.findall(r"<sup[^>]*>(\d+)</sup>", html) == ["1", "2"]
    size = "8 tokens as the embedding model counts them, special tokens included"
    assert f"{size}, characters 8–23, page 3, Tides › Spring &amp; neap" in html


def test_text_of_two_chunks_is_striped_that_of_none_plain_and_markup_is_text():
    html = paint([chunk(0, 13), chunk(8, 23)])
    assert marks(html) == [TEXT[0:8], TEXT[8:13], TEXT[13:23]]
    assert [("repeating" in style) for style in re.findall(r'<mark style="([^"]*)"', html)] == [0, 1, 0]
    between = paint([chunk(0, 3), chunk(8, 13)])
    assert (marks(between), marks(between, "del")) == (["one", "three"], [])
    text = "<script>alert(1)</script> <b>bold</b> &amp;"
    html = paint([chunk(0, len(text), text=text, headings=('"><img src=x>',))], text=text)
    assert not re.search("<script|<b>|<img", html)


def test_only_text_that_no_chunk_is_read_as_far_as_is_struck():
    assert marks(paint([chunk(0, 23)], read_ends=[13]), "del") == [TEXT[13:23]]
    # what the first chunk loses, the second reads
    assert marks(paint([chunk(0, 18), chunk(8, 23)], read_ends=[8, 18]), "del") == [TEXT[18:23]]


def test_sizes_are_counted_and_the_limit_is_marked_where_it_is_near():
    far = size_figure([chunk(0, 3, 10)], 256)
    near = size_figure([chunk(0, 3, n) for n in (10, 250, 300)], 256)
    assert list(near.data[0].x) == [10, 250, 300]
    assert len(near.layout.shapes) == 1
    assert len(far.layout.shapes) == 0
