"""E-mails (.eml): who wrote when to whom, the text, and the files attached."""

import email
import email.policy
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from mimetypes import guess_extension

from ...errors import DocumentError
from ...wording import printable
from ..document import Document
from .metadata import date_of
from .outline import one_line
from .plain import as_document_error, decode, kind_of, marked_encoding, unified
from .webpage import read_html

HEADS = ("From", "To", "Cc", "Date", "Subject")
MAX_ATTACHMENTS = 500
ENCRYPTED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted")


def read_mail(name: str, content: bytes) -> Iterator[Document | tuple[str, bytes]]:
    """Yield the document of an e-mail, of its plain text if any, and name and content of its files."""
    with as_document_error(f"{name} is damaged", "save it again as .eml"):
        yield from parts_of(name, content)


def parts_of(name: str, content: bytes) -> Iterator[Document | tuple[str, bytes]]:
    """Yield what `read_mail` does; the errors are those of the library."""
    kind = kind_of(content)
    if marked_encoding(content):
        content = decode(name, content).encode()
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    if kind or not any(message[head] for head in ("From", "Date", "Subject", "Received")):
        raise DocumentError(f"{name} is no e-mail but {kind or 'something else'}: save it again as .eml")
    heads = [(head, head_of(message, head)) for head in HEADS]
    body, notes = body_of(name, message)
    texts = ["\n".join(f"{head}: {value}" for head, value in heads if value), body]
    attached = list(attachments(name, message))
    if attached:
        names = ", ".join(path.rpartition("/")[2] for path, _ in attached)
        texts.append(f"Attached: {names}"[:2000])
    if message.get_content_type() in ENCRYPTED:
        notes.append("the text is encrypted, and left out")
    try:
        day = parsedate_to_datetime(str(message["Date"])).date().isoformat() if message["Date"] else ""
    except (ValueError, TypeError):
        day = ""
    text = "\n\n".join(filter(None, texts))
    yield Document(name, text, dict(heads)["Subject"], (), date_of(day), (), tuple(notes))
    yield from attached


def head_of(message: EmailMessage, head: str) -> str:
    """Return a line of the head, empty for one that cannot be read."""
    try:
        raw = dict(message.raw_items()).get(head, "").encode("ascii", "surrogateescape")
        return one_line(unified(str(message[head] or "")) if raw.isascii() else decode(head, raw))
    except (ValueError, LookupError, AttributeError, IndexError, TypeError):  # of damaged heads
        return ""


def body_of(name: str, message: EmailMessage) -> tuple[str, list[str]]:
    """Return the text of an e-mail, the plain one of two forms, and what was left out of it.

    A plain one with less than half of the words of the other only says that the e-mail is in HTML.
    """
    found: list[tuple[str, list[str]]] = []
    for part in forms_of(message):
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes) or not content.strip():
            continue
        try:
            if part.get_content_subtype() == "html":
                page = read_html(name, content, part.get_content_charset())
                found.append((page.text, list(page.notes)))
            else:
                found.append((decode(name, content, part.get_content_charset()).strip(), []))
        except DocumentError as error:
            found.append(("", [f"the text could not be read: {error}"[:300]]))
    if not found:
        return "", []
    first, last = found[0], found[-1]
    words = Counter(last[0].split())
    return last if 2 * (Counter(first[0].split()) & words).total() < words.total() else first


def forms_of(message: EmailMessage) -> list[EmailMessage]:
    """Return the text of an e-mail, plain and in HTML; only the first where these are no alternatives."""
    found = []
    for kind in ("plain", "html"):
        with suppress(ValueError, AttributeError, TypeError, KeyError):
            found.append(message.get_body(preferencelist=(kind,)))
    forms = [part for part in found if isinstance(part, EmailMessage)]
    parts = list(message.walk())
    choices = (list(each.walk()) for each in parts if each.get_content_type() == "multipart/alternative")
    if any(all(form in choice for form in forms) for choice in choices):
        return forms
    return sorted(forms, key=parts.index)[:1]  # the others are read as files attached


def attachments(name: str, message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files attached, e-mails among them; names are made unique."""
    used: set[str] = set()
    body = {id(part) for part in forms_of(message)}
    for number, part in enumerate(leaves(message)):
        if number > MAX_ATTACHMENTS:
            raise DocumentError(f"{name} has over {MAX_ATTACHMENTS} parts: save its files by themselves")
        if id(part) in body:
            continue
        kind = part.get_content_type()
        is_mail = kind == "message/rfc822"
        ending = ".eml" if is_mail else guess_extension(kind) or ""
        stated = (
            printable(one_line(part.get_filename() or "")).replace("/", "_").replace("\\", "_").lstrip(".")
        )
        path = stated or f"part {number}{ending}"
        while path in used:
            path = f"{number} {path}"
        used.add(path)
        inner = part.get_payload()
        if is_mail:
            first = inner[0] if isinstance(inner, list) and inner else None
            content = first.as_bytes() if isinstance(first, EmailMessage) else b""
            path = path if path.endswith(".eml") else f"{path}.eml"
        else:
            decoded = part.get_payload(decode=True)
            content = decoded if isinstance(decoded, bytes) else b""
        yield f"{name}/{path[:200]}", content


def leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts that hold no others; an e-mail that is attached is one."""
    for each in part.get_payload() if part.is_multipart() else ():
        if isinstance(each, EmailMessage):
            is_whole = not each.is_multipart() or each.get_content_type() == "message/rfc822"
            yield from (each,) if is_whole else leaves(each)
