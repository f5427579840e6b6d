"""Untrusted files, read in a child process with limits, so that none stalls or ends the app."""

import json
import threading
from pathlib import Path

from pydantic import TypeAdapter

from engine.documents.document import Failure, Loaded
from engine.limited_process import Limits, Program, ask

READER = Program(Path(__file__).with_name("reading_program.py"), idle_s=30)
LOADED = TypeAdapter(Loaded)
AT_ONCE = threading.BoundedSemaphore(2)  # files, whose memory adds up


def parse_limited(name: str, content: bytes, csv_column: str | None, limits: Limits) -> Loaded:
    """Make documents of a file's content as `engine.documents.loaders.parse_file` does, within limits.

    A file that exceeds them is a failure.
    """
    with AT_ONCE:
        answer = ask(READER, request_of(name, content, csv_column), limits)
    if answer is None:
        return Loaded((), (Failure(name, f"reading {name} takes over {limits}: split it"),))
    return loaded_of(answer)


def request_of(name: str, content: bytes, csv_column: str | None) -> bytes:
    """Return a line of JSON, and the content."""
    return json.dumps([name, csv_column]).encode() + b"\n" + content


def arguments_of(request: bytes) -> tuple[str, bytes, str | None]:
    """Return name, content and column of a request."""
    line, _, content = request.partition(b"\n")
    name, csv_column = json.loads(line)
    return name, content, csv_column


def answer_of(loaded: Loaded) -> bytes:
    """Return what was read as JSON."""
    text = json.dumps(LOADED.dump_python(loaded), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")  # a file's name may have halves of surrogate pairs


def loaded_of(answer: bytes) -> Loaded:
    """Return what was read, from its JSON."""
    return LOADED.validate_python(json.loads(answer.decode("utf-8", "surrogatepass")))
