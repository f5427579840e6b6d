"""The recognition of text in pictures (RapidOCR), for `engine.documents.recognition`."""

import json
import logging
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

MOST_ASKED, SURE = 9, 0.9


@cache
def model() -> Any:
    """Load the models, which are files of the package, once."""
    from rapidocr import RapidOCR  # type: ignore[import-not-found, unused-ignore]

    logging.disable(logging.CRITICAL)
    return RapidOCR()


def quarter_turns(picture: Any, corners: Any) -> int:
    """Return the turns to the left that put a picture upright, as most of its longest texts tell."""
    votes: Counter[int] = Counter()
    for each in sorted(corners, key=np.ptp)[-MOST_ASKED:]:
        (left, top), (right, bottom) = each.min(axis=0).clip(0).astype(int), each.max(axis=0).astype(int)
        is_tall = 2 * (bottom - top) > 3 * (right - left)
        text = np.ascontiguousarray(np.rot90(picture[top:bottom, left:right], is_tall))
        label, score = model()(text, use_det=False, use_rec=False).cls_res[0]
        votes[is_tall + 2 * (label == "180" and score > SURE)] += 1
    return next((turns for turns, n in votes.items() if 2 * n > votes.total()), 0)


def answer(request: bytes) -> bytes:
    """Return the texts of a picture with the boxes around them, as JSON.

    The request is a line of JSON with width and height, and the pixels of three bytes, row by row. A page
    that lies on its side or upside down is put upright first.
    """
    line, _, pixels = request.partition(b"\n")
    width, height = json.loads(line)
    picture = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
    found = model()(picture, use_det=True, use_rec=True)
    if found.boxes is not None and (turns := quarter_turns(picture, found.boxes)):
        found = model()(np.ascontiguousarray(np.rot90(picture, turns)), use_det=True, use_rec=True)
    corners = () if found.boxes is None else found.boxes  # (n_texts, 4, 2)
    boxes = [[*each.min(axis=0).tolist(), *each.max(axis=0).tolist()] for each in corners]
    return json.dumps(list(zip(found.txts or (), boxes, strict=True))).encode()
