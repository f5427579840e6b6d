"""Sheets, slides, books, e-mails, RTF, OpenDocument and subtitles."""

import datetime
import io
import re
from email.message import EmailMessage
from zipfile import ZipFile

import openpyxl
import pptx
import pytest
from lxml.etree import SubElement
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image as Picture
from openpyxl.styles import Font
from PIL import Image
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from engine.documents.document import Section
from engine.documents.formats import office
from engine.documents.formats.number_formats import shown
from engine.documents.loaders import parse_file
from tests.one_document import parse_document
from tests.text_files import packed


def saved(file):
    buffer = io.BytesIO()
    file.save(buffer)
    return buffer.getvalue()


def workbook(*sheets):
    """A workbook of sheets of rows; merged ranges may follow the rows of each."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows, *merged in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for each in merged:
            sheet.merge_cells(each)
    return book


@pytest.mark.reads(
    "Excel (.xlsx, .xlsm)",
    "every sheet",
    "every row as `column: value` under the names of its columns",
    "values as they are shown, days as 2021-05-03",
)
def test_rows_of_a_workbook_have_the_names_of_their_columns():
    book = workbook(
        (
            "Prices",
            [["Item", "Price", "Since"], ["Lamp", 12.5, datetime.date(2021, 5, 3)], ["Chair", None, "May"]],
        ),
        ("Stock", [["Stock of the shop"], [], ["Item", "Share"], ["Lamp", 0.035]]),
    )
    book["Prices"]["B2"].number_format = "#,##0.00 €"
    book["Stock"]["B4"].number_format = "0.0%"
    document = parse_document("a.xlsx", saved(book))
    assert document.text == (
        "Prices\n\nItem: Lamp\nPrice: 12.50 €\nSince: 2021-05-03\n\nItem: Chair\nSince: May\n\n"
        "Stock\n\nStock of the shop\n\nItem: Lamp\nShare: 3.5%"
    )
    assert document.sections[1] == Section(8, ("Prices", "row 2"), is_row=True)
    assert document.section_at(document.text.index("3.5%")).headings == ("Stock", "row 4")
    with ZipFile(io.BytesIO(saved(book))) as archive:
        members = {path: archive.read(path) for path in archive.namelist()}
    usual, other = rb"http://schemas.openxmlformats.org/(\w+)/2006/", rb"http://purl.oclc.org/ooxml/\1/"
    strict = packed({path: re.sub(usual, other, member) for path, member in members.items()})
    assert parse_document("a.xlsx", strict).text == document.text


@pytest.mark.reads(
    "Excel (.xlsx, .xlsm)", "names of columns in several rows", "merged cells in all their places"
)
def test_merged_heads_and_cells_stand_in_all_their_places():
    rows = [["Model", "Price", None], [None, "Rent", "Buy"], ["Lamp", 3, 20], [None, 4, 30], ["Sold out"]]
    document = parse_document("a.xlsx", saved(workbook(("S", rows, "B1:C1", "A1:A2", "A3:A4", "A5:C5"))))
    assert document.text == (
        "S\n\nModel: Lamp\nPrice, Rent: 3\nPrice, Buy: 20\n\nModel: Lamp\nPrice, Rent: 4\nPrice, Buy: 30"
        "\n\nSold out"
    )


@pytest.mark.leaves_out(
    "Excel (.xlsx, .xlsm)", "hidden sheets, rows and columns", "formulas without a saved value"
)
def test_what_is_hidden_in_a_workbook_is_left_out_and_told():
    book = workbook(
        ("Shown", [["Item", "Cost", "Sum"], ["Lamp", 7, "=B2*2"], ["Chair", 9, 18]]), ("Secret", [["x"]])
    )
    book["Secret"].sheet_state = "hidden"
    book["Shown"].row_dimensions[3].hidden = True
    book["Shown"].column_dimensions["B"].hidden = True
    document = parse_document("a.xlsx", saved(book))
    assert document.text == "Shown\n\nSum\n\nItem: Lamp"
    assert [note.split(":")[0] for note in document.notes] == [
        "1 hidden row of Shown left out",
        "1 formula of Shown without a saved value",
        "1 hidden column of Shown left out",
        "1 hidden sheet left out",
    ]


@pytest.mark.reads("Excel (.xlsx, .xlsm)", "what is struck out as `~~50~~`", "heads and feet of pages once")
@pytest.mark.leaves_out("Excel (.xlsx, .xlsm)", "charts, pictures, comments")
def test_what_lies_on_a_sheet_is_told():
    book = workbook(("S", [["Item", "Price"], ["Lamp", 7]]))
    book["S"]["A2"].comment = Comment("look", "Ann")
    book["S"]["B2"].font = Font(strike=True)
    book["S"].add_chart(BarChart())
    book["S"].add_image(Picture(picture()))
    book["S"].oddHeader.left.text, book["S"].oddFooter.center.text = "Ann && Co", "&8Page &P"
    document = parse_document("a.xlsx", saved(book))
    assert document.text.endswith("Price: ~~7~~\n\nAnn & Co")
    small = InlineFont(vertAlign="superscript")
    parts = CellRichText("5 m", TextBlock(small, "2"), " at ", TextBlock(InlineFont(strike=True), "3"))
    assert (
        parse_document("a.xlsx", saved(workbook(("S", [["Area"], [parts]])))).text
        == "S\n\nArea\n\n5 m^2 at ~~3~~"
    )
    assert document.notes == ("1 comment left out", "1 chart left out", "1 picture left out")


@pytest.mark.reads("Excel (.xlsx, .xlsm)", "several tables of a sheet")
def test_a_sheet_may_have_several_tables():
    tables = ("Name", "Code"), ("Ann", 34), (), ("Town", "People"), ("Oslo", 5), ()
    texts = ("Guides",), ("Who", "Speaks"), ("Bo", "Thai"), ("Cy", "Dutch")
    text = parse_document("a.xlsx", saved(workbook(("S", [*tables, *texts])))).text
    assert text == (
        "S\n\nName: Ann\nCode: 34\n\nTown: Oslo\nPeople: 5\n\nGuides\n\nWho: Bo\nSpeaks: Thai\n\n"
        "Who: Cy\nSpeaks: Dutch"
    )


def test_numbers_are_shown_as_excel_shows_them():
    shown_by = {
        "00000": (34, "00034"), '0,"k"': (7000, "7k"), "# ?/?": (-1.5, "-1 1/2"), "# ??/16": (0.3125, "5/16"),
        "#,##0.00_);[Red](#,##0.00)": (-1234.5, "(1,234.50)"), "0.0E+0": (0.00012, "1.2E-4"),
        '"No. "0': (42, "No. 42"), '0.0;-0.0;"none"': (0, "none"), '[<10]"few";0': (12, "12"),
        "0.0%": (0.256, "25.6%"), "000-0000": (5551234, "555-1234"), "GENERAL": (0.5, "0.5"),
        "[$€-407] #,##0": (1e6, "€ 1,000,000"), r"\1\.0#": (7, "1.07"), "0.##": (2.5, "2.5"),
        "0": (1e30, "1" + "0" * 30),
    }  # fmt: skip
    assert {layout: shown(value, layout) for layout, (value, _) in shown_by.items()} == {
        layout: text for layout, (_, text) in shown_by.items()
    }


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([[None, 2024, 2025], ["Profit", 4, 7]], "Profit\n2024: 4\n2025: 7"),
        ([["Contact", "Anna 5"], ["Phone", 5550142]], "Contact | Anna 5\n\nPhone | 5550142"),
        ([[None, 2025], [None, "Sold", "Cost"], ["North", 4, 7]], "North\n2025, Sold: 4\n2025, Cost: 7"),
        (
            [
                ["Seller", "Mill", None, "Buyer", "Ann"],
                ["No.", 34, None, "Due", 2025],
                [],
                ["What", "Price"],
                ["Oak", 4],
            ],
            "Seller | Mill | Buyer | Ann\n\nNo. | 34 | Due | 2025\n\nWhat: Oak\nPrice: 4",
        ),
    ],
)
def test_years_are_names_of_columns_and_pairs_have_none(rows, text):
    merged = ["B1:C1"] * (len(rows) == 3)
    assert parse_document("a.xlsx", saved(workbook(("S", rows, *merged)))).text == f"S\n\n{text}"


def picture():
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    return file


def slides():
    file = pptx.Presentation()
    layout = file.slide_layouts[5]
    first = file.slides.add_slide(layout)
    first.shapes.title.text = "Safety"
    low = first.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
    low.text_frame.text = "Below"
    low.text_frame.paragraphs[0].add_run().text = " 50"
    low.text_frame.paragraphs[0].runs[1].font._element.set("strike", "sngStrike")
    high = first.shapes.add_textbox(Inches(1), Inches(2), Inches(3), Inches(1))
    high.text_frame.text = "Above"
    first.shapes.add_picture(picture(), Inches(1), Inches(6))
    first.notes_slide.notes_text_frame.text = "Say hello"
    second = file.slides.add_slide(layout)
    second.shapes.title.text = "Prices"
    table = second.shapes.add_table(3, 2, Inches(1), Inches(2), Inches(4), Inches(2)).table
    for row, texts in enumerate((("Rooms", ""), ("Blue", "3"), ("Red", "4"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(0, 0).merge(table.cell(0, 1))
    data = CategoryChartData('"€ "#,##0')
    data.categories = ["2021", "2022"]
    data.add_series("Profit", (4, 7_000_000))
    kind, place = XL_CHART_TYPE.COLUMN_CLUSTERED, (Inches(1), Inches(5), Inches(3), Inches(2))
    plot = second.shapes.add_chart(kind, *place, data).chart.plots[0]._element
    plot.tag = plot.tag.replace("barChart", "bar3DChart")
    hidden = file.slides.add_slide(layout)
    hidden.shapes.title.text = "Draft"
    hidden._element.set("show", "0")
    return file


@pytest.mark.reads(
    "PowerPoint (.pptx, .ppsx)",
    "each slide as a page under its title",
    "boxes from top to bottom",
    "tables",
    "charts as tables",
    "the speaker's notes",
    "what is struck out as `~~50~~`",
)
@pytest.mark.leaves_out("PowerPoint (.pptx, .ppsx)", "hidden slides", "pictures")
def test_slides_are_pages_under_their_titles():
    document = parse_document("a.pptx", saved(slides()))
    first, second = (
        "Safety\n\nAbove\n\nBelow ~~50~~\n\nNotes: Say hello",
        "Prices\n\nRooms\nBlue | 3\nRed | 4",
    )
    assert document.text.startswith(f"{first}\n\n{second}\n\n")
    assert document.text.endswith("| Profit\n2021 | € 4\n2022 | € 7,000,000")
    assert document.sections == (Section(0, ("Safety",), 1), Section(len(first) + 2, ("Prices",), 2))
    assert document.title == "Safety"
    assert document.notes == ("1 hidden slide was left out", "1 picture was left out")


def test_a_box_for_anything_is_no_title_and_heads_of_notes_are_read_once():
    file = pptx.Presentation()
    for text in ("Point", "Other"):
        slide = file.slides.add_slide(file.slide_layouts[5])
        slide.shapes.title.text, slide.shapes.title.top = text, Inches(3)
        del slide.shapes.title._element.nvSpPr.nvPr.ph.attrib["type"]
        slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1)).text_frame.text = "Head"
        box = slide.notes_slide.notes_placeholder
        box.text = "Ann's talk"
        box._element.nvSpPr.nvPr.ph.set("type", "hdr")
    assert parse_document("a.pptx", saved(file)).text == "Head\n\nPoint\n\nNotes: Ann's talk\n\nHead\n\nOther"


def test_two_lists_with_heads_are_read_one_after_the_other():
    file = pptx.Presentation()
    shapes = file.slides.add_slide(file.slide_layouts[6]).shapes
    for text, left, top in (("Old", 1, 1), ("38 cats", 1, 2), ("New", 5, 1), ("52 cats", 5, 2)):
        shapes.add_textbox(Inches(left), Inches(top), Inches(3), Inches(1)).text_frame.text = text
    assert parse_document("a.pptx", saved(file)).text.split("\n\n") == ["Old", "38 cats", "New", "52 cats"]


@pytest.mark.reads("PowerPoint (.pptx, .ppsx)", "what layouts and masters write on slides, once")
def test_boxes_with_alternatives_and_those_of_layouts_are_read():
    file = pptx.Presentation()
    layout = file.slide_layouts[6]
    for start, text in ((1, "Ann & Co"), (-9, "Colours")):  # the second lies beside the slides
        box = file.slides.add_slide(layout).shapes.add_textbox(Inches(start), Inches(1), Inches(2), Inches(1))
        box.text_frame.text = text
        layout.shapes._spTree.append(box._element)
    shapes = file.slides[0].shapes
    newer = shapes.add_textbox(Inches(1), Inches(2), Inches(3), Inches(1))
    newer.text_frame.text = "The fee is 7."
    space = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
    choice = SubElement(SubElement(shapes._spTree, f"{space}AlternateContent"), f"{space}Choice")
    choice.append(newer._element)
    assert parse_document("a.pptx", saved(file)).text == "The fee is 7.\n\nAnn & Co"


def test_a_slide_that_the_file_has_lost_is_told_and_the_others_are_read():
    file = slides()
    file.part.rels.pop(file.slides._sldIdLst[0].rId)
    document = parse_document("a.pptx", saved(file))
    assert document.text.startswith("Prices\n\nRooms")
    assert "1 missing slide was left out" in document.notes


CONTAINER = '<container xmlns="urn:x"><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
<dc:title>Bees</dc:title><dc:date>2021-05-03</dc:date><dc:subject>insects</dc:subject></metadata><manifest>
<item id="n" href="nav.xhtml" properties="nav"/><item id="b" href="two%20.xhtml"/>
<item id="a" href="one.xhtml"/><item id="c" href="cover.xhtml"/></manifest>
<spine><itemref idref="c"/><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""


def book(**more):
    chapters = {
        "OPS/one.xhtml": "<html><body><h1>One</h1><p>Bees fly.</p></body></html>",
        "OPS/two .xhtml": "<html><body><h1>Two</h1><p>They dance.</p></body></html>",
        "OPS/cover.xhtml": "<html><body><img src='x.png'/></body></html>",
        "OPS/nav.xhtml": "<html><body><p>Contents</p></body></html>",
    }
    files = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": PACKAGE, **chapters, **more}
    return packed({"mimetype": "application/epub+zip", **files})


@pytest.mark.reads("EPUB", "the chapters in reading order, each as a page of HTML")
@pytest.mark.leaves_out("EPUB", "chapters without text", "(the table of contents)")
def test_a_book_has_its_chapters_in_reading_order():
    document = parse_document("a.epub", book())
    assert document.text == "One\n\nBees fly.\n\nTwo\n\nThey dance."
    assert document.sections == (Section(0, ("One",)), Section(16, ("Two",)))
    assert (document.title, document.date, document.tags) == ("Bees", "2021-05-03", ("insects",))
    lacking = book(**{"OPS/book.opf": PACKAGE.replace("two", "ten")})
    assert parse_document("a.epub", lacking).notes[-1] == "chapters that the file lacks: OPS/ten .xhtml"


def test_the_style_sheets_of_a_book_tell_powers_beside_a_font_of_300_kb():
    font = "@font-face { src: url(data:font/woff;base64," + "Abc9" * 75_000 + ") }"
    sheet = font + "@media print { .y { top: 1em } } .x { vertical-align: super }"
    chapter = "<html><head></head><body><p>10<span class='x'>6</span> bees</p></body></html>"
    document = parse_document("a.epub", book(**{"OPS/s.css": sheet, "OPS/one.xhtml": chapter}))
    assert document.text.startswith("10^6 bees")


def encryption(method):
    return {"META-INF/encryption.xml": f'<e xmlns="x"><EncryptionMethod Algorithm="{method}"/></e>'}


@pytest.mark.leaves_out("EPUB", "books with DRM, which are refused")
def test_a_book_with_copy_protection_is_refused_and_one_with_encrypted_fonts_is_read():
    [failure] = parse_file(
        "a.epub", book(**encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc"))
    ).failures
    assert "is protected against copies (DRM)" in failure.reason
    assert parse_file("a.epub", book(**encryption("http://www.idpf.org/2008/embedding"))).documents


def mail(subject, text, *attached):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Anna <a@x.org>", "b@x.org", subject
    message["Date"] = "Mon, 3 May 2021 09:30:00 +0200"
    message.set_content(text)
    message.add_alternative(f"<p>{text}</p>", subtype="html")
    for name, content in attached:
        if isinstance(content, EmailMessage):
            message.add_attachment(content)
        else:
            message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message


@pytest.mark.reads(
    "e-mail (.eml)",
    "sender, receivers, date, subject and the plain text",
    "each attachment as a document of its own",
)
@pytest.mark.leaves_out("e-mail (.eml)", "attachments of other formats, each a line")
def test_an_email_has_its_heads_and_text_and_its_attachments_are_documents():
    message = mail(
        "Grüße", "The rent is due.", ("a.csv", b"id,text\n1,x\n"), ("b.bin", b"x"), ("c.pdf", b"no")
    )
    loaded = parse_file("m.eml", message.as_bytes())
    first, second = loaded.documents
    assert first.text == (
        "From: Anna <a@x.org>\nTo: b@x.org\nDate: Mon, 03 May 2021 09:30:00 +0200\nSubject: Grüße\n\n"
        "The rent is due.\n\nAttached: a.csv, b.bin, c.pdf"
    )
    assert (first.title, first.date) == ("Grüße", "2021-05-03")
    assert second.name.startswith("m.eml/a.csv")
    assert loaded.skipped == ("m.eml/b.bin",)
    assert "no PDF" in loaded.failures[0].reason


@pytest.mark.reads("e-mail (.eml)", "e-mails that are attached, up to 3 deep")
def test_emails_attached_to_one_another_are_documents_up_to_a_depth():
    message = mail("5", "text 5")
    for number in range(4, -1, -1):
        message = mail(str(number), f"text {number}", ("", message))
    loaded = parse_file("m.eml", message.as_bytes())
    assert [document.title for document in loaded.documents] == ["0", "1", "2", "3"]
    [failure] = loaded.failures
    assert "attached more than 3 deep" in failure.reason


def test_an_email_in_html_alone_is_read():
    message = EmailMessage()
    message["Subject"] = "Hi"
    message.set_content("<p>Bring <b>keys</b></p>", subtype="html")
    assert parse_document("m.eml", message.as_bytes()).text == "Subject: Hi\n\nBring keys"
    message.set_content("<p>Fee 5 €", subtype="html", charset="windows-1252", cte="8bit")
    assert parse_document("m.eml", message.as_bytes()).text == "Subject: Hi\n\nFee 5 €"
    assert parse_document("m.eml", "Subject: Grüße\n\nHi".encode("cp1252")).title == "Grüße"
    assert parse_document("a.ics", b"X:a b\xc3\r\n \xbc").text == "X:a bü"


@pytest.mark.reads("e-mail (.eml)", "the text in HTML where the plain one is missing or says little of it")
def test_an_email_whose_plain_text_says_nothing_is_read_in_html():
    head = b"From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=x\n\n"
    plain, page = b"text/plain\n\nYour browser shows all.", b"text/html\n\n<p>The fee is 12.<p>It is due."
    parts = b"--x\nContent-Type: %b\n--x\nContent-Type: %b\n" % (plain, page)
    assert "The fee is 12." in parse_document("a.eml", head + parts + b"--x--\n").text
    loaded = parse_file("a.eml", head.replace(b"alternative", b"mixed") + parts + b"--x--\n")
    assert [each.text[:16] for each in loaded.documents] == ["From: a@b\n\nYour ", "The fee is 12.\n\n"]


BELOW = ("[^1] By 3.5 percent.", "[^2] May")


@pytest.mark.reads("RTF", "text", "tables", "footnotes at the end")
@pytest.mark.leaves_out("RTF", "pictures, heads and feet")
def test_rtf_is_read_with_its_footnotes_and_tables():
    content = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title The lease}}{\header Top\par}\pard"
        rb" K\'fcche: rent rises"
        rb"{\footnote \pard By {\b 3.5} percent.} yearly. \u8364?5\par{\v DRAFT}"
        rb"\trowd\cellx100\cellx200 {Blue\par}\cell 9-12{\*\footnote May}\cell\row\pard End.\par{\pict 00ff}}"
    )
    document = parse_document("a.rtf", content)
    lines = [" ".join(line.split()) for line in document.text.split("\n") if line.strip()]
    assert lines == ["Küche: rent rises[^1] yearly. €5", "Blue | 9-12[^2]", "End.", *BELOW]
    assert document.title == "The lease"
    bullet = rb"{\rtf1{\fonttbl{\f3\fnil\fcharset128 OpenSymbol;}}{\listtext\f3 \'95\tab}one}"
    assert parse_document("a.rtf", bullet).text.split() == ["•", "one"]
    assert document.notes == (
        "hidden text was left out", "1 picture left out", "1 head and foot line left out"
    )  # fmt: skip


OTHER = ("xlsx", "pptx", "epub", "odt", "rtf", "eml")
NAMESPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
                        ("style", "style"), ("presentation", "presentation"), ("form", "form"))
)  # fmt: skip


@pytest.mark.reads(
    "RTF", "powers as `10^6`", "what is struck out as `~~50~~`", "text boxes apart", "numbers of lists"
)
@pytest.mark.leaves_out("RTF", "hidden text", "(tracked deletions)")
def test_powers_hidden_and_deleted_text_of_rtf():
    unseen = rb"{\rtlch\af0 \v\fs20 secret}{\b\deleted\revauth1 gone}"
    powers = (
        rb"3 x 10{\super 6} m\super 2\nosupersub , s\up6 3\up0%s, 1{\super st} m{\super\loch \u8722\'3f2}"
    )
    document = parse_document("a.rtf", rb"{\rtf1\ansi %s\par}" % powers % unseen)
    assert document.text == "3 x 10^6 m^2, s^3, 1st m^−2"
    box = rb"{\shp{\*\shpinst\shpleft9{\sp{\sn x}{\sv 1}}{\shptxt Ring twice\par}}{\shprslt Ring twice}}"
    lists = rb"{\rtf1\ansi{\pntext 1.\tab}Fee {\b\strike 50} \strike 60\strike0  40\par%s Door\par}" % box
    assert " ".join(parse_document("a.rtf", lists).text.split()) == "1. Fee ~~50~~ ~~60~~ 40 Ring twice Door"
    assert document.notes == ("hidden text was left out",)


def test_heads_and_feet_of_a_text_of_libreoffice_are_read_once_and_without_page_numbers():
    head = "<style:header><text:p>Bakers' manual</text:p></style:header>"
    foot = "<style:footer><text:p>Page <text:page-number>1</text:page-number></text:p></style:footer>"
    margins = f"<style:master-page>{head}{foot}</style:master-page>" * 2
    file = opendocument("text", "<text:p>Bread is baked.</text:p>", margins=margins)
    assert parse_document("a.odt", file).text == "Bakers' manual\n\nBread is baked."


def test_a_title_and_notes_of_rtf_that_marks_no_paragraphs():
    content = rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\info{\title K\'fcche}}Rent{\footnote By 3 percent.}}"
    document = parse_document("a.rtf", content)
    assert (document.title, document.text.split()) == ("Küche", ["Rent[^1]", "[^1]", "By", "3", "percent."])


def opendocument(kind, body, styles="", manifest="", margins=""):
    content = (
        f"<office:document-content {NAMESPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    stated = f"<office:document-styles {NAMESPACES}>{margins}</office:document-styles>"
    return packed(
        {"META-INF/manifest.xml": f"<m>{manifest}</m>", "content.xml": content, "styles.xml": stated}
    )


@pytest.mark.reads(
    "LibreOffice (.odt, .ods, .odp)", "headings, lists with numbers, notes, text boxes, tables"
)
@pytest.mark.leaves_out("LibreOffice (.odt, .ods, .odp)", "hidden text", "(tracked deletions)")
def test_a_text_of_libreoffice_has_headings_lists_notes_and_tables():
    numbered = """<text:list-style style:name="L"><text:list-level-style-number text:level="1"
    style:num-format="1" style:num-suffix="."/></text:list-style>
    <style:style style:name="H"><style:text-properties text:display="none"/></style:style>
    <style:style style:name="Low"><style:text-properties style:text-position="sub 58%"/></style:style>"""
    body = (
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        '<text:section text:display="none"><text:p>hidden</text:p></text:section>'
        '<text:h text:outline-level="2">Rent</text:h>'
        "<text:p>It rises<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>By 3.5 percent.</text:p></text:note-body></text:note>"
        ' a<text:s text:c="2"/>year<text:span text:style-name="H">x</text:span>.'
        "<draw:frame><draw:text-box><text:p>Ring twice</text:p></draw:text-box></draw:frame></text:p>"
        '<text:list text:style-name="L"><text:list-item><text:p>Scope</text:p></text:list-item>'
        '</text:list><text:p>x<text:span text:style-name="Low">1</text:span></text:p>'
        '<text:list text:style-name="L" text:continue-numbering="true">'
        "<text:list-item><text:p>Fees</text:p></text:list-item></text:list><table:table><table:table-row>"
        '<table:table-cell table:number-rows-spanned="2"><text:p>Blue</text:p></table:table-cell>'
        "<table:table-cell><text:p>9</text:p></table:table-cell></table:table-row><table:table-row>"
        "<table:covered-table-cell/><table:table-cell><text:p>10</text:p></table:table-cell></table:table-row>"
        "</table:table>"
    )
    document = parse_document("a.odt", opendocument("text", body, numbered))
    assert document.text == (
        "Rent\n\nIt rises[^1] a  year.\n\n[^1] By 3.5 percent.\n\nRing twice\n\n1. Scope\n\nx_1\n\n2. Fees"
        "\n\nBlue | 9\nBlue | 10"
    )
    assert document.sections == (Section(0, ("Rent",)),)
    assert document.notes == ("hidden text was left out",)


@pytest.mark.reads("LibreOffice (.odt, .ods, .odp)", "fields of forms, ticked boxes")
def test_fields_of_forms_are_read():
    fields = {"a": 'text form:current-value="Ann"', "b": 'checkbox form:label="Agreed" form:state="checked"',
              "c": 'radio form:label="Paid"', "d": 'password form:value="x"'}  # fmt: skip
    form = "".join(f'<form:{about} form:id="{key}"/>' for key, about in fields.items())
    options = '<form:option form:label="Oslo" form:selected="true"/><form:option form:label="Rome"/>'
    form += f'<form:listbox form:id="e" form:dropdown="true">{options}</form:listbox>'
    shown = "".join(f'<draw:control draw:control="{key}"/>' for key in (*fields, "e"))
    body = f"<office:forms>{form}</office:forms><text:p>Name:{shown}</text:p>"
    text = parse_document("a.odt", opendocument("text", body)).text
    assert " ".join(text.split()) == "Name: Ann ☒ Agreed ☐ Paid Oslo"


@pytest.mark.reads("LibreOffice (.odt, .ods, .odp)", "sheets and slides as those of Excel and PowerPoint")
@pytest.mark.parametrize("block", [office.BLOCK, 64])
def test_sheets_and_slides_of_libreoffice_are_read(block, monkeypatch):
    monkeypatch.setattr(office, "BLOCK", block)  # bytes that are parsed at once

    def row(*texts, more=""):
        cells = (f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in texts)
        return f"<table:table-row {more}>{''.join(cells)}</table:table-row>"

    far = '<table:table-cell table:number-columns-repeated="16384"/>'
    empty = f'<table:table-row table:number-rows-repeated="1048000">{far}</table:table-row>'
    hidden = 'table:visibility="collapse"'
    columns = f'<table:table-column table:number-columns-repeated="2"/><table:table-column {hidden}/>'
    rows = f"{row('Item', 'Price', 'Cost')}{row('x', more=hidden)}{row('Lamp', '12,50 €', '3')}"
    sheet = f'<table:table table:name="S">{columns}{rows}{empty}</table:table>'
    document = parse_document("a.ods", opendocument("spreadsheet", sheet))
    assert document.text == "S\n\nItem: Lamp\nPrice: 12,50 €"
    assert document.notes == ("1 hidden row was left out", "1 hidden column was left out")
    cells = '<table:table-cell office:value="5"/><table:table-cell office:date-value="2026-03-01"/>'
    bare = f"{row('Item', 'Day')}<table:table-row>{cells}</table:table-row>"
    bare = f'<table:table table:name="S">{bare}</table:table>'
    text = parse_document("a.ods", opendocument("spreadsheet", bare)).text
    assert text == "S\n\nItem: 5\nDay: 2026-03-01"
    box = "<draw:frame {}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    title = box.format('presentation:class="title"', "Bees")
    about = 'draw:style-name="s" draw:master-page-name="M" presentation:use-footer-name="f"'
    page = f"<draw:page {about}>{title}<draw:rect><text:p>Bees fly.</text:p></draw:rect></draw:page>"
    foot = '<presentation:footer-decl presentation:name="f">May</presentation:footer-decl>'
    master = '<style:master-page style:name="M"><text:p>Ann</text:p>{}</style:master-page>'
    master = master.format("<presentation:notes><text:p>Click here</text:p></presentation:notes>")
    style = "<style:style style:name='{}'><style:drawing-page-properties presentation:{}/></style:style>"
    styles = style.format("h", "visibility='hidden'") + style.format("s", "display-footer='true'")
    body = f"{foot}{page}<draw:page draw:style-name='h'/>{page}"
    document = parse_document("a.odp", opendocument("presentation", body, styles, margins=master))
    assert document.notes == ("1 hidden slide was left out",)
    first = "Bees\n\nBees fly.\n\nAnn\n\nMay"
    assert document.text == f"{first}\n\nBees\n\nBees fly."
    assert document.sections == (Section(0, ("Bees",), 1), Section(len(first) + 2, ("Bees",), 3))
    [failure] = parse_file("a.odt", opendocument("text", "", manifest="<encryption-data/>")).failures
    assert "is encrypted" in failure.reason


@pytest.mark.reads(
    "subtitles (.srt, .vtt)",
    "what is said, with the minute as heading",
    "lines that captions repeat as they roll, once",
)
@pytest.mark.leaves_out("subtitles (.srt, .vtt)", "(times, notes, marks)")
def test_subtitles_are_read_without_their_times():
    times = "00:00:01,000 --> 00:00:02,000", "00:01:05,000-->00:01:06,000"
    srt = f"1\n{times[0]}\n<i>Hello</i>\nthere\n\n2\n{times[1]}\n- 42 keys\n"
    document = parse_document("a.srt", f"{srt}\n3\nsoon --> late\nBye\n".encode())
    assert document.text == "Hello there\n- 42 keys"
    assert document.notes == ("1 caption without a time that can be read left out",)
    assert document.sections == (Section(0, ("0:00",)), Section(12, ("0:01",)))
    assert parse_document("a.srt", srt.replace("\n\n", "\n").encode()).text == document.text
    vtt = "WEBVTT\n\nNOTE no\n\nintro\n01:02.000 --> 01:03.000 align:start\n<v Anna>Hi <00:01:02.500>you\n"
    assert parse_document("a.vtt", vtt.encode()).text == "Anna: Hi you"
    rolling = [
        ("00:00.000", "01.000", " \nthe<00:00.500><c> key</c>"),
        ("00:01.000", "01.010", "the key\n "),
        ("00:01.010", "02.000", "the key\nis here"),
        ("00:09.000", "09.500", "is"),
        ("00:09.500", "10.000", "is here"),
    ]
    vtt = "WEBVTT\n\n" + "\n\n".join(f"{start} --> 00:{end}\n{said}" for start, end, said in rolling)
    assert parse_document("a.vtt", vtt.encode()).text == "the key\nis here\nis here"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        *(
            (f"a.{ending}", b"key text", "something else")
            for ending in ("xlsx", "pptx", "epub", "odt", "rtf", "eml")
        ),
        *((f"a.{ending}", packed({"b.txt": "x"}), "damaged") for ending in ("xlsx", "pptx", "epub", "ods")),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1", "an old or encrypted Office file"),
        ("a.docx", b"%PDF-1.4", "no .docx file but a PDF"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "is encrypted: save a copy"),
        ("a.pptx", saved(workbook(("S", [("a",)]))), "a.pptx is an Excel workbook"),
        ("a.epub", saved(workbook(("S", [("a",)]))), "a.epub is an Excel workbook"),
        ("a.srt", b"Only text", "no subtitles"),
        ("a.doc", b"\xd0\xcf\x11\xe0", ".docx"),
        ("a.xls", b"\xd0\xcf\x11\xe0", ".xlsx"),
        ("a.ppt", b"\xd0\xcf\x11\xe0", ".pptx"),
        ("a.msg", b"\xd0\xcf\x11\xe0", ".eml"),
    ],
)
def test_a_file_that_is_not_of_its_kind_says_so_in_a_line(name, content, reason):
    loaded = parse_file(name, content)
    assert not loaded.documents
    [failure] = loaded.failures
    assert reason in failure.reason
    assert "\n" not in failure.reason
