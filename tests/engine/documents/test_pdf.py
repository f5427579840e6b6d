"""PDF files: columns, tables, forms, scans and fonts; what a reader sees is in the text or in the notes."""

import io

import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from engine import limited_reader
from engine.documents import recognition
from engine.documents.formats import pdf, pdf_letters
from engine.documents.formats.from_right import in_reading_order, with_brackets
from engine.documents.formats.pdf import finished, notes_of, without_breaks
from engine.documents.formats.pdf_page import Page, read_page
from engine.documents.loaders import parse_file, parse_limited
from engine.limited_process import Limits, Program, end_idle
from tests.one_document import parse_document
from tests.pdf_file import PICTURE, drawn_pdf, grid, make_pdf, placed, shown
from tests.text_files import packed


def read(*pages, **parts):
    return parse_document("a.pdf", drawn_pdf(*pages, **parts))


LEFT = ("The heating system must", "be bled each autumn by", "the caretaker himself.", "He keeps the key.")
RIGHT = ("Windows on the north", "side stay locked from", "November to March, and", "open in summer.")


@pytest.mark.parametrize("order", ["lines", "columns"])
@pytest.mark.parametrize("head", ["Rules of the house that everybody who lives here has to know", "News", ""])
@pytest.mark.reads("PDF", "columns one after the other")
def test_columns_are_read_one_after_the_other(order, head):
    places = placed(zip(LEFT, RIGHT, strict=True), (50, 320))
    if order == "columns":
        places.sort()
    title = [(340 if head == "News" else 50, 760, head)] * bool(head)
    text = read(shown(*title, *places)).text
    assert text == "\n\n".join([*(one[2] for one in title), "\n".join(LEFT), "\n".join(RIGHT)])


def test_a_head_and_a_foot_in_two_parts_stand_above_and_below_the_columns():
    places = placed(zip(LEFT, RIGHT, strict=True), (50, 320))
    edges = [(50, 760, "Rules of the house"), (320, 760, "Year 2026"), (50, 40, "Vik"), (500, 40, "page 7")]
    paragraphs = read(shown(*edges, *places)).text.split("\n\n")
    assert paragraphs[1:3] == ["\n".join(LEFT), "\n".join(RIGHT)]
    assert [each.split() for each in paragraphs][::3] == [
        ["Rules", "of", "the", "house", "Year", "2026"],
        ["Vik", "page", "7"],
    ]


@pytest.mark.parametrize(("right", "gap"), [("of the house stays shut", "\n"), ("Of the house", "\n\n")])
def test_a_sentence_goes_on_in_the_next_column(right, gap):
    left, right = (*LEFT[:3], "The door at the back"), (right, *RIGHT[1:3], "open in summer.")
    places = [(x, 700 - 14 * n, t) for x, side in ((50, left), (320, right)) for n, t in enumerate(side)]
    assert read(shown(*places)).text == gap.join(map("\n".join, (left, right)))


TABLE = (("Item", "Size", "Price"), ("Lamp", "40 cm", "12.50"), ("Chair", "", "80.00"), ("Table", "2 m", ""))


@pytest.mark.reads("PDF", "tables row by row, cells between ` | `")
def test_a_table_is_read_row_by_row_and_empty_cells_keep_their_places():
    text = read(shown((60, 740, "Prices of the year"), *placed(TABLE, (60, 210, 360), step=16))).text
    assert text.endswith("Item | Size | Price\nLamp | 40 cm | 12.50\nChair |  | 80.00\nTable | 2 m")


def test_a_line_farther_below_the_rows_than_these_from_one_another_is_none_of_their_cells():
    rows = ("Name:", "Mill"), ("Smoker:", "Yes")
    assert read(shown(*placed(rows, (50, 150)), (150, 660, "Approved"))).text.endswith("Yes\n\nApproved")


def test_wide_blanks_of_one_cell_that_is_set_in_full_are_no_columns():
    rows = (("Day", "Room", "Work"), *((f"{n} May", "Hall", f"Lamp number {n}") for n in range(1, 6)))
    last = placed([("6 May", "Hall", "Two", "new", "lamps")], (50, 150, 250, 300, 350), top=616)
    text = read(shown(*placed(rows, (50, 150, 250)), *last)).text
    assert text.split("\n")[-1] == "6 May | Hall | Two new lamps"


def test_lines_between_two_rules_are_one_row():
    rows = ("Fee|When", "20 euros|for cancelling", "|within a week", "|For a copy", "5 euros|Of a page")
    rules = b"".join(b"60 %d m 460 %d l S\n" % (y, y) for y in (712, 697, 673, 649))
    text = read(rules + shown(*placed((row.split("|") for row in rows), (60, 260), step=12))).text
    assert text == "Fee | When\n20 euros | for cancelling within a week\n5 euros | For a copy Of a page"


def test_lines_of_one_cell_are_joined_and_items_of_lists_are_no_cells():
    terms = [(50, 700, "Rent"), (150, 700, "is paid on the first"), (150, 688, "day of each month")]
    terms += [(50, 660, "Repairs"), (150, 660, "are made within"), (150, 648, "a week")]
    assert read(shown(*terms)).text == (
        "Rent | is paid on the first day of each month\nRepairs | are made within a week"
    )
    for first, second in (("1.", "2."), ("1", "2"), ("4.1", "4.2")):
        items = placed([(first, "Open the lid."), (second, "Press the button.")], (50, 80))
        assert read(shown(*items)).text == f"{first} Open the lid.\n{second} Press the button."


@pytest.mark.parametrize(
    ("places", "lines", "text"),
    [
        (  # sentences in cells, and gaps between them that are narrower than letters
            placed([("Task", "Notes"), ("Twelve letters in", "12")], (62, 162), 704, 52)
            + placed([("Clean the filter", ""), ("of the boiler", "")], (62, 162), 684, 12)
            + placed([("Use the blue key,",), ("behind the door.",)], (162,), 684, 12),
            [(60, y, 260, y) for y in (716, 698, 666, 646)] + [(x, 646, x, 716) for x in (60, 160, 260)],
            "Task | Notes\nClean the filter of the boiler | Use the blue key, behind the door.\n"
            "Twelve letters in | 12",
        ),
        (  # merged cells, without a line around the table
            [
                (62, 696, "Model"),
                (142, 704, "Price"),
                (142, 688, "Rent"),
                (202, 688, "Buy"),
                (62, 672, "X1"),
                (142, 672, "20"),
                (202, 672, "900"),
            ],
            [
                (60, 716, 260, 716),
                (130, 700, 260, 700),
                (60, 684, 260, 684),
                (60, 668, 260, 668),
                (130, 668, 130, 716),
                (190, 668, 190, 700),
            ],
            "Model | Price | Price\nModel | Rent | Buy\nX1 | 20 | 900",
        ),
        (  # several rows between two lines
            placed([("Town", "2025")], (62, 162), 704)
            + placed([("Oslo", "12"), ("Rome", "900"), ("Bern", "41")], (62, 162), 684, 12),
            [(60, y, 260, y) for y in (716, 698, 656)] + [(x, 656, x, 716) for x in (60, 160, 260)],
            "Town | 2025\nOslo | 12\nRome | 900\nBern | 41",
        ),
        (  # tables within cells of another
            placed([("Bus", "3", "Can", "4"), ("Car", "9", "Jar", "5")], (62, 92, 162, 192), 684, 12)
            + placed([("Fees", "Days")], (52, 152), 642),
            [(50, y, 250, y) for y in (714, 656, 636)]
            + [(x, 636, x, 714) for x in (50, 150, 250)]
            + [(x, y, x + 60, y) for y in (694, 681, 668) for x in (60, 160)]
            + [(x, 668, x, 694) for x in (60, 88, 120, 160, 188, 220)],
            "Bus | 3\nCar | 9\n\nCan | 4\nJar | 5\nFees | Days",
        ),
        (  # rows without lines between them
            placed([("Day", "Task"), ("Mon", "Mow a lawn"), ("Tue", "Rake leaves")], (62, 162)),
            [(60, y, 260, y) for y in (711, 697, 669)] + [(x, 669, x, 711) for x in (60, 160, 260)],
            "Day | Task\nMon | Mow a lawn\nTue | Rake leaves",
        ),
        (  # rows whose cells have several lines
            placed([("Day", "Task"), ("1 May", "Mow it"), ("9 to 10", "and rake")], (62, 162))
            + placed([("2 May", "Paint the"), ("", "gate")], (62, 162), 658),
            [(60, y, 260, y) for y in (711, 697, 669, 641)] + [(x, 641, x, 711) for x in (60, 160, 260)],
            "Day | Task\n1 May 9 to 10 | Mow it and rake\n2 May | Paint the gate",
        ),
        (  # sentences in cells between gaps alone
            placed([("Task", "Notes for the week")], (60, 160), 704)
            + placed([("Clean the big filter",), ("of the boiler",)], (60,), 682, 12)
            + placed([("Use the blue key, which",), ("hangs there.",)], (160,), 682, 12)
            + placed([("Call the mechanic",), ("about the lamp",)], (60,), 648, 12)
            + placed([("Before Friday at ten",), ("or on Monday.",)], (160,), 648, 12),
            [],
            "Task | Notes for the week\n"
            "Clean the big filter of the boiler | Use the blue key, which hangs there.\n"
            "Call the mechanic about the lamp | Before Friday at ten or on Monday.",
        ),
    ],
)
@pytest.mark.reads("PDF", "in tables with lines, sentences in cells, and merged cells in all their places")
def test_cells_of_several_lines_and_merged_ones_are_read_row_by_row(places, lines, text):
    assert read(grid(*lines) + shown(*places)).text == text


@pytest.mark.reads("PDF", "accents that TeX sets apart")
def test_letters_with_accents_of_tex_are_one_and_words_of_slanted_letters_whole():
    accent, cedilla = rb"(M\310) 333 (uller, A\310) 333 (onen)", rb"( Pas\313) 333 (ca, na\310) 333 (\365ve)"
    strokes = rb"[(\305) 400 (dak )] TJ 4 Ts (\305) Tj 0 Ts [400 (d)] TJ"  # and a line above a letter
    text = read(b"BT /F1 12 Tf 50 700 Td [%s 278 %s] TJ 9 0 Td %s ET" % (accent, cedilla, strokes)).text
    assert text.split() == ["Müller,", "Aönen", "Pasça,", "naïve", "đak", "¯d"]


SPACED = (9.7, 9.1, 6.7, 12.2, 15, 9.1, 9.1, 9.1)  # steps from letter to letter


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        (b"[(They kept two hiv) 0 ( ) 270 (es in May.)] TJ", "They kept two hives in May."),
        (b"[(Q) 250 (uotation)] TJ", "Quotation"),
        (
            b"".join(b"(%c) Tj %.1f 0 Td " % each for each in zip(b"Termsand", SPACED, strict=True)),
            "Terms and",
        ),
        (b"-0.5 Tc (Rock) Tj 24.9 0 Td (Arsenal) Tj 36 0 Td (now) Tj", "Rock Arsenal now"),
        (b"(all ther) Tj 3 Tc 30.5 0 Td (ew) Tj 0 Tc 17.1 0 Td (ere at home) Tj", "all there were at home"),
        (b"(19) Tj 30 0 Td (a b c d e f) Tj", "19 a b c d e f"),
        (b"(NO) Tj ET 66.5 695 m 66.5 712 l S BT /F1 14 Tf 66.5 700 Td (.) Tj", "NO."),
    ],
)
def test_blanks_are_where_gaps_are_wider_than_those_around_them(operators, text):
    assert read(b"BT /F1 11 Tf 50 700 Td " + operators + b" ET").text == text


def test_numbers_above_and_below_a_short_line_within_a_line_are_a_fraction():
    numbers = b"BT /F1 7 Tf 85 704 Td (12) Tj 0 -8 Td (25) Tj ET 85 702.5 m 92.8 702.5 l S "
    line = shown((50, 700, "Take"), (98, 700, "of it."))
    assert read(numbers + line).text == "Take 12/25 of it."


def test_fonts_without_names_have_the_letters_of_tex():
    widths = b"/FirstChar 0/LastChar 255/Widths[%s]" % (b"500 " * 256)
    bitmaps = b"/Subtype/Type3/FontBBox[0 0 500 700]/FontMatrix[.001 0 0 .001 0 0]/CharProcs<<>>" + widths
    assert read(shown((50, 700, "Schi\x1bfahrt, Stra\xffe")), font=bitmaps).text == "Schifffahrt, Straße"


def test_a_ring_behind_a_number_is_the_sign_of_degrees():
    text = "BT /F1 11 Tf 50 700 Td [(at 19) 0 (\\241C and 41) 0 (\\241N, but x \\241 y)] TJ ET"
    ring = b"/Type1/BaseFont/Helvetica/Encoding<</Differences[161/openbullet]>>"
    assert read(text.encode(), font=b"/Subtype" + ring).text == "at 19°C and 41°N, but x ◦ y"


def test_a_line_with_a_value_stays_on_every_page_and_numbers_of_pages_go():
    pages = [f"Diary of day {n}\nCrane: {2 * n} hours\nWeather: dry\n\nSheet {n}/4" for n in range(1, 5)]
    assert parse_document("a.pdf", make_pdf(*pages)).text.count("Weather: dry") == 4


def test_numbers_stand_below_the_heads_of_their_columns():
    rows = (("", "2021", "2022"), ("Costs", "804", "900"), ("Profit", "400", "410"))
    text = read(shown((60, 740, "Results of the mill"), *placed(rows, (60, 120, 180), step=18))).text
    assert text == "Results of the mill\n\n | 2021 | 2022\nCosts | 804 | 900\nProfit | 400 | 410"
    right = placed([("Lap", "Time")], (50, 150)) + placed([("1", "41"), ("2", "38")], (90, 155), 686)
    text = read(shown(*right, (50, 80, "1"), (70, 80, "Of the race in June,"))).text
    assert text == "Lap | Time\n1 | 41\n2 | 38\n\n1 Of the race in June,"


def widget(kind, value, y, more=b""):
    about = b"/FT/%s/T(f%d)/V%s/Rect[200 %d 400 %d]%s" % (kind, y, value, y - 3, y + 12, more)
    return b"<</Type/Annot/Subtype/Widget%s>>" % about


@pytest.mark.reads("PDF", "values of forms, and typed notes, at their places")
@pytest.mark.leaves_out("PDF", "comments and stamps")
def test_values_of_forms_and_typed_notes_stand_at_their_places():
    labels = [(50, 700, "Surname:"), (50, 670, "Policy number:"), (50, 640, "Smoker:"), (50, 610, "Plan:")]
    document = read(
        shown(*labels),
        fields=True,
        annotations=[
            widget(b"Tx", b"(Marta Lind)", 700),
            widget(b"Tx", b"(HX-20931)", 670),
            widget(b"Btn", b"/Yes", 640, b"/AS/Yes/AP<</N<</Yes 4 0 R/Off 4 0 R>>>>"),
            widget(b"Ch", b"(Gold)", 610, b"/Ff 131072/Opt[(Silver)(Gold)]"),
            b"<</Type/Annot/Subtype/FreeText/Rect[50 560 300 580]/Contents(Approved by desk 12)>>",
            b"<</Type/Annot/Subtype/Text/Rect[50 500 70 520]/Contents(Call back)>>",
            b"<</Type/Annot/Subtype/Stamp/Rect[50 300 70 320]>>",
            b"<</Type/Annot/Subtype/FreeText/F 2/Rect[50 400 300 420]/Contents(hidden)>>",
        ],
    )
    lines = document.text.replace("\n\n", "\n").split("\n")
    assert lines == [
        "Surname: Marta Lind", "Policy number: HX-20931", "Smoker: ☒ Yes", "Plan: Gold",
        "Approved by desk 12",
    ]  # fmt: skip
    assert document.notes == (
        "4 form fields were read", "1 comment on page 1 left out", "1 stamp on page 1 left out"
    )  # fmt: skip


@pytest.mark.leaves_out("PDF", "pages and large parts of pages that are pictures")
def test_pages_that_are_pictures_are_named_in_a_note(monkeypatch):
    monkeypatch.setattr(recognition, "is_installed", lambda: False)
    cover, scan = shown((50, 700, "Minutes of the board, with all its decisions on the next pages.")), PICTURE
    notes = read(cover, scan, scan, cover, scan).notes
    assert [note.partition(":")[0] for note in notes] == ["pages 2, 3 and 5 are pictures without text"]
    [note] = read(*(shown((50, 780, f"Archive copy {number}")) + scan for number in range(3))).notes
    assert note.startswith("pages 1 to 3 are pictures with a few words of text")
    assert read(cover + b"q 200 0 0 200 0 0 cm /Im Do Q").notes == ("pictures on page 1 were not read",)
    [failure] = parse_file("a.pdf", drawn_pdf(scan, scan)).failures
    assert "no text on its 2 pages, which are pictures" in failure.reason
    assert "pip install -r requirements-ocr.txt" in failure.reason


def test_a_page_whose_layout_cannot_be_worked_out_is_read_as_it_is_stored(monkeypatch):
    def fails_at_keys(page, form, may_have_tags=True):
        found = read_page(page, form, may_have_tags)
        return {"Bring the key.": found}[found.text]

    monkeypatch.setattr(pdf, "read_page", fails_at_keys)
    document = read(shown((50, 700, "Bring the key.")), shown((50, 700, "Pay on the third.")))
    assert document.text == "Bring the key.\n\nPay on the third."
    assert document.notes == ("page 2 is read as stored: columns and cells of tables may be mixed",)


@pytest.mark.reads("PDF", "pages that are pictures, with the extra below")
def test_text_in_pictures_is_recognised_where_the_libraries_are_installed():
    pytest.importorskip("rapidocr")
    texts = "The gate closes at nine", "Keys are kept in the office", "Dogs stay outside"
    pictures = [Image.new("RGB", (1000, 400), "white") for _ in texts]
    for picture, text in zip(pictures, texts, strict=True):
        ImageDraw.Draw(picture).text((60, 150), text, "black", ImageFont.load_default(60))
    turned = [
        picture.rotate(angle, expand=True) for picture, angle in zip(pictures[1:], (90, 180), strict=True)
    ]
    buffer = io.BytesIO()
    pictures[0].save(buffer, "PDF", save_all=True, append_images=turned)
    document = parse_document("a.pdf", buffer.getvalue())
    assert document.text == "\n\n".join(texts)
    assert document.notes == ("pages 1 to 3 are pictures whose text was recognised (OCR)",)


STAND_IN = """
from pathlib import Path
from engine import reading_program
from engine.documents import recognition
from engine.limited_process import Program

def answer(request):
    reading_program.report = report
    recognition.is_installed = lambda: True
    recognition.RECOGNISER = Program(Path(__file__).with_name("recogniser.py"), 20, forks=False)
    return reading_program.answer(request)
"""
RECOGNISER = """
import os

def answer(request):
    return b'[["Gate 9", [60, 150, 700, 210]]]' if request[-1] else os._exit(3)
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A recogniser that needs no library."""
    (tmp_path / "reader.py").write_text(STAND_IN)
    (tmp_path / "recogniser.py").write_text(RECOGNISER)
    reader = Program(tmp_path / "reader.py", idle_s=5)
    monkeypatch.setattr(limited_reader, "READER", reader)
    yield
    end_idle(reader)


@pytest.mark.usefixtures("stand_in")
def test_each_page_is_recognised_by_itself_with_progress_and_one_that_fails_is_named():
    content, pages = drawn_pdf(PICTURE, b"0 g 0 0 600 800 re f", shown((50, 700, "Typed")), PICTURE), []
    [document] = parse_limited("a.pdf", content, on_page=lambda *counts: pages.append(counts)).documents
    assert pages == [(1, 4), (2, 4), (4, 4)]
    assert document.text.split() == ["Gate", "9", "Typed", "Gate", "9"]
    assert document.notes == (
        "page 2 is a picture whose recognition (OCR) failed or took too long",
        "pages 1 and 4 are pictures whose text was recognised (OCR)",
    )


@pytest.mark.usefixtures("stand_in")
def test_on_a_server_for_all_no_file_waits_for_the_recognition_of_another():
    content = drawn_pdf(PICTURE, shown((50, 700, "Typed")))
    limits = Limits(20, 300, first=Limits(10, 200))
    with limited_reader.ALONE:  # as while a large file is read
        [recognised] = parse_limited("a.pdf", content, None, limits).documents
    assert recognised.text.split() == ["Gate", "9", "Typed"]
    with limited_reader.RECOGNISING:
        [read] = parse_limited("a.zip", packed({"a.pdf": content}), None, limits).documents
    assert read.text == "Typed"
    assert read.notes == (
        "page 1 is a picture without text: text recognition (OCR) is busy with another file: add this one "
        "again in some minutes",
    )


@pytest.mark.leaves_out("PDF", "fonts without a map to characters")
def test_fonts_without_a_map_to_characters_are_noticed():
    wide = (
        b"/Subtype/Type0/BaseFont/A+B/Encoding/Identity-H/DescendantFonts[<</Type/Font/Subtype/CIDFontType2"
        b"/BaseFont/A+B/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 500>>]"
    )
    [failure] = parse_file(
        "a.pdf", drawn_pdf(b"BT /F1 11 Tf 50 700 Td <0035002800310037> Tj ET", font=wide)
    ).failures
    assert "fonts without a map to characters" in failure.reason
    names = b"".join(b"/G%02X" % code for code in range(32, 91))
    glyphs = (
        b"/Subtype/Type1/BaseFont/A+B/FirstChar 32/LastChar 90/Widths[%s]/Encoding<</Differences[32 %s]>>"
    )
    document = read(shown((50, 700, "RENT IS 950 A MONTH")), font=glyphs % (b"500 " * 59, names))
    assert document.text == "RENT IS 950 A MONTH"
    assert "no map to characters" in document.notes[0]
    assert finished("Shipping\t6\nTotal:\t38.73") == "Shipping | 6\nTotal: | 38.73"
    assert finished("Name:\tAnna\nTown:\tOslo") == "Name: Anna\nTown: Oslo"
    assert finished("Bread\tWeight\tPrice", True) == "Bread | Weight | Price"  # whose rows are left out


@pytest.mark.reads("PDF", "powers as `10^6`")
def test_powers_are_written_with_a_mark():
    up, down = b"5 Ts /F1 %d Tf", b"0 Ts /F1 12 Tf"
    words = (b"(3 x 10) Tj", up % 8, b"(6) Tj", down, b"( m) Tj", up % 12, b"(2) Tj", down, b"(, 1) Tj")
    whole = b"BT /F1 12 Tf 50 700 Td %s %s (st) Tj %s (, 10) Tj %s (-4) Tj %s (, a) Tj %s (1.5) Tj ET"
    assert (
        read(whole % (b" ".join(words), up % 8, down, up % 8, down, up % 8)).text
        == "3 x 10^6 m^2, 1st, 10^-4, a^1.5"
    )


def test_glyphs_that_a_font_draws_as_powers_have_the_mark():
    mapped = b"/CIDInit/ProcSet findresource begin begincmap 1 beginbfchar <33><0033> endbfchar endcmap"
    font = b"/Subtype/Type1/BaseFont/Helvetica/Encoding<</Differences[51/threesuperior]>>/ToUnicode 7 0 R"
    unicode = b"<</Length %d>>stream\n%s\nendstream" % (len(mapped), mapped)
    content = drawn_pdf(shown((50, 700, "7 g/cm3 and 103 h4")), font=font, annotations=[unicode])
    assert parse_document("a.pdf", content).text == "7 g/cm^3 and 10^3 h4"


def test_powers_that_are_drawn_behind_all_other_text_are_where_they_stand():
    behind = shown((80, 704, "6"), (129, 704, "2"), (166, 697, "2"), size=7)
    front = shown((50, 700, "3 x 10"), (95, 700, "m or m"), (138, 700, "in CH"), (170, 700, "O. End"))
    assert read(front + behind).text == "3 x 10^6 m or m^2 in CH2O. End"
    charge = shown((50, 700, "HCO")) + shown((75, 697, "3"), (79, 705, "-"), size=7)
    assert read(charge).text == "HCO3^-"
    close = shown((62, 710, "bei")) + shown((50, 700, "60 m")) + shown((76, 704, "2"), size=7)
    assert read(close).text == "bei\n60 m^2"


def test_a_large_first_letter_is_that_of_its_line():
    lines = [(85, 700, "nce the mill stood"), (85, 686, "by the river, and"), (50, 672, "it had two wheels.")]
    large = shown((50, 687, "O"), size=40)
    assert read(large + shown(*lines)).text == "Once the mill stood\nby the river, and\nit had two wheels."


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("50.21 םדא", "אדם 50.21"),
        (".7 הנש, 16% (חמ)", "(מח) 16% ,שנה 7."),
        (".Google Drive-ב רמשנ ץבוק אצמנ", "נמצא קובץ נשמר ב-Google Drive."),
        ("%61 (رب) 05.21", "05.21 (بر) 61%"),
        ("א  ב\r\nדג ab", "ב א\nab גד"),
        ("A word תיב (two: םיתב(.", "A word בית (two: בתים)."),
        ("book   לודג תיב\r\nSome English words", "book בית גדול\nSome English words"),
        ("The word םולש means peace, ספר a book", "The word שלום means peace, רפס a book"),
    ],
)
def test_lines_from_the_right_are_in_the_order_of_their_letters(drawn, text):
    def glyph(place):
        left, base = 10.0 * place, -20.0 * drawn[:place].count("\n")
        return left, 0.0, left + 9 * (drawn[place] > " "), 12.0, base, 12.0

    assert in_reading_order(drawn, glyph)[0].strip() == text


def test_letters_of_two_lines_that_are_mixed_are_parted_and_as_high_as_their_line():
    glyphs = [
        (60, 5, 68, 9, 5, 10),
        (20, 14, 28, 30, 18, 10),
        (50, 3, 58, 12, 5, 10),
        (30, 16, 38, 24, 18, 10),
    ]
    text, places, moved = in_reading_order("אגבד", glyphs.__getitem__)
    assert (text, places) == ("אב\nדג\n", [0, 2, 2, 3, 1, 3])
    assert {box[1::2] for box in moved.values()} == {(2.5, 14.5), (15.5, 27.5)}


def test_blanks_without_a_height_are_of_the_line_of_the_letter_before_them():
    glyphs = [(left, 0, left + 8, 12, 0, 12) for left in (90, 81, 70.6, 62)]
    glyphs.insert(2, (80, 6, 80, 6, 6, 1))
    assert in_reading_order("אב גד", glyphs.__getitem__)[0].strip() == "אב גד"


@pytest.mark.parametrize(
    ("text", "opened", "read"),
    [
        ("a (b( c", "", ("a (b) c", "")),
        ("a )b", "", ("a (b", "()")),
        ("b( c", "()", ("b) c", "")),
        ("1( a", "", ("1) a", "")),
        ("»a« (b", "", ("«a» (b", "()")),
    ],
)
def test_brackets_of_lines_from_the_right_are_the_right_way_round(text, opened, read):
    assert with_brackets(text, opened) == read


def test_signs_of_thai_are_put_behind_their_letters():
    glyphs = [(0, 0, 9, 12, 0, 12), (10, 0, 19, 12, 0, 12), (19, 0, 19, 12, 0, 12), (4, 0, 9, 12, 0, 12)]
    assert in_reading_order("กข ิ", glyphs.__getitem__)[0] == "กิข\n"


def test_lines_of_a_paragraph_are_joined_in_scripts_without_blanks():
    line = "犬と猫は" * 9
    text = f"{line}\n鳥も{line}\n1. 鳥。\n犬\n猫"
    assert without_breaks(text) == text.replace("\n鳥も", "鳥も")


def test_the_box_of_a_glyph_that_is_parted_among_a_letter_and_its_sign_is_one():
    letter, sign = "\u062a", "\u064e"
    parted = [(35, 15, 37, 17, 0, 10), (33, 15, 35, 17, 0, 10)]
    ends = [(0, 0, 0, 0, 0, 0), (20, 0, 30, 12, 0, 10), (16, 0, 20, 12, 0, 10)]
    glyphs = [(40, 0, 50, 12, 0, 10), *parted, *ends]
    text, _, moved = in_reading_order(f"{letter}{sign}{letter}\n{letter}.", glyphs.__getitem__)
    assert text.strip() == f"{letter}{letter}{sign}{letter}."
    assert {box[1::2] for box in moved.values()} == {(-2.5, 9.5)}


@pytest.mark.parametrize(
    ("drawn", "places", "read"),
    [
        # gaps of a quarter before all numbers of a page, and before some
        ("円 4 円", [0, 10, 12.4, 18, 20.4], "円4円"),
        ("円 4円", [0, 10, 12.4, 18], "円 4円"),
        # one glyph of a letter and its sign, seen whole or in part, and blanks that are overlooked
        ("कि किकिक", [0, 5, 10, 12.5, 17.5, 22.5, 27.5, 32.5], "कि किकिक"),
        ("कि किकिक", [0, 5, 10, 12.5, 17.5, 25, 30, 37.5], "किकिकिक"),
        ("किकिकिक", [0, 5, 12.5, 17.5, 22.5, 27.5, 32.5], "कि किकिक"),
    ],
)
def test_gaps_beside_letters_of_east_asia_and_india_are_blanks_by_those_of_the_page(
    drawn, places, read, monkeypatch
):
    widths = {" ": 0, "4": 5.6, "क": 5, "ि": 5}
    glyphs = [(x, 0, x + widths.get(sign, 10), 8, 0, 10) for sign, x in zip(drawn, places, strict=True)]
    monkeypatch.setattr(pdf_letters, "glyph_of", lambda _, n: glyphs[n])
    monkeypatch.setattr(pypdfium2.raw, "FPDFText_IsGenerated", lambda *_: 1)
    assert pdf_letters.without_thin_blanks(None, drawn, range(len(drawn)))[0] == read


@pytest.mark.parametrize(
    ("text", "is_torn"),
    [
        ("كَتَبَ صباحًا", False),
        ("صباح ًا", True),
        ("ريا\nلاً", True),
        ("جزيلاًلكم", True),
        ("שָׁלוֹם ־", False),
        ("犬\n" * 9, True),
        ("犬と\n" * 9, False),
    ],
)
def test_vowel_signs_apart_from_their_words_and_upright_lines_are_told(text, is_torn):
    assert any("upright lines on page 1" in note for note in notes_of([Page(text)])) == is_torn


def test_numbers_below_one_another_are_of_several_rows():
    lines = ("1 Pipe 85,00 170,00", "2 Valve 49,90 49,90", "  Net 219,90", "  Tax 41,78")
    places = placed(([*line.split(" "), ""][:4] for line in lines), (50, 170, 290, 410), step=18)
    text = "1 | Pipe | 85,00 | 170,00\n2 | Valve | 49,90 | 49,90\n |  | Net | 219,90\n |  | Tax | 41,78"
    assert read(shown(*places)).text == text


def test_cells_with_lines_of_their_own_are_those_of_a_table():
    boxes = b"".join(b"%d %d 98 18 re S\n" % (50 + 100 * j, 700 - 20 * i) for i in range(2) for j in range(2))
    places = [(54 + 100 * j, 705 - 20 * i, "abcd"[2 * i + j] + " cell") for i in range(2) for j in range(2)]
    assert read(boxes + shown(*places)).text == "a cell | b cell\nc cell | d cell"


def test_words_are_joined_in_lines_set_in_full():
    words = shown((50, 700, "The"), (120, 700, "steamship com-"), (50, 680, "pany sailed on the"))
    assert (
        read(words + shown((50, 660, "third"), (140, 660, "of May."))).text
        == "The steamship company\nsailed on the\nthird of May."
    )


def test_attached_files_are_named():
    attached = b"<</Names<</EmbeddedFiles<</Names[(b.xml)<</F(b.xml)/EF<</F 4 0 R>>>>]>>>>/Type/Catalog"
    content = drawn_pdf(shown((50, 700, "Invoice"))).replace(b"<</Type/Catalog", attached)
    assert parse_document("a.pdf", content).notes == ("attached file b.xml left out",)
    pinned = b"<</Type/Annot/Subtype/FileAttachment/Rect[0 0 9 9]>>"
    assert read(shown((50, 700, "Invoice")), annotations=[pinned]).notes == (
        "1 attached file on page 1 left out",
    )


@pytest.mark.reads("PDF", "turned text")
def test_turned_text_is_read_line_by_line():
    turned = b"BT /F1 11 Tf 0 1 -1 0 300 300 Tm (Turned table title) Tj 0 -14 Td (Second turned line) Tj ET\n"
    text = read(shown((50, 700, "Normal text here.")) + turned).text
    assert text == "Normal text here.\n\nTurned table title\nSecond turned line"


@pytest.mark.reads("PDF", "encrypted files that open without a password")
def test_files_encrypted_with_aes_open_without_a_password(tmp_path):
    pypdf = pytest.importorskip("pypdf")
    pytest.importorskip("cryptography")
    for algorithm in ("AES-128", "AES-256"):
        plain, path = tmp_path / "plain.pdf", tmp_path / "locked.pdf"
        plain.write_bytes(make_pdf("The rent is due."))
        for password in ("", "secret"):
            writer = pypdf.PdfWriter(clone_from=plain)
            writer.encrypt(user_password=password, owner_password="owner", algorithm=algorithm)
            writer.write(path)
            loaded = parse_file("a.pdf", path.read_bytes())
            if password:
                assert "is encrypted: save a copy without a password" in loaded.failures[0].reason
            else:
                assert loaded.documents[0].text == "The rent is due."


@pytest.mark.leaves_out("PDF", "heads and feet after their first page")
def test_heads_that_are_read_once_are_named_in_a_note():
    document = parse_document("a.pdf", make_pdf(*(f"Bread manual\nText {n} of bread" for n in "abcd")))
    assert document.text.count("manual") == 1
    assert document.notes == ("heads and feet that come again were read once: “Bread manual”",)


HOURS = [("Name", "Place", "Hours"), ("Blue", "First floor", "9-12"), ("Red", "Second floor", "14-16"),
         ("Green", "Cellar", "closed")]  # fmt: skip


def test_cells_with_narrow_gaps_are_parted_as_in_other_rows_and_columns_below_are_read_apart():
    left = (
        "Die Heizung wird jeden Herbst vom",
        "Hausmeister entlüftet. Jede Wohnung",
        "Kinder zahlen nichts.",
    )
    right = ("Hunde dürfen ab dem Frühling in den", "Garten. Das Schwimmbad öffnet im Mai", "jedes Jahres.")
    columns = [
        (x, y - 12 * n, t) for x, y, side in ((50, 590, left), (250, 597, right)) for n, t in enumerate(side)
    ]
    below = (50, 540, "Fees"), (50, 510, "The pool costs five euros, and the garden nothing at all.")
    text = read(shown(*placed(HOURS, (50, 102, 174), step=17), *columns, *below)).text
    assert text.split("\n\n")[:3] == ["\n".join(map(" | ".join, HOURS)), "\n".join(left), "\n".join(right)]


def columns_of_lines(*blocks, top=700, step=14):
    """Places of blocks of lines, drawn one after the other: where each stands, and its lines."""
    return [(x, top - step * n, text) for x, lines in blocks for n, text in enumerate(lines)]


SHOP = ("Mill Books Ltd", "7 Quay Street", "90210 Varel")
GUEST = ("Ada Lund", "12 Bridge Road", "20107 Kirby")


@pytest.mark.parametrize(
    ("places", "text"),
    [
        (columns_of_lines((50, SHOP), (350, GUEST)), "\n".join(SHOP) + "\n\n" + "\n".join(GUEST)),
        (  # a short heading between columns ends them
            [*columns_of_lines((50, LEFT), (320, RIGHT)), (50, 610, "Roof"),
             *columns_of_lines((50, RIGHT), (320, LEFT), top=590)],
            "\n".join(LEFT) + "\n\n" + "\n".join(RIGHT) + "\n\nRoof\n" + "\n".join(RIGHT) + "\n\n"
            + "\n".join(LEFT),
        ),
        (  # two tables
            [place for x in (50, 300) for y, row in ((700, ("Item", "Sum")), (686, ("Lamp", "4")))
             for place in ((x, y, row[0]), (x + 70, y, row[1]))],
            "Item | Sum\nLamp | 4\n\nItem | Sum\nLamp | 4",
        ),
        (  # the last line of the left one begins the right one
            columns_of_lines((50, (*LEFT, "Ring before you")), (320, ("come in.",))),
            "\n".join((*LEFT, "Ring before you", "come in.")),
        ),
    ],
)  # fmt: skip
def test_blocks_side_by_side_are_read_as_the_file_draws_them(places, text):
    assert read(shown(*places)).text == text


@pytest.mark.parametrize("low", [0, 7])
def test_a_cell_of_several_lines_is_one_wherever_the_others_of_its_row_stand(low):
    rows = [("Ask twice, then", "wait an hour", "3"), ("Close the lid and", "turn the key", "4")]
    places = [
        place
        for n, (first, second, cell) in enumerate(rows)
        for place in ((50, 690 - 34 * n, first), (50, 676 - 34 * n, second), (250, 690 - low - 34 * n, cell))
    ]
    text = read(shown((50, 710, "What to do"), (250, 710, "Days"), *places, (200, 50, "12"))).text
    rows = "What to do | Days\nAsk twice, then wait an hour | 3\nClose the lid and turn the key | 4"
    assert text == f"{rows}\n\n12"


@pytest.mark.parametrize("up", [0, 12, 24], ids=["top", "middle", "bottom"])
def test_cells_of_several_lines_that_are_drawn_last_are_in_their_rows(up):
    table = ("Task", "What", "Cost"), ("Pump", "", "20"), ("Lamp", "Change it", "5")
    rows = placed(table, (50, 120, 300), 700, 60)
    lines = ("Clean the filter of it",), ("and write it into",), ("the book",)
    late = placed(lines, (120,), 640 + up, 12)
    assert read(shown(*rows, *late)).text.split("\n")[-2:] == [
        "Pump | Clean the filter of it and write it into the book | 20",
        "Lamp | Change it | 5",
    ]


def test_cells_that_the_file_draws_apart_are_parted_however_narrow_the_gap():
    rows = (
        ("1 May 26", "Lamp oil for us", "4"),
        ("2 May 26", "Bread and oil", "9"),
        ("3 May 26", "A new lamp", "7"),
    )
    assert read(shown(*placed(rows, (50, 104, 400), step=20))).text == "\n".join(map(" | ".join, rows))


def test_a_head_of_two_words_of_a_typewriter_is_of_one_column():
    places = (50, 700, "NO"), (110, 700, "UNIT COST"), *placed([("1", "0.11"), ("2", "0.23")], (50, 140), 680)
    text = read(shown(*places, size=10), font=b"/Subtype/Type1/BaseFont/Courier").text
    assert text == "NO | UNIT COST\n1 | 0.11\n2 | 0.23"


def test_a_heading_with_a_number_is_no_row_of_the_table_below():
    rows = ("Fault", "Cause"), ("It slips", "Oil"), ("It sticks", "Rust")
    text = read(shown((50, 700, "3"), (80, 700, "Faults"), *placed(rows, (80, 200), top=660))).text
    assert text == "3 Faults\n\n" + "\n".join(map(" | ".join, rows))


def test_a_head_above_the_name_of_a_group_is_of_the_table():
    rows = ("", "2024", "2025", "Plan"), ("Income", "", "", ""), ("Tickets", "31", "38", "40")
    text = read(shown((50, 740, "Budget"), *placed(rows, (50, 150, 250, 350)))).text
    assert text == "Budget\n\n | 2024 | 2025 | Plan\nIncome\nTickets | 31 | 38 | 40"


def test_text_goes_on_beside_a_box_on_the_right_that_is_drawn_first():
    box = columns_of_lines((400, ("Surface: 38 km", "Depth: 171 m")), top=693)
    text = ("The lake lies in the", "mountains and is known", "for its clear water.")
    read_text = read(shown(*box, (50, 740, "The lake"), *columns_of_lines((50, text)))).text
    assert read_text == "The lake\n\nSurface: 38 km\nDepth: 171 m\n\n" + "\n".join(text)


def test_letters_raised_above_a_number_are_a_power():
    raised = shown((50, 700, "so 2")) + shown((71, 705, "x"), size=7) + shown((79, 700, "= 64"))
    assert read(raised).text == "so 2^x = 64"
