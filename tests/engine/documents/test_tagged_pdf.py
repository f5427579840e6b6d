"""Tagged PDF files: paragraphs and tables are read as the structure tree of the file has them."""

import re
from functools import reduce

import pytest

from tests.one_document import parse_document
from tests.pdf_file import grid, pdf_of


def tagged_pdf(tree, *texts, drawn=b""):
    """A page of texts (x, y, text), each marked by its number but for those of no element, and a tree.

    An element is ``(kind, attributes, *children)``, a child another one or the number of a text.
    """
    elements = []

    def add(element, parent):
        kind, attributes, *children = element
        number = 6 + len(elements)
        elements.append(b"")
        kids = [str(child) if isinstance(child, int) else f"{add(child, number)} 0 R" for child in children]
        owners.update({child: number for child in children if isinstance(child, int)})
        elements[number - 6] = (
            f"<</Type/StructElem/S/{kind}/P {parent} 0 R/Pg 3 0 R/K[{' '.join(kids)}]"
            f"/A<</O/Table{attributes}>>>>"
        ).encode()
        return number

    owners: dict[int, int] = {}
    root = add(tree, 5)
    content = drawn + b"".join(
        (b"/P<</MCID %d>>BDC\n" % n if n in owners else b"/Artifact BMC\n")
        + b"BT /F1 11 Tf %d %d Td (%s) Tj ET\nEMC\n" % (x, y, text.encode("latin-1"))
        for n, (x, y, text) in enumerate(texts)
    )
    parents = " ".join(f"{owners[n]} 0 R" if n in owners else "null" for n in range(len(texts)))
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R/MarkInfo<</Marked true>>/StructTreeRoot 5 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/StructParents 0/Resources"
            b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
            f"<</Type/StructTreeRoot/K {root} 0 R/ParentTree<</Nums[0[{parents}]]>>>>".encode(),
            *elements,
        ]
    )


def read(tree, *texts, drawn=b""):
    return parse_document("a.pdf", tagged_pdf(tree, *texts, drawn=drawn)).text


def row(*cells):
    return "TR", "", *(cell if isinstance(cell, tuple) else ("TD", "", cell) for cell in cells)


@pytest.mark.reads("PDF", "the paragraphs, cells and footnotes of tagged files as their tags say")
def test_cells_of_several_lines_and_merged_cells_are_those_of_the_tags():
    table = "Table", "", row(0, ("TD", "/ColSpan 2", 1)), row(("TD", "/RowSpan 2", 2, 3), 4, 5), row(6, 7)
    places = (50, 700, "Course"), (200, 700, "Days"), (50, 680, "First aid"), (50, 660, "in the field")
    places += (200, 680, "Monday"), (300, 680, "9 to 12"), (200, 660, "Tuesday"), (300, 660, "1 to 3")
    assert read(("Document", "", table), *places).split("\n") == [
        "Course | Days | Days",
        "First aid in the field | Monday | 9 to 12",
        "First aid in the field | Tuesday | 1 to 3",
    ]


def test_a_row_with_fewer_cells_than_others_has_them_in_the_columns_above():
    table = "Table", "", row(0, 1, 2), row(3, 4)  # as browsers write rows with an empty cell
    places = (50, 700, "Test"), (200, 700, "Flag"), (300, 700, "Unit"), (50, 680, "ALT"), (300, 680, "U/L")
    assert read(("Document", "", table), *places) == "Test | Flag | Unit\nALT |  | U/L"


def test_a_footnote_is_read_behind_the_paragraph_that_goes_on_around_it():
    tree = ("Document", "", ("P", "", 0, ("Note", "", 1), 2), ("P", "", 3))
    places = (
        (50, 700, "The mill is old"),
        (50, 90, "1 Of 1688."),
        (50, 686, "and still runs."),
        (50, 660, "Come."),
    )
    assert read(tree, *places) == "The mill is old\nand still runs.\n\nCome.\n\n1 Of 1688."


def test_paragraphs_side_by_side_are_read_in_the_order_of_the_tags():
    tree = ("Document", "", *(("P", "", 2 * n, 2 * n + 1) for n in (1, 0)))
    places = [(x, y, f"{side} {y}") for x, side in ((50, "Left"), (300, "Right")) for y in (700, 686)]
    assert read(tree, *places) == "Right 700\nRight 686\n\nLeft 700\nLeft 686"


def test_what_has_no_tags_is_read_at_its_place():
    tree = ("Document", "", ("P", "", 1), ("P", "", 2))
    places = (50, 780, "Head"), (50, 700, "One."), (50, 660, "Two."), (50, 40, "Foot")
    assert read(tree, *places) == "Head\n\nOne.\nTwo.\n\nFoot"


def test_a_page_of_which_few_lines_have_tags_is_read_by_its_layout():
    places = [(50, 700 - 14 * n, f"Line {n}") for n in range(6)]
    assert read(("Document", "", ("P", "", 5, 0)), *places) == "\n".join(text for _, _, text in places)


def test_elements_that_are_children_of_one_many_times_are_looked_at_once():
    tree = reduce(lambda inner, _: ("Div", "", inner), range(20), ("P", "", 0))
    many = re.sub(rb"/K\[(\d+ 0 R)]", rb"/K[\1 \1 \1 \1]", tagged_pdf(tree, (50, 700, "Once.")))
    assert parse_document("a.pdf", many).text == "Once."


def test_lines_of_cells_that_are_tagged_as_rows_are_those_of_the_drawn_table():
    rows = [("", "Castle"), ("May", "Hotel"), ("June", "Inn")]
    at = [(62, 700), (162, 700), (62, 684), (162, 684), (62, 664), (162, 664)]
    texts = [(x, y, text) for (x, y), text in zip(at, (cell for row in rows for cell in row), strict=True)][
        1:
    ]
    tree = ("Table", "", row(0), row(1, 2), row(3, 4))
    lines = [(60, y, 260, y) for y in (714, 678, 658)] + [(x, 658, x, 714) for x in (60, 160, 260)]
    assert read(tree, *texts, drawn=grid(*lines)).split("\n") == ["May | Castle Hotel", "June | Inn"]


def test_a_tagged_table_is_read_of_which_no_row_has_a_cell_for_every_column():
    head = ("TR", "", ("TH", "/ColSpan 3", 0))
    texts = [
        (60, 700, "Fees of the year"),
        (60, 686, "Rent"),
        (160, 686, "900"),
        (60, 672, "Heat"),
        (160, 672, "90"),
    ]
    assert read(("Table", "", head, row(1, 2), row(3, 4)), *texts).split("\n")[1:] == [
        "Rent | 900",
        "Heat | 90",
    ]


def test_numbers_beside_the_lines_above_them_are_read_in_these():
    texts = (60, 700, "Cover"), (60, 670, "Theft"), (540, 700, "4"), (540, 670, "8")
    assert read(("Document", "", *(("P", "", n) for n in range(4))), *texts) == "Cover | 4\nTheft | 8"
