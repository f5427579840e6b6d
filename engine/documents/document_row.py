"""A document as values of JSON and SQLite: what is known of it beside its name, title and text is JSON."""

import json
from dataclasses import dataclass

from pydantic import TypeAdapter

from engine.documents.document import Document, Section


@dataclass(frozen=True)
class Metadata:
    """What is known of a document beside its name, title and text."""

    sections: tuple[Section, ...] = ()
    date: str = ""
    tags: tuple[str, ...] = ()


METADATA = TypeAdapter(Metadata)


def metadata_json(document: Document) -> str:
    """Return the sections, date and tags of a document as JSON."""
    metadata = Metadata(document.sections, document.date, document.tags)
    return json.dumps(METADATA.dump_python(metadata))


def to_document(name: str, title: str, text: str, metadata: str) -> Document:
    """Restore a document; the metadata of the first version are sections alone."""
    content = json.loads(metadata)
    known = METADATA.validate_python({"sections": content} if isinstance(content, list) else content)
    return Document(name, text, title, known.sections, known.date, known.tags)
