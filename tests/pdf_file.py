"""A PDF file as simple as one can be, for tests and benchmarks of reading them."""

import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate

PICTURE = b"q 600 0 0 800 0 0 cm /Im Do Q"
GREY = zlib.compress(b"\x80" * 64)


def make_pdf(*pages: str) -> bytes:
    """A PDF that shows each page's lines; an empty page has no text operators."""
    kids = " ".join(f"{2 * i + 4} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, page in enumerate(pages):
        shown = "".join(f"({line}) Tj T* " for line in page.split("\n")) if page else ""
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown}ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {2 * i + 5} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    return pdf_of([body.encode() for body in objects])


def pdf_of(objects: list[bytes]) -> bytes:
    """A PDF of numbered objects, the first of which is its catalogue."""
    parts = [b"%d 0 obj\n%s\nendobj\n" % (number, body) for number, body in enumerate(objects, 1)]
    *places, end = accumulate(map(len, parts), initial=9)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    n = len(objects) + 1
    head = b"%%PDF-1.4\n%sxref\n0 %d\n0000000000 65535 f \n%s" % (b"".join(parts), n, table)
    return head + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (n, end)


def shown(*places: tuple[float, float, str], size: int = 11) -> bytes:
    """The operators that write texts at their places (x, y)."""
    return b"".join(
        b"BT /F1 %d Tf %d %d Td (%s) Tj ET\n" % (size, x, y, text.encode("latin-1")) for x, y, text in places
    )


def placed(
    rows: Iterable[Sequence[str]], at: Sequence[float], top: float = 700, step: float = 14
) -> list[tuple[float, float, str]]:
    """Places of the cells of rows that are not empty."""
    cells = ((x, top - step * n, cell) for n, row in enumerate(rows) for x, cell in zip(at, row, strict=True))
    return [place for place in cells if place[2]]


def drawn_pdf(
    *pages: bytes,
    annotations: Sequence[bytes] = (),
    fields: bool = False,
    font: bytes = b"/Subtype/Type1/BaseFont/Helvetica",
) -> bytes:
    """A PDF of pages with these operators; the annotations are those of the first page."""
    n = len(pages)
    first = 5 + 2 * n  # the number of the first annotation
    ids = b" ".join(b"%d 0 R" % (first + number) for number in range(len(annotations)))
    kids = b" ".join(b"%d 0 R" % (5 + 2 * number) for number in range(n))
    form = b"/AcroForm<</Fields[%s]/DR<</Font<</F1 3 0 R>>>>/DA(/F1 9 Tf)>>" % ids if fields else b""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % form,
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, n),
        b"<</Type/Font%s>>" % font,
        b"<</Type/XObject/Subtype/Image/Width 8/Height 8/ColorSpace/DeviceGray/BitsPerComponent 8"
        b"/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(GREY), GREY),
    ]
    for number, content in enumerate(pages):
        notes = b"/Annots[%s]" % ids if ids and not number else b""
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R%s/Resources<</Font<</F1 3 0 R>>"
            b"/XObject<</Im 4 0 R>>>>>>" % (6 + 2 * number, notes),
            b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        ]
    return pdf_of([*objects, *annotations])


def grid(*lines: tuple[float, float, float, float]) -> bytes:
    """The operators that draw straight lines, each from one point to another."""
    return b"".join(b"%d %d m %d %d l S\n" % line for line in lines)
