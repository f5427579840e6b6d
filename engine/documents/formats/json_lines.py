"""JSON Lines, whose lines are rows of a document, or documents, and JSON: texts and conversations."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

from ...errors import DocumentError
from ...wording import printable, reason_of, some_of
from ..document import Document, Failure, Section
from .metadata import date_of, tags_of
from .outline import one_line
from .plain import decode, unified
from .sheets import MAX_ROWS, joined_rows

# Possible keys of the text; the first of these in a record is used.
TEXT_KEYS = ("text", "content", "contents", "body", "passage", "document", "page_content")
# Keys of conversations, of the speaker and the text of a message, and of texts that belong together.
CHAT_KEYS = ("messages", "conversations", "conversation", "turns", "dialog", "dialogue", "chat", "mapping")
SPEAKER_KEYS = ("role", "from", "author", "speaker", "sender", "user", "username", "name")
MESSAGE_KEYS = ("content", "value", "text", "message", "body", "utterance", "blocks")
ATTACHED_KEYS = ("attachments", "embeds", "files")  # of a message, as Slack and Discord export them
PART_KEYS = ("title", "system", "instruction", "context", "question", "query", "prompt", "input", "answer",
             "answers", "response", "completion", "output", "summary", "description")  # fmt: skip
MOST_NAMED = 8  # fields, in notes
ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")


def read_jsonl(name: str, content: bytes) -> Iterator[Document | Failure]:
    """Yield a document with a row for each line, "row 1" the first, and failures of lines.

    If a line states a ``date`` or ``tags``, by which documents are filtered, each is a document of its own,
    named after the line: ``a.jsonl#1``. The first record with a text determines which of `TEXT_KEYS` has the
    texts; where it has none, that of another, a conversation or the parts of a question and its answer are.
    Where no record has any of these, all its fields are the text, as ``price: 4``. Fields that are not read
    are named in a note.
    ``title`` is the title of a document, or a heading of a row. A line that is damaged or has no text is a
    failure, and the rest is still read.
    """
    text = decode(name, content)
    records: list[tuple[str, dict[str, Any]]] = []
    failures: list[Failure] = []
    for number, line in enumerate(StringIO(text), 1):
        line_name = f"{name}#{number}"
        try:
            if line.strip():
                records.append((line_name, record(line_name, line)))
        except DocumentError as error:
            if not records and not failures and (whole := whole_records(text)):
                records = [(f"{name}#{i}", each) for i, each in enumerate(whole, 1)]
                break
            failures.append(Failure(line_name, str(error)))
    if not records:
        raise DocumentError(failures[0].reason)
    found = [each for _, each in records]
    key = text_key(name, found)
    others = unread_fields(found, key) if key else ""
    notes = (f"other fields than {key} left out: {others}",) if others else ()
    are_documents = any(date_of(each.get("date")) or tags_of(each.get("tags")) for each in found)
    del text, found
    records.reverse()

    def documents() -> Iterator[Document]:
        while records:
            line_name, values = records.pop()  # as many take much memory
            try:
                yield replace(line_document(line_name, values, key), notes=notes)
            except DocumentError as error:
                failures.append(Failure(line_name, str(error)))

    if are_documents:
        yield from documents()
    elif joined := one_document(name, documents(), notes):
        yield joined
    yield from sorted(failures, key=lambda each: int(each.name.rpartition("#")[2]))


def one_document(name: str, lines: Iterable[Document], notes: tuple[str, ...]) -> Document | None:
    """Return one document, whose rows are the documents of lines; None without any."""
    paths = ((line, (f"row {line.name.rpartition('#')[2]}", line.title)) for line in lines)
    text, sections = joined_rows(
        (Section(0, tuple(filter(None, path)), is_row=True), line.text) for line, path in paths
    )
    if len(sections) > MAX_ROWS:
        raise DocumentError(f"{name} has more than {MAX_ROWS:,} rows: split it")
    return Document(name, text, sections=sections, notes=notes) if sections else None


def unread_fields(records: Sequence[dict[str, Any]], key: str) -> str:
    """Return the names of the fields that are no text, title, date or tags, and hold something."""
    read = {key, "title", "date", "tags"}
    names = dict.fromkeys(
        name for each in records if key in each for name, value in each.items() if value and name not in read
    )
    return printable(unified(some_of(list(names), MOST_NAMED)))[:300]


def whole_records(text: str) -> list[dict[str, Any]]:
    """Return the records of a file that is one JSON object or list over several lines, none for others."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(each, dict) for each in values) else []


def read_json(name: str, content: bytes) -> Document:
    r"""Make a document from a JSON file: a conversation, or else its text, without escapes as ``\u00fc``."""
    text = decode(name, content)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Document(name, text)
    values = value if isinstance(value, list) else [value]
    talks = [conversation(each) for each in values]
    if isinstance(value, list) and (talk := conversation({"messages": value})):
        talks = [talk]
    if talks and all(talks):
        heads = map(title_in, values) if len(talks) == len(values) else [""]
        texts = ("\n\n".join(filter(None, pair)) for pair in zip(heads, talks, strict=True))
        return Document(name, "\n\n\n".join(texts), title_in(value))
    return Document(name, unified(ESCAPE.sub(lambda found: unescaped(found[0]), text)))


def unescaped(escapes: str) -> str:
    r"""Return the characters of escapes as ``\u00fc`` and ``\n``, but for those that end a JSON string."""
    text = str(json.loads(f'"{escapes}"'))
    return text if not any((sign < " " and sign not in "\n\t") or sign in '"\\' for sign in text) else escapes


def record(name: str, line: str) -> dict[str, Any]:
    """Return the JSON object of a line."""
    value = parse_json(name, line)
    if isinstance(value, list) and value and not any(isinstance(each, dict | list) for each in value):
        value = {f"column {place}": each for place, each in enumerate(value, 1)}
    if not isinstance(value, dict):
        raise DocumentError(f'{name} is no JSON object: write {{"text": "…"}} on every line')
    return value


def parse_json(name: str, text: str) -> Any:
    """Parse JSON; raise `DocumentError` if it is invalid."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DocumentError(f"{name} nests its JSON too deep: flatten it") from error
    except ValueError as error:  # invalid JSON, or a number with thousands of digits
        raise DocumentError(f"{name} is not JSON ({reason_of(error)}): fix it") from error


def text_key(name: str, records: Sequence[dict[str, Any]]) -> str | None:
    """Return the key of the texts: the first of `TEXT_KEYS` in a record.

    It is empty where conversations or questions with answers are the texts, None where all fields are.
    """
    for values in records:
        for key in TEXT_KEYS:
            if isinstance(values.get(key), str):
                return key
        if other_text(values):
            return ""
    if any(True for values in records for _ in fields_of(values)):
        return None
    found = printable(", ".join(map(unified, records[0])))[:300] or "none"
    raise DocumentError(
        f"{name} has no text under {', '.join(TEXT_KEYS)} and no messages, its keys are: {found}. Rename one"
    )


def other_text(values: dict[str, Any]) -> str:
    """Return the text of a record without one under the file's key."""
    texts = (values[key] for key in TEXT_KEYS if isinstance(values.get(key), str) and values[key].strip())
    parts = [f"{key}: {text.strip()}" for key in PART_KEYS if (text := plain_text(values.get(key)))]
    return next(texts, "") or conversation(values) or "\n".join(parts)


def fields_of(values: dict[str, Any], path: str = "", depth: int = 4) -> Iterator[str]:
    """Yield a line for each value of a record without a text: ``price: 4``, ``size.width: 2``."""
    for key, value in values.items():
        if isinstance(value, dict) and depth:
            yield from fields_of(value, f"{path}{key}.", depth - 1)
        elif isinstance(value, list) and value and all(isinstance(each, str | int | float) for each in value):
            yield f"{path}{key}: {', '.join(map(str, value))}"
        elif isinstance(value, list) and depth:
            pairs = ((str(place), each) for place, each in enumerate(value, 1))
            yield from fields_of(dict(pairs), f"{path}{key}.", depth - 1)
        elif isinstance(value, str | int | float) and str(value).strip():
            yield f"{path}{key}: {str(value).strip()}"


def conversation(values: Any) -> str:
    """Return a conversation, a paragraph a message, of a list or ChatGPT's mapping; "" for others."""
    if not isinstance(values, dict):
        return ""
    messages: Any = next((values[key] for key in CHAT_KEYS if isinstance(values.get(key), list | dict)), [])
    nodes = messages.values() if isinstance(messages, dict) else messages
    lines: list[str] = []
    n_spoken = 0
    for node in nodes:
        if not isinstance(node, dict):
            continue
        message = node["message"] if isinstance(node.get("message"), dict) else node
        speaker = first_text(message, SPEAKER_KEYS)
        attached = (plain_text(message.get(key)) for key in ATTACHED_KEYS)
        called = fields_of({"tool": message.get("tool_calls")})
        text = "\n".join(filter(None, (first_text(message, MESSAGE_KEYS), *attached, *called)))
        if text.strip():
            lines.append(f"{one_line(speaker)}: {unified(text).strip()}".removeprefix(": "))
            n_spoken += bool(speaker)
    return "\n\n".join(lines) if 2 * n_spoken >= len(lines) else ""  # those of programs have no speaker


def first_text(values: dict[str, Any], keys: Sequence[str]) -> str:
    """Return the text of the first key that has one, also within parts or an object of a name."""
    return next(filter(None, (plain_text(values.get(key)) for key in keys)), "")


def plain_text(value: Any, depth: int = 6) -> str:
    """Return a text, or the texts of a list of parts (``{"type": "text", "text": …}``), empty for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and depth:
        texts = filter(None, (plain_text(each, depth - 1) for each in value))
        return ("\n" if len({type(each) for each in value}) == 1 else "").join(texts)
    if isinstance(value, dict) and depth:
        kinds = ("text", "parts", "role", "name", "content", "fallback", "description", "title", "fileName",
                 "elements")  # fmt: skip
        return next(filter(None, (plain_text(value.get(kind), depth - 1) for kind in kinds)), "")
    return ""


def title_in(value: Any) -> str:
    """Return the title, or name, of an object or of the only one in a list."""
    values = value[0] if isinstance(value, list) and len(value) == 1 else value
    title = values.get("title", values.get("name")) if isinstance(values, dict) else None
    return one_line(unified(title)) if isinstance(title, str) else ""


def line_document(name: str, values: dict[str, Any], key: str | None) -> Document:
    """Make a document from a record."""
    text = "\n".join(fields_of(values)) if key is None else values.get(key)
    text = unified(text if isinstance(text, str) and text.strip() else other_text(values))
    if not text.strip():
        raise DocumentError(
            f"{name} has no text under {key or 'messages'}: fill it in, or leave the line out"
        )
    tags = tags_of(values.get("tags"))
    return Document(name, text, title_in(values), date=date_of(values.get("date")), tags=tags)
