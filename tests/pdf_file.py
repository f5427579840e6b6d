"""A PDF file as simple as one can be, for tests and benchmarks of reading them."""

from itertools import accumulate


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
