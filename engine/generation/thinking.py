"""The thought that some models write before their answer: ``<think>…</think>``, divided from the answer.

Templates of such models (Qwen3, SmolLM3) ask for a thought or for none by ``enable_thinking``; others begin
one in the prompt, or never ask. A thought is no part of the answer: quotes and checks are about the answer.
"""

from typing import Literal

from .stream import overlap

OPEN, CLOSE = "<think>", "</think>"
# Tokens of a thought, in addition to those of the answer. Thoughts about three sentences mostly have some
# hundreds, but some never end.
MAX_THOUGHT_TOKENS = 1024


class ThoughtSplitter:
    """Divide a text that comes in pieces into thought and answer.

    ``opened`` is whether the prompt ends within a thought.
    """

    def __init__(self, opened: bool = False) -> None:
        self.part: Literal["start", "thought", "answer"] = "start"  # as far as is known
        self.thought_ended = False  # whether there was a thought, and it has ended
        self._opened = opened
        self._waiting = ""

    def push(self, text: str) -> tuple[str, str]:
        """Add text; return the thought and the answer in it that are certain by now."""
        self._waiting += text
        if self.part == "start" and not self._begin():
            return "", ""
        thought = ""
        if self.part == "thought":
            thought, found, rest = self._waiting.partition(CLOSE)
            if not found:
                held = overlap(self._waiting, CLOSE)
                certain = len(self._waiting) - held
                thought, self._waiting = self._waiting[:certain], self._waiting[certain:]
                return thought, ""
            self.part, self.thought_ended, self._waiting = "answer", True, rest
        answer, self._waiting = self._waiting, ""
        return thought, answer

    def finish(self) -> tuple[str, str]:
        """Return the thought and the answer held back, once no more text comes."""
        rest, self._waiting = self._waiting, ""
        return (rest, "") if self.part == "thought" else ("", rest)

    def _begin(self) -> bool:
        """Set ``part`` from the first characters; return whether they decide it."""
        begun = self._waiting.lstrip()
        if begun.startswith(OPEN):
            self.part, self._waiting = "thought", begun.removeprefix(OPEN)
        elif OPEN.startswith(begun):
            return False
        else:
            self.part = "thought" if self._opened else "answer"
        return True
