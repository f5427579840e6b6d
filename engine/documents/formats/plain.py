"""Text files: detection of binary files and of encodings, and the characters of text of any format."""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...errors import DocumentError
from ...wording import DIRECTIONS, reason_of
from ..document import Document
from .encodings import LEGACY, LETTERS, decoded, guessed

# First bytes of files that are not text, and their kind.
SIGNATURES = (
    (b"%PDF-", "a PDF"), (b"PK\x03\x04", "a ZIP archive or Office file"),
    (b"\xd0\xcf\x11\xe0", "an old or encrypted Office file"), (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"), (b"GIF87a", "a GIF image"), (b"GIF89a", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"), (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
)  # fmt: skip
# The longest first: UTF-32's little-endian mark begins with UTF-16's.
BYTE_ORDER_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
# Readers repeat some text, such as the header of a CSV file in every row. Small files may exceed the ratio up
# to a limit in characters.
MAX_TEXT, MAX_TEXT_RATIO, ANY_TEXT = 100_000_000, 4, 20_000_000

JAPANESE, JAPANESE_SHIFT = "iso2022_jp_ext", re.compile(rb"\x1b\$[@B]")  # e-mails in ASCII and escapes
CONTROLS = bytes({*range(1, 32), 127} - set(b"\b\t\n\v\f\r\x1b"))
# The first two bytes of a character of three or four, where a file was cut, or the first of German ä, ö, ü.
CUT_CHARACTER = re.compile(rb"(?:\xc3|[\xe0-\xf4][\x80-\xbf]{1,2})\Z")

# Encodings that a page may declare, of the same list: others of Python rewrite a text (unicode_escape), or
# are not used on the web (cp037).
DECLARED = frozenset(
    codecs.lookup(name).name
    for name in (
        *LEGACY, "ascii", "latin_1", "utf_8", "iso8859_3", "iso8859_4", "iso8859_6", "iso8859_8",
        "iso8859_10", "iso8859_13", "iso8859_14", "iso8859_16", "mac_cyrillic", "gbk", "gb2312",
        "big5hkscs", "euc_kr",
    )
)  # fmt: skip
# The supersets that browsers take some of them for.
IN_BROWSERS = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "shift_jis": "cp932",
               "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}  # fmt: skip

SAMPLE = 100_000  # bytes that are looked at for NUL
# Shares of the bytes at every second place, of UTF-16 in the letters of an alphabet, and its first bytes.
MOST_SAME, FEW_NULLS, HIGH_BYTES = 0.5, 0.05, (0x00, 0x03, 0x04, 0x05, 0x06, 0x09, 0x0E)

# Marks of typesetting that hide words from a search: the ligatures ff, fi, fl, ffi, ffl and st and the
# characters of formulas, which become letters, and the soft hyphen.
LIGATURES, OF_FORMULAS = range(0xFB00, 0xFB07), range(0x1D400, 0x1D800)
KANGXI = range(0x2F00, 0x2FD6)  # radicals of Chinese, written for characters with the same glyphs
RADICALS = "⺟⺠⻁⻄⻅⻆⻉⻋⻓⻔⻘⻚⻛⻜⻝⻢⻣⻤⻥⻦⻨⻩⻬⻮⻰⻳"  # others, and their characters
LOOKING_ALIKE = "母民虎西见角贝车长门青页风飞食马骨鬼鱼鸟麦黄齐齿龙龟"
BULLETS = {0xF0B7: "•", 0xF095: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✔"}  # of fonts of symbols
TYPESETTING: dict[int, str | None] = {
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in (*LIGATURES, *OF_FORMULAS, *KANGXI)},
    **{ord(code): sign for code, sign in zip(RADICALS, LOOKING_ALIKE, strict=True)},
    **BULLETS,
    0xAD: None,
    **DIRECTIONS,
}


@contextmanager
def as_document_error(what: str, way_out: str) -> Iterator[None]:
    """Raise `DocumentError`, ``what (reason): way_out``, for any error: libraries check no part of a file."""
    try:
        yield
    except (DocumentError, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(f"{what} ({reason_of(error)}): {way_out}") from error


def check_characters(name: str, n_characters: int, n_bytes: int | None) -> None:
    """Raise `DocumentError` for too much text of a file of some bytes, None for one that is packed."""
    most = MAX_TEXT if n_bytes is None else min(MAX_TEXT, max(ANY_TEXT, MAX_TEXT_RATIO * n_bytes))
    if n_characters > most:
        raise DocumentError(
            f"{name} would become over {most // 10**6} million characters of text: split it (each "
            "row of a table repeats the names of its columns: give them short ones)"
        )


def read_plain(name: str, content: bytes) -> Document:
    """Make a document from a text file, unchanged except as `unified` changes it."""
    if name.lower().endswith(".ics"):  # whose long lines go on behind a blank, also within a character
        content = re.sub(rb"\r?\n[ \t]", b"", content)
    return Document(name, decode(name, content))


def decode(name: str, content: bytes, declared: str | None = None) -> str:
    """Return the text of a file, `unified` and without its byte order mark.

    The encoding is that of the byte order mark, else UTF-8 if valid but for a few bytes, else ``declared``,
    the one named in the file, if it fits, else a guess from the letters.
    """
    kind = kind_of(content)
    if kind:
        raise DocumentError(f"{name} is {kind}, not text: give it the ending of its kind, or save it as text")
    marked = marked_encoding(content)
    if marked is None and b"\0" in content:
        if not are_stray_nulls(content):
            raise DocumentError(f"{name} is a binary file, not text: save it as UTF-8 text")
        content = content.replace(b"\0", b"")
    marked = marked or (JAPANESE if JAPANESE_SHIFT.search(content) else None)
    text = decoded(content, marked or "utf-8")
    if text is None and marked:
        text = content.decode(marked, "replace")
        if 20 * text.count("\ufffd") > len(text) + 10:
            raise DocumentError(f"{name} begins as {marked.upper()} and is not: save it as UTF-8 text")
    if text is None:
        text = nearly_utf8(content)
    if text is None and declared:
        with suppress(LookupError):  # of an encoding that there is not
            encoding = codecs.lookup(declared).name
            if encoding in DECLARED:
                encoding = IN_BROWSERS.get(encoding, encoding)
                text = content.decode(encoding, "replace")
                text = text if 50 * text.count("\ufffd") <= len(text) + 50 else None
    if text is None and has_controls(content):
        raise DocumentError(f"{name} is not text in UTF-8 or another known encoding: save it as UTF-8 text")
    if text is None:
        text = guessed(content)
    text = unified(text)
    if not text.strip():
        raise DocumentError(f"{name} is empty: there is no text to search")
    return text


def marked_encoding(content: bytes) -> str | None:
    """Return the encoding that a byte order mark names, or equal bytes next to most letters show."""
    marked = next((encoding for mark, encoding in BYTE_ORDER_MARKS if content.startswith(mark)), None)
    if marked or len(content) < 2 or b"\0" not in content[:SAMPLE]:
        return marked
    # One half has the same byte for most letters of a script.
    halves = [content[start:SAMPLE:2] for start in (0, 1)]
    same = [Counter(half).most_common(1)[0] for half in halves]
    place = 0 if same[0][1] > same[1][1] else 1
    (high, n_high), n_null = same[place], halves[1 - place].count(0)
    is_marked = high in HIGH_BYTES and n_high > MOST_SAME * len(halves[place])
    is_marked &= n_null < FEW_NULLS * len(content[:SAMPLE]) / 2
    return ("utf-16-be", "utf-16-le")[place] if is_marked else None


def kind_of(content: bytes) -> str:
    """Return the kind of a file that is not text by its first bytes, empty if unknown."""
    return next((kind for signature, kind in SIGNATURES if content.startswith(signature)), "")


def are_stray_nulls(content: bytes) -> bool:
    """Whether the NUL bytes of a file are single or in few blocks within text, as in logs cut by a crash.

    In UTF-16 they stand next to most letters, and other binary files have control characters, too.
    """
    text = content.replace(b"\0", b"")
    return 10 * len(re.findall(rb"\0+", content)) <= len(text) and not has_controls(text)


def has_controls(content: bytes) -> bool:
    """Whether over a hundredth of a file are control characters that texts do not have."""
    return 100 * (len(content) - len(content.translate(None, CONTROLS))) > len(content)


def nearly_utf8(content: bytes) -> str | None:
    """Return a text in UTF-8 with a few bytes that are not, replaced; None for other encodings.

    In these hardly any two bytes are a letter of UTF-8 by chance, and all others are not.
    """
    text = content.decode("utf-8", "replace")
    n_bad = text.count("\ufffd") - content.count(b"\xef\xbf\xbd")
    n_good = sum(n for sign, n in Counter(text).items() if sign.lower() in LETTERS or sign >= "\u0800")
    n_good -= text.count("\ufffd")
    is_cut = n_bad == 1 and CUT_CHARACTER.search(content)
    return text if n_good >= max(n_bad, 1) or is_cut else None


def unified(text: str) -> str:
    r"""Return a text with ``\n`` for line ends, letters for ligatures, no soft hyphens or marks of direction.

    Halves of surrogate pairs, which JSON's escapes and a PDF's fonts can produce, cannot be encoded as UTF-8:
    a high and a low one become one character, others the replacement character.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(TYPESETTING)
