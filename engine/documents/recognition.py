"""Text in pictures of pages, recognised (OCR) in a process with limits, where rapidocr is installed."""

import json
from importlib.util import find_spec
from pathlib import Path

from ..installed import install_command
from ..limited_process import Limits, Program, Report, ask

# It keeps the model from one page to the next.
RECOGNISER = Program(Path(__file__).with_name("recognising_program.py"), idle_s=20, forks=False)
LIMITS = Limits(seconds=45, megabytes=2500)  # of one page
report: Report | None = None  # called before each page; set where a child process reads

PlacedText = tuple[
    str, tuple[float, float, float, float]
]  # a text, and left, top, right and bottom in pixels


def is_installed() -> bool:
    """Whether the libraries that recognise text are there."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


def way_out() -> str:
    """Return what to do about text that is only seen."""
    if is_installed():
        return "text recognition (OCR) took too long or found none: split the file"
    return f"text recognition (OCR) is an extra: {install_command('ocr')}"


def recognised(pixels: bytes, width: int, height: int) -> list[PlacedText] | None:
    """Return the texts in a picture of three bytes a pixel (blue, green, red), None beyond the limits."""
    answer = ask(RECOGNISER, json.dumps([width, height]).encode() + b"\n" + pixels, LIMITS)
    return [(text, tuple(box)) for text, box in json.loads(answer)] if answer else None
