"""Token bytes to text as they come: no half characters, and nothing past a stop string."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Turn the bytes of one token after another into text that is certain.

    Bytes of an incomplete character are held back until the rest comes, and so is text that may be the
    beginning of a stop string.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = [text for text in stop if text]
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""
        self.stopped = False

    def push(self, token: bytes) -> str:
        """Add a token's bytes; return the text that is now certain."""
        return self._take_in(self._utf8.decode(token))

    def finish(self) -> str:
        """Return the text held back, once no more tokens come."""
        return self._take_in(self._utf8.decode(b"", final=True)) + self._release(len(self._waiting))

    def _take_in(self, text: str) -> str:
        if self.stopped:
            return ""
        self._waiting += text
        places = ((self._waiting.find(stop), stop) for stop in self._stop)
        found = [(start + len(stop), start) for start, stop in places if start >= 0]
        if found:
            self.stopped = True
            _, start = min(found)  # the first that is complete, however the tokens cut the text
            return self._release(start, discard=True)
        held = max((overlap(self._waiting, stop) for stop in self._stop), default=0)
        return self._release(len(self._waiting) - held)

    def _release(self, end: int, discard: bool = False) -> str:
        text, self._waiting = self._waiting[:end], "" if discard else self._waiting[end:]
        return text


def overlap(text: str, stop: str) -> int:
    """Length of the longest suffix of ``text`` that is a prefix of ``stop``."""
    return next((n for n in range(min(len(text), len(stop)), 0, -1) if text.endswith(stop[:n])), 0)
