"""The date and the tags that a file states of itself, which a search may be limited to."""

import re
import tomllib
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from .outline import one_line
from .plain import unified

MAX_TAGS, MAX_TAG = 100, 100  # of a document, and characters of each
MAX_FRONT_MATTER = 10_000
FRONT_MATTER = re.compile(
    r"(?:---[ \t]*\n(?P<yaml>.*?)\n(?:---|\.\.\.)|\+\+\+[ \t]*\n(?P<toml>.*?)\n\+\+\+)[ \t]*(?:\n|$)",
    re.DOTALL,
)
DAY = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:$|[T ]\d)")


def front_matter(text: str) -> tuple[dict[str, Any], int]:
    """Return the values at the start of a Markdown file, and where they end; none, and 0, without any.

    They are YAML between two lines ``---``, where all are strings, or lists and mappings of them; or TOML
    between two lines ``+++``.
    """
    found = FRONT_MATTER.match(text[:MAX_FRONT_MATTER])
    if found is None:
        return {}, 0
    import yaml  # type: ignore[import-untyped]

    try:
        if found["toml"] is not None:
            values = tomllib.loads(found["toml"])
        else:
            # Unlike the safe loader it merges no mappings, which can double in size with every line.
            values = yaml.load(found["yaml"], Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}, 0  # two rules around other text
    return (values, found.end()) if isinstance(values, dict) else ({}, 0)


def date_of(value: object) -> str:
    """Return a date or time as ``2026-05-01`` of ISO 8601, ``2026-5-1`` or ``May 1, 2026``, or else empty."""
    if isinstance(value, date):
        return value.isoformat()[:10]
    if not isinstance(value, str):
        return ""
    text = one_line(value[:100])
    with suppress(ValueError):
        return datetime.fromisoformat(text).date().isoformat()
    with suppress(ValueError):
        if found := DAY.match(text):
            return date(*map(int, found.groups())).isoformat()
    for form in ("%B %d, %Y", "%d %B %Y", "%b %d, %Y", "%d %b %Y"):  # with the English name of a month
        with suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    return ""


def tags_of(value: object) -> tuple[str, ...]:
    """Return the tags in a list, or in a text with commas or semicolons between them."""
    parts = re.split("[,;]", value[: MAX_TAGS * MAX_TAG]) if isinstance(value, str) else value
    if not isinstance(parts, list):
        return ()
    tags = [one_line(unified(part))[:MAX_TAG] for part in parts[:MAX_TAGS] if isinstance(part, str)]
    return tuple(dict.fromkeys(filter(None, tags)))
