"""The date and the tags that a file states of itself, which a search may be limited to."""

import re
from datetime import date, datetime
from typing import Any

from engine.documents.formats.outline import one_line
from engine.documents.formats.plain import unified

MAX_TAGS, MAX_TAG = 100, 100  # of a document, and characters of each
MAX_FRONT_MATTER = 10_000
FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)


def front_matter(text: str) -> dict[str, Any]:
    """Return the YAML between two lines ``---`` at the start of a Markdown file, empty where there is none.

    All values are strings, or lists and mappings of them.
    """
    found = FRONT_MATTER.match(text[:MAX_FRONT_MATTER])
    if found is None:
        return {}
    import yaml  # type: ignore[import-untyped]

    try:
        # Unlike the safe loader it merges no mappings, which can double in size with every line.
        values = yaml.load(found[1], Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}  # two rules around other text
    return values if isinstance(values, dict) else {}


def date_of(value: object) -> str:
    """Return a date or time in ISO 8601 as ``2026-05-01``, empty for anything else."""
    if isinstance(value, date):
        return value.isoformat()[:10]
    if not isinstance(value, str):
        return ""
    try:
        return datetime.fromisoformat(value.strip()).date().isoformat()
    except ValueError:
        return ""


def tags_of(value: object) -> tuple[str, ...]:
    """Return the tags in a list, or in a text with commas or semicolons between them."""
    parts = re.split("[,;]", value[: MAX_TAGS * MAX_TAG]) if isinstance(value, str) else value
    if not isinstance(parts, list):
        return ()
    tags = [one_line(unified(part))[:MAX_TAG] for part in parts[:MAX_TAGS] if isinstance(part, str)]
    return tuple(dict.fromkeys(filter(None, tags)))
