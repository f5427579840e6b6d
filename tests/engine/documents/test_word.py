"""Word files: all that a reader sees is in the text, in reading order."""

import io
import zipfile
from copy import deepcopy

import docx
import pytest
from docx.oxml import parse_xml

from engine.documents.formats import office
from engine.documents.formats.equations import linear_text
from engine.documents.formats.word_numbers import formatted
from tests.one_document import parse_document

NAMES = " ".join(
    f'xmlns:{prefix}="http://schemas.{rest}"'
    for prefix, rest in {
        "w": "openxmlformats.org/wordprocessingml/2006/main",
        "m": "openxmlformats.org/officeDocument/2006/math",
        "mc": "openxmlformats.org/markup-compatibility/2006",
        "wps": "microsoft.com/office/word/2010/wordprocessingShape",
        "v": "x",
    }.items()
)
NOTE_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.{}+xml"
NOTE_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def run(text, about=""):
    return f'<w:r><w:rPr>{about}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner, about=""):
    return f"<w:p><w:pPr>{about}</w:pPr>{inner}</w:p>"


def word_file(*body, styles="", lists="", notes=None):
    """A Word file of these elements, with more styles, its own lists, and footnotes or endnotes."""
    document, file = docx.Document(), io.BytesIO()
    for xml in body:
        document.element.body.insert(-1, parse_xml(xml.replace(">", f" {NAMES}>", 1)))
    if styles:
        document.styles.element.append(parse_xml(styles.replace(">", f" {NAMES}>", 1)))
    document.save(file)
    if not lists and not notes:
        return file.getvalue()
    copy = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(copy, "w") as target:
        for info in source.infolist():
            content = source.read(info).decode("utf-8", "surrogateescape")
            for kind in notes or ():
                part = (
                    f'<Override PartName="/word/{kind}.xml" ContentType="{NOTE_TYPE.format(kind)}"/></Types>'
                )
                link = f'<Relationship Id="n{kind}" Type="{NOTE_RELATION}{kind}" Target="{kind}.xml"/>'
                if info.filename == "[Content_Types].xml":
                    content = content.replace("</Types>", part)
                if info.filename == "word/_rels/document.xml.rels":
                    content = content.replace("</Relationships>", f"{link}</Relationships>")
            if info.filename == "word/numbering.xml" and lists:
                content = f"<w:numbering {NAMES}>{lists}</w:numbering>"
            target.writestr(info.filename, content.encode("utf-8", "surrogateescape"))
        for kind, texts in (notes or {}).items():
            one = kind[:-1]
            inner = "".join(
                f'<w:{one} w:id="{number}">{paragraph(run(text))}</w:{one}>' for number, text in texts.items()
            )
            separator = f'<w:{one} w:type="separator" w:id="0">{paragraph(run("-----"))}</w:{one}>'
            target.writestr(f"word/{kind}.xml", f"<w:{kind} {NAMES}>{separator}{inner}</w:{kind}>")
    return copy.getvalue()


def text_of(*body, **parts):
    return parse_document("a.docx", word_file(*body, **parts)).text


def box(*texts):
    inner = f"<w:txbxContent>{''.join(paragraph(run(text)) for text in texts)}</w:txbxContent>"
    return (
        f"<w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx>{inner}</wps:txbx></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{inner}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "text boxes apart")
def test_a_text_box_stands_apart_and_once():
    notice = paragraph(run("The library opens at nine.") + box("Closed on Mondays", "Phone 555 0142"))
    assert text_of(notice) == "The library opens at nine.\n\nClosed on Mondays\n\nPhone 555 0142"
    document = parse_document(
        "a.docx", word_file(paragraph(run("Safety") + box("Wear a helmet"), '<w:pStyle w:val="Heading1"/>'))
    )
    assert (document.text, document.sections[0].headings) == ("Safety\n\nWear a helmet", ("Safety",))
    inner = f"<w:txbxContent>{paragraph(run('Ring twice'))}</w:txbxContent>"
    old = f"<w:r><w:pict><v:textbox>{inner}</v:textbox></w:pict></w:r>"
    assert text_of(paragraph(run("Use the gate") + old)) == "Use the gate\n\nRing twice"


def level(number, form, text, more=""):
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
        f"{more}</w:lvl>"
    )


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "what is struck out as `~~50~~`")
def test_what_is_struck_out_is_marked_and_a_table_in_a_cell_has_no_columns_of_the_outer_one():
    price = paragraph(run("Price ") + run("50", "<w:strike/>") + run(" 40"))
    inner = "".join(f"<w:tc>{paragraph(run(text))}</w:tc>" for text in "xy")
    table = (
        f"<w:tbl><w:tr><w:tc>{paragraph(run('a'))}<w:tbl><w:tr>{inner}</w:tr></w:tbl>{paragraph('')}</w:tc>"
    )
    table += f"<w:tc>{paragraph(run('b'))}</w:tc></w:tr></w:tbl>"
    assert text_of(price, table) == "Price ~~50~~ 40\n\na x, y | b"


CLAUSES = (
    '<w:abstractNum w:abstractNumId="1">'
    f"{level(0, 'decimal', '%1.')}{level(1, 'decimal', '%1.%2')}{level(2, 'lowerLetter', '(%3)')}"
    '</w:abstractNum><w:abstractNum w:abstractNumId="2">'
    f"{level(0, 'upperRoman', 'Article %1')}{level(1, 'bullet', chr(0xF0B7))}</w:abstractNum>"
    '<w:num w:numId="5"><w:abstractNumId w:val="1"/></w:num>'
    '<w:num w:numId="6"><w:abstractNumId w:val="2"/></w:num>'
    '<w:num w:numId="7"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="4"/>'
    "</w:lvlOverride></w:num>"
)


def listed(text, number, depth=0):
    return paragraph(run(text), f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([("Scope", 5), ("Fees", 5), ("Termination", 5)], "1. Scope\n\n2. Fees\n\n3. Termination"),
        (
            [("Scope", 5), ("Place", 5, 1), ("Time", 5, 1), ("Noon", 5, 2), ("Fees", 5), ("Due", 5, 1)],
            "1. Scope\n\n1.1 Place\n\n1.2 Time\n\n(a) Noon\n\n2. Fees\n\n2.1 Due",
        ),
        ([("Name", 6), ("tea", 6, 1), ("Seat", 6)], "Article I Name\n\n• tea\n\nArticle II Seat"),
        ([("Scope", 5), ("Fees", 7), ("End", 7)], "1. Scope\n\n4. Fees\n\n5. End"),
        ([("Scope", 5), ("no number", 0), ("Fees", 5)], "1. Scope\n\nno number\n\n2. Fees"),
    ],
)
@pytest.mark.reads("Word (.docx, .docm, .dotx)", "numbers of lists and clauses")
def test_lists_and_clauses_have_the_numbers_that_word_counts(items, text):
    assert text_of(*(listed(*item) for item in items), lists=CLAUSES) == text


def test_empty_cells_of_a_list_have_numbers():
    rows = "".join(f"<w:tr><w:tc>{listed('', 5)}</w:tc><w:tc>{paragraph(run(x))}</w:tc></w:tr>" for x in "ab")
    assert text_of(f"<w:tbl>{rows}</w:tbl>", lists=CLAUSES) == "1. | a\n2. | b"


def test_a_style_numbers_its_paragraphs_and_headings():
    style = (
        '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/><w:basedOn w:val="Heading2"/>'
        '<w:pPr><w:numPr><w:numId w:val="5"/></w:numPr></w:pPr></w:style>'
    )
    clauses = [paragraph(run(text), '<w:pStyle w:val="Clause"/>') for text in ("Rent", "Repairs")]
    document = parse_document("a.docx", word_file(*clauses, styles=style, lists=CLAUSES))
    assert document.text == "1. Rent\n\n2. Repairs"
    assert [section.headings for section in document.sections] == [("1. Rent",), ("2. Repairs",)]


@pytest.mark.parametrize(
    ("number", "form", "written"),
    [
        (4, "lowerRoman", "iv"),
        (1994, "upperRoman", "MCMXCIV"),
        (28, "lowerLetter", "bb"),
        (3, "decimalZero", "03"),
        (22, "ordinal", "22nd"),
        (12, "ordinal", "12th"),
        (5, "ideographDigital", "5"),
        (0, "lowerRoman", "0"),
        (5, "none", ""),
    ],
)
def test_numbers_are_written_in_the_form_of_their_list(number, form, written):
    assert formatted(number, form) == written


def maths(inner):
    return f"<m:oMath>{inner}</m:oMath>"


def sign(text):
    return f"<m:r><m:t>{text}</m:t></m:r>"


SQUARE = f"<m:sSup><m:e>{sign('r')}</m:e><m:sup>{sign('2')}</m:sup></m:sSup>"


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (sign("A=π") + SQUARE, "A=πr^2"),
        (f"<m:f><m:num>{sign('a+b')}</m:num><m:den>{sign('2')}</m:den></m:f>", "(a+b)/2"),
        (f"<m:rad><m:deg/><m:e>{sign('x+1')}</m:e></m:rad>", "√(x+1)"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{sign("i=1")}</m:sub><m:sup>{sign("n")}'
            f"</m:sup><m:e>{sign('i')}</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        (f"<m:func><m:fName>{sign('sin')}</m:fName><m:e>{sign('x')}</m:e></m:func>", "sin(x)"),
        (f"<m:d><m:e>{sign('x−1')}</m:e></m:d>", "(x−1)"),
        (
            f"<m:m><m:mr><m:e>{sign('1')}</m:e><m:e>{sign('0')}</m:e></m:mr><m:mr><m:e>{sign('0')}</m:e>"
            f"<m:e>{sign('1')}</m:e></m:mr></m:m>",
            "1, 0; 0, 1",
        ),
    ],
)
@pytest.mark.reads("Word (.docx, .docm, .dotx)", "equations as `(a+b)/2`")
def test_equations_are_text_on_a_line(inner, text):
    assert linear_text(parse_xml(maths(inner).replace(">", f" {NAMES}>", 1))) == text
    assert text_of(paragraph(maths(inner))) == text  # a paragraph that is one equation
    sentence = paragraph(run("The value ") + maths(inner) + run(" holds."))
    assert text_of(sentence) == f"The value {text} holds."


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "powers as `10^6`, indexes as `x_1` or `H2O`")
def test_powers_and_ordinals_differ():
    def raised(text):
        return run(text, '<w:vertAlign w:val="superscript"/>')

    text = text_of(paragraph(run("3 × 10") + raised("6") + run(" cells on 2 m") + raised("-2")))
    assert text == "3 × 10^6 cells on 2 m^-2"
    low = run("2", '<w:vertAlign w:val="subscript"/>')
    assert text_of(paragraph(run("the 1") + raised("st") + run(" H") + low + run("O"))) == "the 1st H2O"
    assert text_of(paragraph(run("5 dm") + run("3", '<w:position w:val="8"/>'))) == "5 dm^3"
    assert text_of(paragraph(run("x") + low + run(" is so.") + raised("4"))) == "x_2 is so.[4]"
    style = '<w:style w:styleId="Up"><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>'
    styled = word_file(paragraph(run("5 m") + run("2", '<w:rStyle w:val="Up"/>')), styles=style)
    assert parse_document("a.docx", styled).text == "5 m^2"


@pytest.mark.reads(
    "Word (.docx, .docm, .dotx)", "footnotes below their paragraph, endnotes at the end, marked `[^1]`"
)
def test_footnotes_stand_below_their_paragraph_and_endnotes_at_the_end():
    notes = {"footnotes": {2: "By 3.5 percent."}, "endnotes": {1: "Since May."}}
    text = text_of(
        paragraph(run("Rent rises") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + run(".")),
        paragraph(run("It began") + '<w:r><w:endnoteReference w:id="1"/></w:r>' + run(".")),
        paragraph(run("End.")),
        notes=notes,
    )
    assert text == "Rent rises[^1].\n\n[^1] By 3.5 percent.\n\nIt began[^e1].\n\nEnd.\n\n[^e1] Since May."


def test_a_footnote_of_a_table_stands_below_the_table():
    cells = "".join(f"<w:tc>{paragraph(each)}</w:tc>" for each in (
        run("Rent") + '<w:r><w:footnoteReference w:id="2"/></w:r>', run("950"),
    ))  # fmt: skip
    text = text_of(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>", notes={"footnotes": {2: "A month."}})
    assert text == "Rent[^1] | 950\n\n[^1] A month."


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "ticked boxes")
@pytest.mark.leaves_out("Word (.docx, .docm, .dotx)", "hidden text")
def test_hidden_text_is_left_out_and_boxes_are_ticked():
    style = '<w:style w:type="character" w:styleId="Draft"><w:rPr><w:vanish/></w:rPr></w:style>'
    hidden = run("DRAFT", "<w:vanish/>") + run("DRAFT", '<w:rStyle w:val="Draft"/>')
    shown = run("shown", '<w:vanish w:val="0"/>')
    boxes = (
        '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'
        + run(" yes ")
        + run("\uf0a8", '<w:rFonts w:ascii="Wingdings"/>')
        + run(" no ")
        + "<w:r><w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>"
        + '<w:r><w:sym w:font="Symbol" w:char="F0B3"/></w:r>'
    )
    document = parse_document("a.docx", word_file(paragraph(hidden + shown), paragraph(boxes), styles=style))
    assert document.text == "shown\n\n☑ yes ☐ no ☒≥"
    assert document.notes == ("hidden text was left out",)
    style = '<w:style w:type="paragraph" w:styleId="Normal"><w:rPr><w:vanish/></w:rPr></w:style>'
    assert text_of(paragraph(run("DRAFT") + shown), styles=style) == "shown"


@pytest.mark.leaves_out(
    "Word (.docx, .docm, .dotx)", "pictures, charts, diagrams, old equations, unknown symbols, comments"
)
def test_pictures_charts_and_symbols_are_counted_in_notes():
    picture = "<w:r><w:drawing><a:graphic xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'>"
    data = "<a:graphicData uri='http://schemas.openxmlformats.org/drawingml/2006/{}'/>"
    inner = "".join(
        picture + data.format(kind) + "</a:graphic></w:drawing></w:r>"
        for kind in ("picture", "chart", "diagram")
    )
    unknown = '<w:r><w:sym w:font="Webdings" w:char="F061"/></w:r>'
    old = '<w:r><w:object><o:OLEObject xmlns:o="urn:o" ProgID="Equation.3"/></w:object></w:r>'
    old += "<w:r><w:instrText> EQ \\f(3,4) </w:instrText></w:r>"
    body = paragraph(run("text") + inner + inner + unknown + old)
    document = parse_document(
        "a.docx", word_file(body, "<w:altChunk></w:altChunk>", notes={"comments": {2: "Check"}})
    )
    assert [note.removesuffix(" left out") for note in document.notes] == [
        "2 pictures were", "2 charts were", "2 diagrams were", "2 equations were", "1 symbol was",
        "2 comments were",  # with that which `word_file` writes before them
        "1 embedded document was",
    ]  # fmt: skip


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "tracked changes as accepted")
@pytest.mark.parametrize("block", [office.BLOCK, 64])
def test_tracked_changes_are_read_as_accepted(block, monkeypatch):
    monkeypatch.setattr(office, "BLOCK", block)  # bytes that are parsed at once
    gone = "<w:del><w:r><w:delText>not </w:delText></w:r></w:del>"
    added = f"<w:ins>{run('gladly ')}</w:ins>"
    joined = paragraph(run("We agree ") + gone + added, "<w:rPr><w:del/></w:rPr>")
    row = "<w:tr>{}<w:tc>" + paragraph(run("{}")) + "</w:tc></w:tr>"
    table = f"<w:tbl>{row.format('', 'kept')}{row.format('<w:trPr><w:del/></w:trPr>', 'gone')}</w:tbl>"
    assert text_of(joined, paragraph(run("to this.")), table) == "We agree gladly to this.\n\nkept"


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "headings by outline level")
def test_headings_are_those_with_an_outline_level():
    style = (
        '<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/>'
        '<w:basedOn w:val="Heading1"/></w:style>'
    )
    document = parse_document(
        "a.docx",
        word_file(
            paragraph(run("Handbook"), '<w:pStyle w:val="Title"/>'),
            paragraph(run("Fire"), '<w:pStyle w:val="Kapitel"/>'),
            paragraph(run("Stairs"), '<w:outlineLvl w:val="1"/>'),
            paragraph(run("no heading"), '<w:pStyle w:val="Kapitel"/><w:outlineLvl w:val="9"/>'),
            styles=style,
        ),
    )
    assert document.title == "Handbook"
    assert [section.headings for section in document.sections] == [("Fire",), ("Fire", "Stairs")]


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "merged cells in all their places")
def test_merged_cells_stand_in_all_their_places():
    document, file = docx.Document(), io.BytesIO()
    table = document.add_table(4, 3)
    rows = (
        ("Rooms of the house", "", ""),
        ("Room", "Mon", "Tue"),
        ("Blue", "9-12", "13-17"),
        ("", "14-16", "-"),
    )
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    table.cell(0, 0).merge(table.cell(0, 2))
    table.cell(2, 0).merge(table.cell(3, 0))
    document.save(file)
    rows = ("Rooms of the house", "Room | Mon | Tue", "Blue | 9-12 | 13-17", "Blue | 14-16 | -")
    assert parse_document("a.docx", file.getvalue()).text == "\n".join(rows)


@pytest.mark.reads("Word (.docx, .docm, .dotx)", "heads and feet once")
@pytest.mark.leaves_out("Word (.docx, .docm, .dotx)", "(page numbers, which Word does not store)")
def test_heads_and_feet_of_pages_are_read_once_without_page_numbers():
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("The rent is due.")
    document.sections[0].header.paragraphs[0].text = "Contract no. 4711"
    document.sections[0].footer.paragraphs[0].text = "Page 1 of 3"
    document.sections[0].first_page_header.paragraphs[0].text = "Draft"  # of the next section, too
    document.add_section().header.paragraphs[0].text = "Contract no. 4711"
    document.sections[1].different_first_page_header_footer = True
    document.save(file)
    assert parse_document("a.docx", file.getvalue()).text == "Contract no. 4711\n\nDraft\n\nThe rent is due."


def test_a_file_with_two_bodies_is_read_whole():
    file, content = docx.Document(), io.BytesIO()
    file.add_paragraph("Ann")
    file.element.append(deepcopy(file.element.body))
    file.save(content)
    assert parse_document("a.docx", content.getvalue()).text == "Ann\n\nAnn"


def test_files_with_macros_and_of_the_strict_standard_are_read():
    content = word_file(paragraph(run("text")))
    for old, new in (
        (b"wordprocessingml.document.main+xml", b""),
        (
            b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        ),
    ):
        copy = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(copy, "w") as target:
            for info in source.infolist():
                body = source.read(info)
                if not new:
                    macro = b"application/vnd.ms-word.document.macroEnabled.main+xml"
                    body = body.replace(b"application/vnd.openxmlformats-officedocument." + old, macro)
                target.writestr(info.filename, body.replace(old, new) if new else body)
        assert parse_document("a.docx", copy.getvalue()).text == "text"
