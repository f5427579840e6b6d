from engine.documents.document import Document
from engine.generation.prompt import Source
from pages.ask.marked_text import from_place, in_context, marked

TEXT = "zero <b>one</b> two three four"


def source(number, words):
    start = TEXT.index(words)
    return Source(number, "d.md", start, start + len(words), words, 0.5, 3, cut=False)


def test_markup_of_a_document_is_escaped():
    assert "<b>one" not in marked(Document("d.md", TEXT), [source(1, "<b>one</b>")])
    assert "&lt;b&gt;one&lt;/b&gt;" in marked(Document("d.md", TEXT), [])


def test_sources_are_marked_with_their_number():
    html = marked(Document("d.md", TEXT), [source(1, "two"), source(2, "four")])
    assert html.count("<mark") == 2
    assert html.index("[1]") < html.index("two") < html.index("[2]") < html.index("four")


def test_of_overlapping_sources_the_better_one_keeps_what_they_share():
    html = marked(Document("d.md", TEXT), [source(1, "two three"), source(2, "three four")])
    first, second = html.split("<mark")[1:]
    assert "two three" in first
    assert "three" not in second
    assert " four" in second


def test_a_source_is_shown_with_what_stands_around_it():
    html = in_context(Document("d.md", TEXT), [source(1, "two")], characters=4)
    assert html.startswith("…")
    assert html.endswith("thr…") or html.endswith(" thr…")


def test_no_ellipsis_where_the_document_ends():
    html = in_context(Document("d.md", TEXT), [source(1, "two")], characters=1000)
    assert not html.startswith("…")
    assert not html.endswith("…")


def test_a_document_is_shown_from_a_place_on_with_all_its_sources():
    document, sources = Document("d.md", TEXT), [source(1, "two"), source(2, "four")]
    html = from_place(document, sources, TEXT.index("three"), 1000)
    assert html.startswith("…three <mark")
    assert html.count("<mark") == 1
    assert from_place(document, sources, -5, 1000) == marked(document, sources)
    assert from_place(document, sources, 0, 4) == "zero…"
