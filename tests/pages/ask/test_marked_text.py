from engine.documents.document import Document
from engine.generation.prompt import Source
from pages.ask.marked_text import from_place, in_context, marked

TEXT = "zero <b>one</b> two three four"


def source(number, words):
    start = TEXT.index(words)
    return Source(number, "d.md", start, start + len(words), words, 0.5, 3, cut=False)


DOCUMENT = Document("d.md", TEXT)


def test_sources_are_marked_with_their_number_and_all_is_escaped():
    html = marked(DOCUMENT, [source(1, "two"), source(2, "four")])
    assert html.count("<mark") == 2
    assert html.index("[1]") < html.index("two") < html.index("[2]") < html.index("four")
    for sources in ([], [source(1, "<b>one</b>")]):
        assert "<b>one" not in marked(DOCUMENT, sources)
        assert "&lt;b&gt;one&lt;/b&gt;" in marked(DOCUMENT, sources)


def test_of_overlapping_sources_the_better_one_keeps_what_they_share():
    html = marked(DOCUMENT, [source(1, "two three"), source(2, "three four")])
    first, second = html.split("<mark")[1:]
    assert "two three" in first
    assert "three" not in second
    assert " four" in second


def test_a_part_of_a_document_begins_and_ends_with_an_ellipsis_unless_the_document_does():
    html = in_context(DOCUMENT, [source(1, "two")], characters=4)
    assert html.startswith("…")
    assert html.endswith("thr…")
    whole = in_context(DOCUMENT, [source(1, "two")], characters=1000)
    assert "…" not in (whole[0], whole[-1])
    sources = [source(1, "two"), source(2, "four")]
    html = from_place(DOCUMENT, sources, TEXT.index("three"), 1000)
    assert html.startswith("…three <mark")
    assert html.count("<mark") == 1
    assert from_place(DOCUMENT, sources, -5, 1000) == marked(DOCUMENT, sources)
    assert from_place(DOCUMENT, sources, 0, 4) == "zero…"
