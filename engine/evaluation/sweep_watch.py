"""Progress and cancellation of a sweep."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Called with the number of cells done, including parts of those in preparation, and the total.
CellProgress = Callable[[float, int], None]

CELL_TEXTS = 8  # texts that are embedded in about the time a cell is measured


class Stopped(Exception):
    """A sweep is cancelled."""


@dataclass
class Watch:
    """Reports the progress of a sweep, and cancels it on request."""

    n_cells: int
    n_done: int
    on_progress: CellProgress | None
    is_stopped: Callable[[], bool] | None
    n_texts: int = 0  # to embed for the current cells
    n_embedded: int = 0
    n_sharing: int = 0  # cells that need these texts
    n_measured: int = 0  # of them
    since: float = field(default_factory=time.perf_counter)  # time when the previous row was ready

    def begin(self, n_sharing: int, n_texts: int) -> None:
        """Start a group of cells, and the texts that must be embedded for them."""
        self.n_done += self.n_measured
        self.n_texts, self.n_sharing, self.n_embedded, self.n_measured = n_texts, n_sharing, 0, 0

    def tell(self, n_embedded: int = 0, n_measured: int = 0, next_cell: float = 0.0) -> None:
        """Add texts and cells done, and report with a part of the next cell; raise `Stopped` on request."""
        self.n_embedded, self.n_measured = self.n_embedded + n_embedded, self.n_measured + n_measured
        if self.is_stopped is not None and self.is_stopped():
            raise Stopped
        if self.on_progress is not None:
            work = self.n_texts + CELL_TEXTS * self.n_sharing
            part = (self.n_embedded + CELL_TEXTS * (self.n_measured + next_cell)) / max(work, 1)
            self.on_progress(self.n_done + part * self.n_sharing, self.n_cells)
