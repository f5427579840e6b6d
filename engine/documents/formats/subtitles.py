"""Subtitles (.srt, .vtt): what is said, with the minute as heading."""

import re
from html import unescape

from ...errors import DocumentError
from ...wording import counted
from ..document import Document, Section
from .plain import decode

CLOCK = r"(?:(\d{1,3}):)?(\d\d?):(\d\d(?:[.,]\d{1,3})?)"
TIME = re.compile(rf"{CLOCK}[ \t]*-->[ \t]*{CLOCK}.*")
SPEAKER = re.compile(r"<v(?:\.[^ >]*)?[ \t]+([^>]*)>")
MARKS = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>|\{\\[^}]*\}")
UNSEEN = re.compile(r"(?:NOTE|STYLE|REGION)\b")
BEFORE_CUE = re.compile(  # some files have no blank lines
    r"\n[ \t]*\n(?=[^\n]*-->|[^\n]*\n[^\n]*-->|NOTE|STYLE|REGION)|\n(?=(?:\d+[ \t]*\n)?[\d:.,]+[ \t]*-->)"
)
AT_ONCE = 0.05  # seconds between a cue and one that goes on with its lines


def read_subtitles(name: str, content: bytes) -> Document:
    """Make a document from subtitles: a line a cue, without numbers, times and marks; a section a minute.

    A cue that follows at once on another repeats its last lines, or its words so far, where captions roll:
    these are read once.
    """
    cues: list[tuple[int, str]] = []  # the minute, and what is said
    before: list[str] = []  # the lines of the last cue, and when it ends
    end, n_unread = -1.0, 0
    for block in BEFORE_CUE.split(decode(name, content)):
        lines = block.strip("\n").split("\n")
        times = [TIME.fullmatch(line.strip()) for line in lines[:2]]
        place, time = next(((number, found) for number, found in enumerate(times) if found), (0, None))
        if time is None or UNSEEN.match(lines[0]):
            n_unread += "-->" in "".join(lines[:2]) and not UNSEEN.match(lines[0])
            continue
        start = seconds(*time.groups()[:3])
        is_next, end = start <= end + AT_ONCE, seconds(*time.groups()[3:])
        said = [unescape(MARKS.sub("", SPEAKER.sub(r"\1: ", line))) for line in lines[place + 1 :]]
        said = [line for line in (" ".join(line.split()) for line in said) if line]
        repeated = max(n for n in range(len(said) + 1) if n == 0 or (is_next and before[-n:] == said[:n]))
        before, new = said or before, " ".join(said[repeated:])
        if is_next and cues and not repeated and new.startswith(cues[-1][1]):
            cues[-1] = (cues[-1][0], new)
        elif new:
            cues.append((int(start) // 60, new))
    if not cues:
        raise DocumentError(f"{name} has no subtitles with times in it: save it as .txt if it is other text")
    sections: list[Section] = []
    position, last = 0, -1
    for minute, said_now in cues:
        if minute != last:
            last = minute
            sections.append(Section(position, (f"{minute // 60}:{minute % 60:02}",)))
        position += len(said_now) + 1
    notes = (f"{counted(n_unread, 'caption')} without a time that can be read left out",) if n_unread else ()
    return Document(name, "\n".join(said_now for _, said_now in cues), sections=tuple(sections), notes=notes)


def seconds(hours: str | None, minutes: str, rest: str) -> float:
    """Return a time in seconds."""
    return 3600 * int(hours or 0) + 60 * int(minutes) + float(rest.replace(",", "."))
