"""Work in a background thread, whose text grows on the page while the page stays usable.

A page keeps its job in the session's state. Any click meanwhile runs the page again, and that run continues
to draw the job.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from time import monotonic
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import GlassboxError
from engine.wording import counted
from ui.memory import give_back_soon
from ui.text import text_html
from ui.turns import TURNS

T = TypeVar("T")

# Streamlit interrupts a run of the page only where it draws: the longest wait of a rerun while no text
# arrives, in seconds.
REDRAW_S = 0.1
WORKS_S = 2.0  # between two drawings of the work of other pages
PROGRESS_S = 1.0  # between two drawings of a job's progress
GONE_S = 5.0  # a job outlives shorter losses of its session's connection


class Job(Generic[T]):
    """Work in a background thread, which may write text and can be stopped.

    Parameters
    ----------
    work
        Called with the job at its session's turn: it writes with `write`, calls `take_turn` often, ends once
        that returns false, and returns the result. It must not draw, as only the page's own thread may.
    is_wanted
        Whether the result is still wanted; by default, whether the browser session that started the job
        is connected.
    computes
        Whether it needs the processor. A download does not: it begins at once and takes no turn of others.

    Attributes
    ----------
    text
        The text so far.
    aside
        The text so far that is no part of ``text``, such as a thought before an answer.
    first
        What a page draws above the text, None until there is something.
    done
        Whether the work has ended, also by an error.
    """

    def __init__(
        self,
        work: Callable[["Job[T]"], T],
        is_wanted: Callable[[], bool] | None = None,
        computes: bool = True,
    ) -> None:
        self._computes = computes
        self._is_wanted = session_is_open() if is_wanted is None else is_wanted
        self._session = session_name()
        self._wanted_at = monotonic()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self.text = self.aside = ""
        self.first: object = None
        self.done = False
        self._result: T
        self._error: GlassboxError | None = None
        if computes:
            TURNS.join(self._session)
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    @property
    def stopped(self) -> bool:
        """Whether the work should end: `stop` was called, or its session is gone for `GONE_S`."""
        if self._is_wanted():
            self._wanted_at = monotonic()
        elif monotonic() - self._wanted_at > GONE_S:
            self.stop()
        return self._stop.is_set()

    @property
    def n_before(self) -> int:
        """How many other sessions work before this job begins or continues."""
        return TURNS.n_before(self._session) if self._computes and not self.done else 0

    def take_turn(self) -> bool:
        """Wait for the session's turn at the processor; return whether the work should go on."""
        if self._computes:
            TURNS.wait(self._session, lambda: not self.stopped)
        return not self.stopped

    def stop(self) -> None:
        """Request the end of the work; its text so far stays."""
        self._stop.set()

    def write(self, text: str) -> None:
        """Append to the text and wake the threads in `wait`."""
        with self._changed:
            self.text += text
            self._changed.notify_all()

    def write_aside(self, text: str) -> None:
        """Append to `aside`."""
        self.aside += text

    def show_first(self, value: object) -> None:
        """Set what a page draws above the text."""
        self.first = value

    def wait(self, seen: str = "", seconds: float | None = None) -> str:
        """Return the text once it is longer than ``seen``, the work is done, or ``seconds`` have passed."""
        with self._changed:
            self._changed.wait_for(lambda: self.done or len(self.text) > len(seen), seconds)
            return self.text

    def result(self) -> T:
        """Wait for the work to end, and return its result.

        Raises
        ------
        GlassboxError
            The error that ended the work; other exceptions are logged and replaced by one.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.done)
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, work: Callable[["Job[T]"], T]) -> None:
        try:
            self.take_turn()
            self._result = work(self)
        except GlassboxError as error:
            self._error = error
        except Exception as error:
            logging.getLogger(__name__).exception("a job failed")
            self._error = GlassboxError(
                f"unexpected failure ({type(error).__name__}: {error}): try again, "
                "with other settings if it fails again; the log has the details"
            )
        finally:
            if self._computes:
                TURNS.leave(self._session)
            with self._changed:
                self.done = True
                self._changed.notify_all()
            give_back_soon()


def session_name() -> str:
    """Return the identifier of this page's browser session, that of the thread where there is none."""
    context = get_script_run_ctx()
    return f"thread-{threading.get_ident()}" if context is None else context.session_id


def place_in_line(job: Job[Any]) -> str:
    """``waiting for 2 other visitors``, empty where it is the job's turn."""
    n_before = job.n_before
    return f"waiting for {counted(n_before, 'other visitor')}" if n_before else ""


def session_is_open() -> Callable[[], bool]:
    """Return a function that is true while the browser session of this page is connected."""
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return lambda: True
    session_id, app = context.session_id, runtime.get_instance()
    return lambda: app.is_active_session(session_id)


def follow(
    job: Job[T],
    place: DeltaGenerator,
    draw_first: Callable[[Any], None] | None = None,
    draw_aside: Callable[[str], None] | None = None,
) -> None:
    """Draw a job's text into a placeholder as it grows, until the work is done.

    A rerun of the page ends this by an exception of Streamlit's; the job continues.

    Parameters
    ----------
    job, place
        The work and the placeholder.
    draw_first
        Called once with `Job.first`, as soon as there is one.
    draw_aside
        Called with `Job.aside` each time it has grown.
    """
    text, aside = job.text, ""
    while not job.done:
        if draw_first is not None and job.first is not None:
            draw_first(job.first)
            draw_first = None
        if draw_aside is not None and job.aside != aside:
            aside = job.aside
            draw_aside(aside)
        place.html(text_html(escape(" · ".join(filter(None, (text, place_in_line(job))))) + " ▌"))
        text = job.wait(text, REDRAW_S)
    place.html(text_html(escape(job.text)))


@dataclass(frozen=True)
class PageWork:
    """A job that goes on while its user is on other pages; ``share`` returns how much of it is done."""

    page: str
    job: Job[Any]
    share: Callable[[], float]

    @property
    def address(self) -> str:
        """The address of the page."""
        return self.page.split("/")[-1]


def announce(page: str, job: Job[Any], share: Callable[[], float]) -> None:
    """Have a job of a page, by its folder, shown on all other pages until it is looked at after its end."""
    works: dict[str, PageWork] = st.session_state.setdefault("page-works", {})
    works[page] = PageWork(page, job, share)


def show_page_works(address: str) -> None:
    """Draw the work of all pages but the one at an address, with links to them."""
    works: dict[str, PageWork] = st.session_state.get("page-works", {})
    for page in [page for page, work in works.items() if work.address == address and work.job.done]:
        del works[page]  # it is looked at now
    if others := [work for work in works.values() if work.address != address]:
        runs = any(not work.job.done for work in others)
        st.fragment(draw_page_works, run_every=WORKS_S if runs else None)(others)


def draw_page_works(works: Sequence[PageWork]) -> None:
    """Draw a link to the page of each work, with how much of it is done."""
    for work in works:
        done = work.job.done
        st.page_link(
            f"pages/{work.page}/page.py",
            icon=":material/check_circle:" if done else ":material/progress_activity:",
            help="It has ended: see what came of it." if done else "It goes on while you are on other pages.",
            width="stretch",
        )
        if not done:
            st.progress(min(work.share(), 1.0))


def follow_progress(
    job: Job[Any],
    progress: Callable[[], tuple[float, str]],
    key: str,
    stop_help: str,
    note: str = "",
    is_narrow: bool = False,
) -> None:
    """Draw a bar and a Stop button that are updated every second; when the job ends, rerun the page.

    Parameters
    ----------
    job
        The work.
    progress
        Returns the share of the work that is done, and the text beside the bar, as Markdown.
    key
        Prefix of the widgets' keys: the box is ``{key}-progress``, the button ``{key}-stop``.
    stop_help
        What stopping does.
    note
        A line below the bar.
    is_narrow
        Whether the button stands below the bar, as in the sidebar.
    """

    @st.fragment(run_every=PROGRESS_S)
    def draw() -> None:
        if job.done:
            st.rerun()
        share, words = progress()
        with st.container(border=True, key=f"{key}-progress"):
            if is_narrow:
                bar, button = st.container(), st.container()
            else:
                bar, button = st.columns([5, 1], vertical_alignment="center")
            bar.progress(min(share, 1.0), " · ".join(filter(None, (words, place_in_line(job)))))
            button.button(
                "Stopping…" if job.stopped else "Stop",
                key=f"{key}-stop",
                icon=":material/stop_circle:",
                disabled=job.stopped,
                on_click=job.stop,
                width="stretch",
                help=stop_help,
            )
            if note:
                st.caption(note)

    draw()
