"""How far a sweep is, and whether it goes on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Cells done, with a part of the next ones while they are prepared, and cells in all.
CellProgress = Callable[[float, int], None]

CELL_TEXTS = 8  # a cell takes about as long to measure as so many texts to embed


class Stopped(Exception):
    """A sweep was asked to stop."""


@dataclass
class Watch:
    """Tells how far a sweep is, and ends it where that is wanted."""

    n_cells: int
    n_done: int
    on_progress: CellProgress | None
    is_stopped: Callable[[], bool] | None
    n_texts: int = 0  # to embed for the cells at hand
    n_embedded: int = 0
    n_sharing: int = 0  # cells that wait for these texts
    n_measured: int = 0  # of them
    since: float = field(default_factory=time.perf_counter)  # when the row before was ready

    def begin(self, n_sharing: int, n_texts: int) -> None:
        """Turn to some cells, and to the texts that must be embedded for them."""
        self.n_done += self.n_measured
        self.n_texts, self.n_sharing, self.n_embedded, self.n_measured = n_texts, n_sharing, 0, 0

    def tell(self, n_embedded: int = 0, n_measured: int = 0, next_cell: float = 0.0) -> None:
        """Count texts and cells, and report, with a part of the next cell; raise `Stopped` where wanted."""
        self.n_embedded, self.n_measured = self.n_embedded + n_embedded, self.n_measured + n_measured
        if self.is_stopped is not None and self.is_stopped():
            raise Stopped
        if self.on_progress is not None:
            work = self.n_texts + CELL_TEXTS * self.n_sharing
            part = (self.n_embedded + CELL_TEXTS * (self.n_measured + next_cell)) / max(work, 1)
            self.on_progress(self.n_done + part * self.n_sharing, self.n_cells)
