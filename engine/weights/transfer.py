"""The progress of a download in words: bytes, rate and time left."""

from time import monotonic

from ..wording import readable_time
from .download import amount

WINDOW_S = 5.0  # of the rate: long enough to be steady, short enough to follow a change


class Transfer:
    """Bytes done and in all, as they are reported, and their rate over the last seconds.

    It is called as `engine.weights.download.Progress`. Bytes of an earlier try do not count for the rate.
    """

    def __init__(self) -> None:
        self.done = self.total = 0
        self._seen: list[tuple[float, int]] = []  # times, and bytes done by then

    def __call__(self, done: int, total: int) -> None:
        """Record a report."""
        now = monotonic()
        self.done, self.total = done, total
        self._seen = [each for each in self._seen if each[0] > now - WINDOW_S] + [(now, done)]

    @property
    def share(self) -> float:
        """Share of the bytes that are done, 0 if their number is unknown."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second, None before there are two reports."""
        if len(self._seen) < 2:
            return None
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else None

    @property
    def words(self) -> str:
        """``"123.4 of 639.4 MB · 12.3 MB/s · 42 s left"``, without unknown parts."""
        parts = [amount(self.done, self.total)]
        if rate := self.bytes_per_s:
            parts.append(f"{rate / 1e6:.1f} MB/s")
            if self.total > self.done:
                parts.append(f"{readable_time((self.total - self.done) / rate)} left")
        return " · ".join(parts)
