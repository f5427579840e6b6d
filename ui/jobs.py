"""Work in a background thread, whose text and results grow on the page while the page stays usable.

A session keeps its jobs by name: `start_job` begins one, `current_job` returns it. Any click meanwhile runs
the page again, and that run continues to draw the job.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from html import escape
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import GlassboxError
from engine.memory import give_back_soon
from engine.wording import TimeLeft, counted
from ui.text import text_html
from ui.turns import TURNS

T = TypeVar("T")

# Streamlit interrupts a run of the page only where it draws: the longest wait of a rerun while no text
# arrives, in seconds.
REDRAW_S = 0.1
WORKS_S = 2.0  # between two drawings of the work of other pages
PROGRESS_S = 1.0  # between two drawings of a job's progress
GONE_S = 5.0  # a job outlives shorter losses of its session's connection
RELOAD_S = 60.0  # and shared work these: after a reload, all documents are read first
ENOUGH = 0.1  # share of some work that tells how long all of it takes
MACHINE = "machine"  # the kind of work by which others are foreseen that were not done here
# Of all sessions: by kind of work, the seconds that it took here over those of the machine that the estimates
# were measured on.
_taken: dict[str, float] = {}
_shared: WeakValueDictionary[object, "Job[Any]"] = WeakValueDictionary()
_shared_lock = threading.Lock()


def foreseen(kind: str, seconds: float) -> float:
    """Return the seconds that a kind of work takes on this machine, by what such work took before."""
    return seconds * _taken.get(kind, _taken.get(MACHINE, 1.0))


def learn(kind: str, seconds: float, taken: float) -> None:
    """Note how long work took that takes some seconds on the machine of the estimates."""
    _taken[kind] = taken / seconds


class StoppedError(Exception):
    """The work of a job was stopped between two steps."""


class Job(Generic[T]):
    """Work in a background thread, which may write text and can be stopped.

    ``work`` is called with the job at its session's turn: it writes with `write`, calls `take_turn` often,
    ends once that returns false, and returns the result. It must not draw, as only the page's own thread may.
    It is wanted as long as ``is_wanted`` says so, by default while the browser session that started it is
    connected, and ``gone_s`` longer, `GONE_S` for None. A download, which needs no processor, ``computes``
    nothing and takes no turn of others; ``urgent`` work, the answer to a question, goes before all other.
    ``request`` is what the work is for, ``page`` the folder of the page that draws it, to which other pages
    show a link, and ``rows`` are results of an earlier job that this one continues. ``cost`` is a kind of
    work and its seconds as `foreseen` takes them, for later estimates.
    """

    def __init__(
        self,
        work: Callable[["Job[T]"], T],
        is_wanted: Callable[[], bool] | None = None,
        computes: bool = True,
        urgent: bool = False,
        gone_s: float | None = None,
        request: Any = None,
        page: str = "",
        rows: Iterable[Any] = (),
        cost: tuple[str, float] | None = None,
    ) -> None:
        self._cost = cost
        self.request, self.page = request, page
        self.rows = list(rows)  # the results so far, to which the work appends
        self.share, self.words = 0.0, "Starting…"  # how much of the work is done, as `report` said
        self._first_share = 1.0  # that is done before this job
        self.is_seen = False  # whether its page was drawn after its end
        self._time_left = TimeLeft()
        self._computes, self._urgent = computes, urgent
        self._gone_s = GONE_S if gone_s is None else gone_s
        self._wanted_by = [session_is_open() if is_wanted is None else is_wanted]
        context = get_script_run_ctx()
        self._session = f"thread-{threading.get_ident()}" if context is None else context.session_id
        self._wanted_at = monotonic()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self.text = self.aside = ""  # so far; aside is what is no part of the text, such as a thought
        self.first: object = None  # what a page draws above the text
        self.done = False  # also after an error
        self._result: T
        self._error: GlassboxError | None = None
        if computes:
            TURNS.join(self._session, urgent)
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    @property
    def stopped(self) -> bool:
        """Whether the work should end: `stop` was called, or nobody wants it any more."""
        if any(is_wanted() for is_wanted in self._wanted_by):
            self._wanted_at = monotonic()
        elif monotonic() - self._wanted_at > self._gone_s:
            self.stop()
        return self._stop.is_set()

    def want(self) -> None:
        """Have the work go on as long as this page's session is connected, too."""
        self._wanted_by.append(session_is_open())

    @property
    def n_before(self) -> int:
        """How many other sessions work before this job begins or continues."""
        return TURNS.n_before(self._session, self._urgent) if self._computes and not self.done else 0

    def take_turn(self) -> bool:
        """Wait for the session's turn at the processor; return whether the work should go on."""
        if self._computes:
            TURNS.wait(self._session, lambda: not self.stopped, self._urgent)
        return not self.stopped

    def stop(self) -> None:
        """Request the end of the work; its text so far stays."""
        self._stop.set()

    def report(self, done: float, total: float, words: str) -> None:
        """Record how much of the work is done; ``words`` say it, and the time left is added to them."""
        self.share = min(done / max(1, total), 1.0)
        self._first_share = min(self._first_share, self.share)
        self.words = words + self._time_left(self.share)

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

    @property
    def error(self) -> str:
        """The message of the error that ended the work; empty where none did, or while it goes on."""
        return str(self._error or "")

    def result(self) -> T:
        """Wait for the work to end; return its result, or raise the error that ended it, fit to show."""
        with self._changed:
            self._changed.wait_for(lambda: self.done)
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, work: Callable[["Job[T]"], T]) -> None:
        try:
            self.take_turn()
            begun = monotonic()
            self._result = work(self)
            left = max(1 - self._first_share, 1e-9)  # when the work began
            share = (self.share - self._first_share) / left if self.stopped else 1.0
            if self._cost is not None and share > ENOUGH:
                kind, seconds = self._cost
                learn(kind, seconds * share, monotonic() - begun)
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
                TURNS.leave(self._session, self._urgent)
            with self._changed:
                self.done = True
                self._changed.notify_all()
            give_back_soon()


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
    """Draw a job's text, and what it writes aside, as they grow, below what comes first, until it is done.

    A rerun of the page ends this by an exception of Streamlit's; the job continues.
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


def session_jobs() -> dict[str, Job[Any]]:
    """Return the session's jobs by their names, running or ended."""
    jobs: dict[str, Job[Any]] = st.session_state.setdefault("jobs", {})
    return jobs


def adopted_job(name: str, key: object) -> Job[Any] | None:
    """Make a running job that is shared by a key this session's, too, by a name; None without one."""
    with _shared_lock:
        job = _shared.get(key)
    if job is None or job.done or job.stopped:
        return None
    job.want()
    session_jobs()[name] = job
    return job


def start_job(name: str, work: Callable[[Job[T]], T], shared: object = None, **options: Any) -> Job[T]:
    """Start the session's job of a name, with options of `Job`; the one before it is stopped and dropped.

    Other sessions find it by a ``shared`` key, as one does after a reload.
    """
    drop_job(name)
    job = Job(work, gone_s=GONE_S if shared is None else RELOAD_S, **options)
    session_jobs()[name] = job
    if shared is not None:
        with _shared_lock:
            _shared[shared] = job
    return job


def current_job(name: str, request: object = None) -> Job[Any] | None:
    """Return the session's job of a name, None where there is none; with a request, one that is for it."""
    job = session_jobs().get(name)
    return job if job is not None and request in (None, job.request) else None


def drop_job(name: str) -> None:
    """Stop the session's job of a name, and drop its result."""
    if (job := session_jobs().pop(name, None)) is not None:
        job.stop()


def show_page_works(address: str) -> None:
    """Draw links to the pages of jobs that go on, or have ended unseen, but for the page at an address."""
    jobs = [job for job in session_jobs().values() if job.page]
    for job in jobs:
        job.is_seen = job.is_seen or (job.done and address_of(job) == address)
    others = {job.page: job for job in jobs if address_of(job) != address and not job.is_seen}
    if others:
        runs = any(not job.done for job in others.values())
        st.fragment(draw_page_works, run_every=WORKS_S if runs else None)([*others.values()])


def address_of(job: Job[Any]) -> str:
    """Return the address of a job's page."""
    return job.page.split("/")[-1]


def draw_page_works(jobs: Sequence[Job[Any]]) -> None:
    """Draw a link to the page of each job, with how much of it is done."""
    for job in jobs:
        st.page_link(
            f"pages/{job.page}/page.py",
            icon=":material/check_circle:" if job.done else ":material/progress_activity:",
            help="It has ended: see what came of it."
            if job.done
            else "It goes on while you are on other pages.",
            width="stretch",
        )
        if not job.done:
            st.progress(job.share)


def follow_progress(
    job: Job[Any], key: str, stop_help: str, note: str = "", is_narrow: bool = False, is_awaited: bool = False
) -> None:
    """Draw a bar and a Stop button that are updated every second; when the job ends, rerun the page.

    The button stands below the bar where there ``is_narrow`` room; ``note`` is a line below both.
    Where a result ``is_awaited``, the page is run again once that is there, too.
    """
    n_rows = len(job.rows)

    @st.fragment(run_every=PROGRESS_S)
    def draw() -> None:
        if job.done or (is_awaited and len(job.rows) > n_rows):
            st.rerun()
        with st.container(border=True, key=f"{key}-progress"):
            if is_narrow:
                bar, button = st.container(), st.container()
            else:
                bar, button = st.columns([5, 1], vertical_alignment="center")
            bar.progress(job.share, " · ".join(filter(None, (job.words, place_in_line(job)))))
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
