"""Rows of CSV and TSV files, whatever parts their cells and stands above the header."""

import pytest

from engine.documents.loaders import parse_file
from tests.one_document import rows_of

TWO = ["Item: Lamp / Price: 12,50", "Item: Desk / Price: 149,00"]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        # Excel's line of the separator
        ("sep=;\nItem;Price\nLamp;12,50\nDesk;149,00\n", TWO),
        ('"sep=,"\nItem,Price\nLamp,"12,50"\nDesk,"149,00"\n', TWO),
        ("SEP=\t\nItem\tPrice\nLamp\t12,50\nDesk\t149,00\n", TWO),
        ("sep=^\nItem^Price\nLamp^12,50\nDesk^149,00\n", TWO),
        # no header
        (
            "Ann,Rome,34\nBo,Oslo,45\n",
            [
                f"column 1: {a} / column 2: {b} / column 3: {c}"
                for a, b, c in (("Ann", "Rome", 34), ("Bo", "Oslo", 45))
            ],
        ),
        ("Name,38,40\nBo,5,45\n", ["Name: Bo / 38: 5 / 40: 45"]),
        # lines above the header
        ("From May, 2\n\nItem;Price\nLamp;12,50\nDesk;149,00\n", ["From May, 2", *TWO]),
        ("# May\nItem;Price\nLamp;12,50\nDesk;149,00\n", ["# May", *TWO]),
        ("By,Ann\nOn,1 May\n\nA,B,C\n1,2,3\n", ["By, Ann", "On, 1 May", "A: 1 / B: 2 / C: 3"]),
        ('"By";"Ann"\n"On";"1 May"\n""\nA;B;C\n1;2;3\n', ["By Ann", "On 1 May", "A: 1 / B: 2 / C: 3"]),
        ("A list;;\nA;B;C\n1;2;3\n", ["A list", "A: 1 / B: 2 / C: 3"]),
        # names of columns in several rows, and tables below one another
        ("A,2023,,2024\n,Q1,Q2,Q1\nx,1,2,3\n", ["A: x / 2023, Q1: 1 / 2023, Q2: 2 / 2024, Q1: 3"]),
        ("A;B;B\n;net;gross\nx;1;2\n", ["A: x / B, net: 1 / B, gross: 2"]),
        (
            ",T,,U\nA,n,m,n\n,kg,,t\nNorth,,,\nx,1,2,3\n",
            ["A: North", "A: x / T, n, kg: 1 / T, m: 2 / U, n, t: 3"],
        ),
        ("0,1,2\nA,B,C\nx,1,2\n", ["A: x / B: 1 / C: 2"]),
        ("A,B\nx,y\nz,1\n", ["A: x / B: y", "A: z / B: 1"]),
        ("A,B\nx,1\n\nC,D\ny,2\n", ["A: x / B: 1", "C: y / D: 2"]),
        ("A,B\nx,1\n\nStaff\nC,D,E\ny,2,z\n", ["A: x / B: 1", "Staff", "C: y / D: 2 / E: z"]),
        ("A,B\nx,1\n\ny,2\n\nsum,3\n", ["A: x / B: 1", "A: y / B: 2", "A: sum / B: 3"]),
        # delimiters at the ends of rows, cells beyond the header, rows cut short
        ("Item;Price\nLamp;12,50;\nDesk;149,00;\n", TWO),
        ("Item|Price|\nLamp|12,50|\nDesk|149,00|\n", TWO),
        ("A,B\n1,2,x\n3,4,y\n", ["A: 1 / B: 2 / column 3: x", "A: 3 / B: 4 / column 3: y"]),
        ("A,B,C\n1\n1,2\n1,2,3\n", ["A: 1", "A: 1 / B: 2", "A: 1 / B: 2 / C: 3"]),
        # commas in headers, in numbers and in texts
        ("Item;Price, EUR\nLamp;12,50\n", ["Item: Lamp / Price, EUR: 12,50"]),
        ("N (a, b);M (c, d);P (e, f)\nA1;Lamp;12,50\n", ["N (a, b): A1 / M (c, d): Lamp / P (e, f): 12,50"]),
        ('"Cost per 1,000";Unit\n12,50;kg\n', ["Cost per 1,000: 12,50 / Unit: kg"]),
        ("Q;A\nWhere, when?;Here, now\nWho;I\n", ["Q: Where, when? / A: Here, now", "Q: Who / A: I"]),
        ("id,tags\n1,a;b\n2,c;d\n", ["id: 1 / tags: a;b", "id: 2 / tags: c;d"]),
        (
            "text\nHello, world\nBye\nYes, sure, ok\n",
            ["text: Hello, world", "text: Bye", "text: Yes, sure, ok"],
        ),
        (
            "a,1.5.26\nb,2.5.26\nc,3.5.26\n",
            [f"column 1: {a} / column 2: {n}.5.26" for n, a in ((1, "a"), (2, "b"), (3, "c"))],
        ),
        ("1,Lamp\n2,Desk\n", ["column 1: 1 / column 2: Lamp", "column 1: 2 / column 2: Desk"]),
        ("Item,Price\nLamp,12,50\nDesk,149,00\n", TWO),
        # line breaks and blanks around quoted cells
        ('A;B\n1;"x\ny; z"\n', ["A: 1 / B: x / y; z"]),
        ('A, B\n1, "x, y"\n', ["A: 1 / B: x, y"]),
        ("A\tB\nx, y; z\tq\n", ["A: x, y; z / B: q"]),
        ('A\tB\n"x" y\t"z\n', ['A: "x" y / B: "z']),
        ("A,B\n'x, y',1\n'z, a',2\n", ["A: x, y / B: 1", "A: z, a / B: 2"]),
        (
            "Ann,row 4\nBo,row 5\nCy,row 6\n",
            [f"column 1: {a} / column 2: row {n}" for a, n in (("Ann", 4), ("Bo", 5), ("Cy", 6))],
        ),
        ('A,B\n1,"say \\"x\\", y"\n', ['A: 1 / B: say "x", y']),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.reads(
    "CSV, TSV",
    "one document",
    "every row as `column: value`; the rows tell the delimiter, `sep=;`",
    "names of columns in several rows",
    "several tables, parted by a blank line",
    "tables without a header",
)
@pytest.mark.leaves_out("CSV, TSV", "(empty cells)")
def test_the_rows_tell_what_parts_the_cells(name, content, rows):
    for ends in ("\n", "\r\n"):
        loaded = parse_file(name, content.replace("\n", ends).encode())
        [document] = loaded.documents
        assert [text.replace("\n", " / ") for _, text in rows_of(document)] == rows
        assert loaded.failures == ()


@pytest.mark.reads("CSV, TSV", "lines above the header, also its title", "columns beyond it, as `column 4`")
def test_what_stands_above_or_beyond_the_header_is_told():
    [document] = parse_file("a.csv", b"Price list, May\nA,B,C\n1,2,3,x\n4,5,6,y\n").documents
    assert document.title == "Price list, May"
    above, beyond = document.notes
    assert "1 line above the header" in above
    assert "1 column without a name" in beyond
    [document] = parse_file("a.csv", b"Item,Size,Price\nLamp,,5\nDesk,,9\n").documents
    assert document.notes == ("1 column without values: Size",)
