"""Text in pictures of pages, recognised (OCR) in a process with limits, where rapidocr is installed."""

import json
from importlib.util import find_spec
from pathlib import Path

from ..errors import RecognitionNeededError
from ..installed import install_command
from ..limited_process import Limits, Program, Report, ask
from ..limited_reader import LATER, NEVER, NOW

# It keeps the model from one page to the next.
RECOGNISER = Program(Path(__file__).with_name("recognising_program.py"), idle_s=20, forks=False)
LIMITS = Limits(seconds=45, megabytes=2500)  # of one page
# Set where a child process reads: what is called before each page, and whether it is recognised.
report: Report | None = None
turn = NOW

PlacedText = tuple[
    str, tuple[float, float, float, float]
]  # a text, and left, top, right and bottom in pixels


def is_installed() -> bool:
    """Whether the libraries that recognise text are there."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


def way_out() -> str:
    """Return what to do about text that is only seen."""
    if is_installed() and turn == NEVER:
        return "text recognition (OCR) is busy with another file: add this one again in some minutes"
    if is_installed():
        return "text recognition (OCR) took too long or found none: split the file"
    return f"text recognition (OCR) is an extra: {install_command('ocr')}"


def begin(number: int, n_pages: int) -> bool:
    """Return whether a page is to be recognised now, and say so; raise where that has its own turn."""
    if turn == NEVER or not is_installed():
        return False
    if turn == LATER:
        raise RecognitionNeededError("a page is a picture of text: recognise it")
    if report:
        report(number, n_pages)
    return True


def recognised(pixels: bytes, width: int, height: int) -> list[PlacedText] | None:
    """Return the texts in a picture of three bytes a pixel (blue, green, red), None beyond the limits."""
    answer = ask(RECOGNISER, json.dumps([width, height]).encode() + b"\n" + pixels, LIMITS)
    return [(text, tuple(box)) for text, box in json.loads(answer)] if answer else None
