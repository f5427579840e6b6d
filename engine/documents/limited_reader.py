"""Untrusted files, read in a child process with limits, so that none stalls or ends the app."""

import json
import threading
from pathlib import Path

from pydantic import TypeAdapter

from ..limited_process import Limits, Program, ask
from .document import Failure, Loaded

READER = Program(Path(__file__).with_name("reading_program.py"), idle_s=30)
LOADED = TypeAdapter(Loaded)
AT_ONCE = threading.BoundedSemaphore(2)  # files, whose memory adds up


def parse_limited(name: str, content: bytes, csv_column: str | None, limits: Limits) -> Loaded:
    """Make documents of a file's content as `engine.documents.loaders.parse_file` does, within limits.

    A file that exceeds them is a failure.
    """
    request = json.dumps([name, csv_column]).encode() + b"\n" + content
    with AT_ONCE:
        answer = ask(READER, request, limits)
    if answer is None:
        return Loaded((), (Failure(name, f"reading {name} takes over {limits}: split it"),))
    return LOADED.validate_python(json.loads(answer.decode("utf-8", "surrogatepass")))
