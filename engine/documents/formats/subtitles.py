"""Subtitles (.srt, .vtt): what is said, with the minute as heading."""

import re
from html import unescape

from ...errors import DocumentError
from ..document import Document, Section
from .plain import decode

TIME = re.compile(r"(?:(\d{1,3}):)?(\d\d):(\d\d)[.,]\d{1,3}[ \t]+-->[ \t]+(?:\d+:)?\d\d:\d\d[.,]\d{1,3}.*")
SPEAKER = re.compile(r"<v(?:\.[^ >]*)?[ \t]+([^>]*)>")
MARKS = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>|\{\\[^}]*\}")
UNSEEN = re.compile(r"(?:NOTE|STYLE|REGION)\b")


def read_subtitles(name: str, content: bytes) -> Document:
    """Make a document from subtitles: a line a cue, without numbers, times and marks; a section a minute."""
    lines_said: list[str] = []
    sections: list[Section] = []
    minute, position = None, 0
    for block in re.split(r"\n[ \t]*\n", decode(name, content)):
        lines = block.strip("\n").split("\n")
        times = [TIME.fullmatch(line.strip()) for line in lines[:2]]
        place, time = next(((number, found) for number, found in enumerate(times) if found), (0, None))
        if time is None or UNSEEN.match(lines[0]):
            continue
        hours, minutes = int(time[1] or 0), int(time[2])
        said = " ".join(lines[place + 1 :])
        said = " ".join(unescape(MARKS.sub("", SPEAKER.sub(r"\1: ", said))).split())
        if not said or lines_said[-1:] == [said]:  # cues that go on repeat their line
            continue
        if (hours, minutes) != minute:
            minute = hours, minutes
            sections.append(Section(position, (f"{hours}:{minutes:02}",)))
        lines_said.append(said)
        position += len(said) + 1
    if not lines_said:
        raise DocumentError(f"{name} has no subtitles with times in it: save it as .txt if it is other text")
    return Document(name, "\n".join(lines_said), sections=tuple(sections))
