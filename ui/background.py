"""What takes long and is looked at afterwards: computed in the background after a button with its price."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import streamlit as st

from engine.cores import n_cores
from engine.weights.fetch import Progress
from engine.wording import readable_time
from ui.jobs import Job, StoppedError, current_job, drop_job, follow_progress, foreseen, start_job
from ui.progress import counting
from ui.text import show_error
from ui.widgets import SHORT_CPU_S

T = TypeVar("T")
KEPT = 12  # results of a session


def in_background(
    name: str, what: str, key: object, seconds: float, page: str, work: Callable[[Progress], T]
) -> T | None:
    """Return what work on ``key`` gives: short work at once, long work after its button was pressed.

    ``seconds`` are those that `foreseen` takes. ``work`` is called with a function that takes the steps that
    are done and all there are, and may raise to stop it. It must not draw. None until there is a result,
    which is kept; ``page`` is the folder of the page that draws it, and ``name`` that of the job.
    """
    if (found := computed(name, key)) is not None:
        return found
    if seconds * n_cores() <= SHORT_CPU_S:
        with counting(what, "steps") as show:
            return keep(name, key, work(show))
    job = current_job(name, key)
    if job is not None and not job.done:
        follow_progress(job, name, "Ends it after the step that it is at. Nothing of it is kept.")
        return None
    if job is not None and job.error:
        show_error(f"{job.error}.")
    elif job is not None and not job.stopped:
        drop_job(name)
        return keep(name, key, job.result())

    def start() -> None:
        start_job(name, run, request=key, page=page, cost=(name, seconds))

    def run(job: Job[T | None]) -> T | None:
        def report(done: int, total: int) -> None:
            job.report(done, total, f"{what}: {done:,} of {total:,} steps")
            if not job.take_turn():
                raise StoppedError

        with suppress(StoppedError):
            return work(report)
        return None

    price = f"{what} · about {readable_time(foreseen(name, seconds))}"
    st.button(price, key=f"begin-{name}", type="primary", icon=":material/play_arrow:", on_click=start)
    return None


def computed(name: str, key: object) -> Any:
    """Return the result of `in_background` that is kept in this session, None where there is none."""
    return results().get((name, key))


def keep(name: str, key: object, result: T) -> T:
    """Keep a result, in place of the oldest of many."""
    kept = results()
    kept[name, key] = result
    while len(kept) > KEPT:
        del kept[next(iter(kept))]
    return result


def forget(name: str) -> None:
    """Forget the results of a name, to compute them anew."""
    for key in [key for key in results() if key[0] == name]:
        del results()[key]


def results() -> dict[tuple[str, object], Any]:
    """Return the results that are kept in this session."""
    return st.session_state.setdefault("computed", {})
