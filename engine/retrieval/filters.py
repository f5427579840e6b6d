"""Filter of documents by tags and dates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain

from ..documents.document import Document
from ..errors import InputError
from ..wording import counted, some_of

MAX_TAGS_SHOWN = 20  # tags in a message


@dataclass(frozen=True)
class DocumentFilter:
    """The tags of which a document to search has one or more, whatever their case, and the days of its date.

    Without tags all documents fit. A day is written as ``2026-05-01``, and empty for no limit; a document
    without a date is left out where there is a limit.
    """

    tags: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        for day in filter(None, (self.since, self.until)):
            try:
                is_day = date.fromisoformat(day).isoformat() == day
            except ValueError:
                is_day = False
            if not is_day:
                raise InputError(f"{day!r} is no day: give year, month and day, such as 2026-05-01")
        if self.until and self.since > self.until:
            raise InputError(f"no day is from {self.since} to {self.until}: give the first one first")

    def __bool__(self) -> bool:
        """Whether it leaves out any documents."""
        return self != DocumentFilter()

    def names(self, documents: Sequence[Document]) -> list[str]:
        """Return the names of the documents that it allows.

        Raises `InputError` where there are none: the message names the tags that there are, or counts the
        dates.
        """
        wanted = {tag.casefold() for tag in self.tags}
        tagged = [one for one in documents if not (wanted and wanted.isdisjoint(map(str.casefold, one.tags)))]
        if not tagged:
            known = sorted(set(chain.from_iterable(each.tags for each in documents)))
            there = f"their tags are {some_of(known, MAX_TAGS_SHOWN)}" if known else "they have no tags"
            raise InputError(f"no document has the tag {' or '.join(self.tags)}: {there}")
        # A document without a date has "", which is before any day.
        since, until = self.since or "0" * bool(self.until), self.until or "9999-12-31"
        found = [each.name for each in tagged if since <= each.date <= until]
        if not found:
            n_dated = sum(bool(each.date) for each in tagged)
            raise InputError(
                f"no document has a date from {self.since or 'any day'} to {self.until or 'any day'}: of "
                f"{counted(len(tagged), 'document')}, {n_dated:,} state one"
            )
        return found
