"""The recognition of text in pictures (RapidOCR), for `engine.documents.recognition`."""

import json
import logging
from functools import cache
from typing import Any

import numpy as np


@cache
def model() -> Any:
    """Load the models, which are files of the package, once."""
    from rapidocr import RapidOCR  # type: ignore[import-not-found, unused-ignore]

    logging.disable(logging.CRITICAL)
    return RapidOCR()


def answer(request: bytes) -> bytes:
    """Return the texts of a picture with the boxes around them, as JSON.

    The request is a line of JSON with width and height, and the pixels of three bytes, row by row.
    """
    line, _, pixels = request.partition(b"\n")
    width, height = json.loads(line)
    found = model()(np.frombuffer(pixels, np.uint8).reshape(height, width, 3))
    corners = () if found.boxes is None else found.boxes  # (n_texts, 4, 2)
    boxes = [[*each.min(axis=0).tolist(), *each.max(axis=0).tolist()] for each in corners]
    return json.dumps(list(zip(found.txts or (), boxes, strict=True))).encode()
