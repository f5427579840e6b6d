"""Turns of browser sessions at the processor: one works, others wait in line, questions before other work."""

import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic

SLICE_S = 10.0  # of one turn while other sessions wait: most answers take less
POLL_S = 0.2  # how soon a waiting job notices that it is not wanted any more

Place = tuple[str, bool]  # in the line: a session, and whether it is that of its urgent jobs


class Turns:
    """A round robin: whose turn is over while others wait goes to the end of the line.

    All jobs of a session share its turn, but for urgent ones, which have a place of their own in front of
    those that are not urgent. A turn ends after `SLICE_S` even if its jobs do not call `wait`, as
    one of them may itself be waiting for a lock that a job in the line holds.
    """

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._slice_s = slice_s
        self._changed = threading.Condition()
        self._line: list[Place] = []  # it is the first one's turn
        self._n_jobs: Counter[Place] = Counter()
        self._since = 0.0  # when the turn began

    def join(self, session: str, urgent: bool = False) -> None:
        """Enter a job of a session, which stands in line until `leave`."""
        with self._changed:
            place = session, urgent
            if place not in self._line:
                n_urgent = next((n for n, (_, first) in enumerate(self._line) if not first), len(self._line))
                position = n_urgent if urgent else len(self._line)
                if position == 0:
                    self._since = monotonic()
                self._line.insert(position, place)
            self._n_jobs[place] += 1

    def leave(self, session: str, urgent: bool = False) -> None:
        """Remove a job of a session, and the session with its last one."""
        with self._changed:
            place = session, urgent
            self._n_jobs[place] -= 1
            if self._n_jobs[place] == 0:
                if self._line[0] == place:
                    self._since = monotonic()
                self._line.remove(place)
                self._changed.notify_all()

    def wait(self, session: str, is_wanted: Callable[[], bool], urgent: bool = False) -> None:
        """Return once it is the session's turn, or its job has left or is not wanted any more."""
        with self._changed:
            self._end_turn_if_over()
            while (session, urgent) in self._line[1:] and is_wanted():
                self._changed.wait(POLL_S)
                self._end_turn_if_over()

    def n_before(self, session: str, urgent: bool = False) -> int:
        """Return how many other sessions come before a job of one; 0 if it is its turn."""
        with self._changed:
            place = session, urgent
            before = self._line[: self._line.index(place)] if place in self._line else []
            return len({name for name, _ in before} - {session})

    def _end_turn_if_over(self) -> None:
        if len(self._line) > 1 and monotonic() - self._since > self._slice_s:
            self._line.append(self._line.pop(0))
            self._since = monotonic()
            self._changed.notify_all()


TURNS = Turns()
