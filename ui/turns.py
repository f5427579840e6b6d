"""Turns of browser sessions at the processor: one works, the others wait in line."""

import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic

SLICE_S = 10.0  # of one turn while other sessions wait: most answers take less
POLL_S = 0.2  # how soon a waiting job notices that it is not wanted any more


class Turns:
    """A round robin: whose turn is over while others wait goes to the end of the line.

    All jobs of a session share its turn. A turn ends after `SLICE_S` even if its jobs do not call `wait`, as
    one of them may itself be waiting for a lock that a job in the line holds.
    """

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._slice_s = slice_s
        self._changed = threading.Condition()
        self._line: list[str] = []  # sessions with jobs; it is the first one's turn
        self._n_jobs: Counter[str] = Counter()
        self._since = 0.0  # when the turn began

    def join(self, session: str) -> None:
        """Enter a job of a session, which stands in line until `leave`."""
        with self._changed:
            if not self._line:
                self._since = monotonic()
            if session not in self._line:
                self._line.append(session)
            self._n_jobs[session] += 1

    def leave(self, session: str) -> None:
        """Remove a job of a session, and the session with its last one."""
        with self._changed:
            self._n_jobs[session] -= 1
            if self._n_jobs[session] == 0:
                if self._line[0] == session:
                    self._since = monotonic()
                self._line.remove(session)
                self._changed.notify_all()

    def wait(self, session: str, is_wanted: Callable[[], bool]) -> None:
        """Return once it is the session's turn, or its job has left or is not wanted any more."""
        with self._changed:
            self._end_turn_if_over()
            while session in self._line[1:] and is_wanted():
                self._changed.wait(POLL_S)
                self._end_turn_if_over()

    def n_before(self, session: str) -> int:
        """Return how many sessions come before one; 0 if it is its turn."""
        with self._changed:
            return self._line.index(session) if session in self._line else 0

    def _end_turn_if_over(self) -> None:
        if len(self._line) > 1 and monotonic() - self._since > self._slice_s:
            self._line.append(self._line.pop(0))
            self._since = monotonic()
            self._changed.notify_all()


TURNS = Turns()
