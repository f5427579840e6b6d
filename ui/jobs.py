"""Work in a thread of its own, whose text grows on the page while the page stays usable.

A page keeps its job in the session's state. Whatever the user touches meanwhile runs the page again,
and that run goes on drawing the job where the one before it was interrupted.
"""

import logging
import threading
from collections.abc import Callable
from html import escape
from time import monotonic
from typing import Generic, TypeVar

from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import GlassboxError
from ui.text import text_html

T = TypeVar("T")

# Streamlit interrupts a run of the page only where it draws: this is how long a rerun waits at most
# while no text comes.
REDRAW_S = 0.1
GONE_S = 5.0  # a session that loses its connection for less than this comes back to its job


class Job(Generic[T]):
    """Work that has begun in a thread of its own, writes text, and may be stopped.

    Parameters
    ----------
    work
        Called with the job: it writes with `write`, ends soon after `stopped` turns true, and returns
        the result. It draws nothing itself, as only the page's own thread may.
    is_wanted
        Whether anybody is there for the result; by default, whether the browser session is that
        began the job.
    """

    def __init__(self, work: Callable[["Job[T]"], T], is_wanted: Callable[[], bool] | None = None) -> None:
        self._is_wanted = session_is_open() if is_wanted is None else is_wanted
        self._wanted_at = monotonic()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._text = ""
        self._done = False
        self._result: T
        self._error: GlassboxError | None = None
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._text

    @property
    def done(self) -> bool:
        """Whether the work has ended, in whatever way."""
        return self._done

    @property
    def stopped(self) -> bool:
        """Whether the work is to end: `stop` was called, or its session has been gone for a while."""
        if self._is_wanted():
            self._wanted_at = monotonic()
        elif monotonic() - self._wanted_at > GONE_S:
            self.stop()
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask the work to end; what it has written stays."""
        self._stop.set()

    def write(self, text: str) -> None:
        """Add to the text, for all who follow to see at once."""
        with self._changed:
            self._text += text
            self._changed.notify_all()

    def wait(self, seen: str = "", seconds: float | None = None) -> str:
        """Return the text once it is more than ``seen``, the work is done, or ``seconds`` are over."""
        with self._changed:
            self._changed.wait_for(lambda: self._done or len(self._text) > len(seen), seconds)
            return self._text

    def result(self) -> T:
        """Return what the work returned, waiting for it to end.

        Raises
        ------
        GlassboxError
            The one that ended the work; any other exception is logged, and becomes one in its place.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, work: Callable[["Job[T]"], T]) -> None:
        try:
            self._result = work(self)
        except GlassboxError as error:
            self._error = error
        except Exception as error:
            logging.getLogger(__name__).exception("a job failed")
            self._error = GlassboxError(
                f"this failed in a way the app does not know ({type(error).__name__}: {error}): try again, "
                "with other settings if it fails again; the log has the details"
            )
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()


def session_is_open() -> Callable[[], bool]:
    """Return a function that tells whether the browser session running this page is connected."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return lambda: True
    session_id, app = context.session_id, runtime.get_instance()
    return lambda: app.is_active_session(session_id)


def follow(job: Job[T], place: DeltaGenerator) -> None:
    """Draw a job's text into a placeholder as it grows, until the work is done.

    Where the page is run again, Streamlit ends this with an exception of its own; the job goes on.
    """
    text = job.text
    while not job.done:
        place.html(text_html(escape(text) + " ▌"))
        text = job.wait(text, REDRAW_S)
    place.html(text_html(escape(job.text)))
