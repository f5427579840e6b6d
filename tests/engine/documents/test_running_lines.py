import pytest

from engine.documents.formats.running_lines import with_whole_sentences, without_running_lines
from engine.documents.sentences import sentence_spans
from tests.one_document import parse_document
from tests.pdf_file import make_pdf

TEXTS = ("Bread is baked.", "It cools down.", "It is cut.", "It is eaten.")


@pytest.mark.parametrize(
    ("pages", "left"),
    [
        # page numbers, alone or with words
        ([f"{text}\n{number}" for number, text in enumerate(TEXTS, 7)], TEXTS),
        ([f"- {number} -\n{text}" for number, text in enumerate(TEXTS, 1)], TEXTS),
        ([f"{text}\nстор. {number}" for number, text in enumerate(TEXTS, 1)], TEXTS),
        ([f"{text}\nPage {number} of 4" for number, text in enumerate(TEXTS, 1)], TEXTS),
        ([f"{text}\n{number} (4)" for number, text in enumerate(TEXTS, 1)], TEXTS),
        (
            [f"{text}\nเอกสาร {n} จาก 4" for n, text in enumerate(TEXTS, 1)],
            (f"{TEXTS[0]}\nเอกสาร 1 จาก 4", *TEXTS[1:]),
        ),
        ([f"{text}\nPage {number}" for number, text in enumerate(TEXTS[:2], 1)], TEXTS[:2]),
        (
            [f"Case 8:16-cv | Page: {n} | Filed: 05/16\n{text}" for n, text in enumerate(TEXTS, 1)],
            (f"Case 8:16-cv | Page: 1 | Filed: 05/16\n{TEXTS[0]}", *TEXTS[1:]),
        ),
        # heads and feet but for the first, on two lines, and with the number of the page
        (
            [f"Bakers' manual\n{text}\nNot for sale\n{n}" for n, text in enumerate(TEXTS, 1)],
            (f"Bakers' manual\n{TEXTS[0]}\nNot for sale", *TEXTS[1:]),
        ),
        (
            [
                "1\nBread is baked.",
                "Chapter 1: All breads\t2\nIt cools down.",
                "Chapter 1: All breads\t3\nIt is cut.",
                "4\nIt is eaten.",
            ],
            (TEXTS[0], f"Chapter 1: All breads\n{TEXTS[1]}", *TEXTS[2:]),
        ),
        (["The bakers' manual\na", "The bakers' manual\nb"], ("The bakers' manual\na", "b")),  # all pages
    ],
)
@pytest.mark.leaves_out("PDF", "(numbers of pages and lines)")
def test_page_numbers_go_and_heads_and_feet_come_once(pages, left):
    assert without_running_lines(pages) == list(left)


@pytest.mark.parametrize(
    "pages",
    [
        ["Bakers' manual\na", "Bakers' manual\nb"],  # on two pages only, and short
        ["Day 1\na", "Day 2\nb", "Day 3\nc"],
        # numbers of something else: years, weeks, customers, questions
        *(
            [f"Results of the {what} {number}\ntext {number}" for number in range(first, first + 4)]
            for what, first in (("year", 2021), ("week", 1), ("week", 14), ("customer", 801))
        ),
        [f"{year}\nIt rained {year - 2000} days" for year in range(2021, 2025)],
        [
            f"{number} {question}\nAnswer {number}"
            for number, question in enumerate(("How so?", "Why not?", "And?"), 1)
        ],
        [f"{text}\nNo accidents happened this week." for text in TEXTS],
        ["a\n12", "b\n40", "c\n31"],
        ["f()\n}", "g()\n}", "h()\n}"],
        ["Bread is baked.", "", "It is cut."],
        [],
    ],
)
def test_other_lines_stay(pages):
    assert without_running_lines(pages) == pages


OPEN = "The large oven is heated before dawn with the wood of old apple trees, which the baker"


def test_a_sentence_goes_on_behind_the_notes_heads_and_feet_of_its_pages():
    pages = [f"One.\n\n{OPEN}\n\n1 Of 1931.\n\nBakery", "The manual\n\nbuys in autumn.\n\nTwo."]
    assert with_whole_sentences(pages) == [
        f"One.\n\n1 Of 1931.\n\nBakery\n\n{OPEN}",
        "buys in autumn.\n\nThe manual\n\nTwo.",
    ]


@pytest.mark.parametrize(
    "page",
    [
        f"{OPEN} buys.\n\n1 Of 1931.\n\nbuys in autumn.",  # the sentence ends
        f"{OPEN}\n\n1 Of 1931.\n\nBuys in autumn.",
        f"{OPEN}\n\nBakery\n\nbuys in autumn.",  # a heading on the same page
        f"{OPEN}\n\nThe bread is baked. It is\n\nbuys in autumn.",
    ],
)
def test_other_paragraphs_stay(page):
    assert with_whole_sentences(["One.", page]) == ["One.", page]


def test_a_sentence_goes_on_across_the_pages_of_a_pdf():
    pages = [
        "Rye keeps for a week and longer if the crust is\nthick. To make it so, leave the loaf in the oven",
        "until its core has ninety-eight degrees, and open\nthe door of the oven for the last five minutes.",
        "A third page",
    ]
    document = parse_document("a.pdf", make_pdf(*(f"Bakers\n{page}\n{n}" for n, page in enumerate(pages, 1))))
    assert document.text.count("Bakers") == 1
    sentences = [" ".join(document.text[start:end].split()) for start, end in sentence_spans(document.text)]
    assert sentences[2] == (
        "To make it so, leave the loaf in the oven until its core has ninety-eight degrees, and open the "
        "door of the oven for the last five minutes."
    )
    assert [document.section_at(document.text.index(word)).page for word in ("loaf", "until", "third")] == [
        1, 2, 3,
    ]  # fmt: skip
