"""Choices and sliders whose value lasts for the browser session, and parts of a page that can rerun."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from mimetypes import guess_type
from typing import Any, Literal, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassboxError, InputError
from ui.text import escape_markdown, show_error

T = TypeVar("T")
P = ParamSpec("P")
MOST_QUESTION = 2_000  # characters
SHORT_CPU_S = 5.0  # of work that opening a page or a tab may start


def kept(key: str) -> dict[str, Any]:
    """Return the arguments of a widget whose value lasts for the browser session, on all pages."""
    return {"key": key, "persist_state": "session"}


def choice(
    label: str,
    options: Sequence[T],
    key: str,
    help: str | None = None,
    default: T | None = None,
    format_func: Callable[[T], str] | None = None,
    disabled: bool = False,
    place: DeltaGenerator | None = None,
    label_visibility: Literal["visible", "collapsed"] = "visible",
    as_list: bool = False,
) -> T:
    """Draw a row of buttons, or a list; one is chosen: the first unless there is a ``default``."""
    if as_list:
        index = 0 if default is None else options.index(default)
        return (place or st).selectbox(
            label, options, index, format_func=format_func or str, **kept(key), help=help, disabled=disabled
        )
    return (place or st).segmented_control(
        label,
        options,
        default=options[0] if default is None else default,
        required=True,
        format_func=format_func,
        **kept(key),
        disabled=disabled,
        help=help,
        label_visibility=label_visibility,
    )


def chapters(
    names: Sequence[T],
    key: str,
    default: T | None = None,
    format_func: Callable[[T], str] | None = None,
    label: str = "Chapter",
) -> T:
    """Draw a row of buttons, each for a chapter of a long page; return the open one, kept for the session."""
    with st.container(key=f"chapters-{key}"):
        return choice(
            label, names, key, default=default, format_func=format_func, label_visibility="collapsed"
        )


def show_tabs(views: Mapping[str, Callable[[], None]], key: str) -> None:
    """Draw a tab for each view, by their labels; only the view of the open tab is drawn.

    A link can name a tab that is not there: the first is open then, and a line says so.
    """
    if (named := st.session_state.get(key)) not in (None, *views):
        st.info(f"This page has no tab “{escape_markdown(str(named))}”: the first one is open.")
    for tab, show in zip(st.tabs(list(views), on_change="rerun", key=key), views.values(), strict=True):
        if tab.open:
            with tab:
                show()


def example_choice(
    examples: Sequence[str],
    key: str,
    load: Callable[[str], None],
    label: str = "Try one",
    help: str | None = None,
    as_list: bool = False,
) -> None:
    """Draw examples, as pills or as a list; a picked one is passed to ``load`` and no longer picked."""

    def load_picked() -> None:
        if picked := st.session_state[key]:
            st.session_state[key] = None
            load(picked)

    if as_list:
        st.selectbox(
            label, examples, index=None, placeholder="Examples", key=key, on_change=load_picked, help=help
        )
    else:
        st.pills(label, examples, key=key, on_change=load_picked, help=help)


def show_metrics(figures: Mapping[str, tuple[str, str | None, str]], border: bool = False) -> None:
    """Draw values in a row by their labels, each with its change, if any, and its meaning."""
    with st.container(horizontal=True):
        for label, (value, change, meaning) in figures.items():
            st.metric(label, value, change, help=meaning, border=border, width="content")


def download(
    label: str,
    content: bytes | str | Callable[[], bytes | str],
    file: str,
    help: str | None = None,
    key: str | None = None,
    type: Literal["primary", "secondary", "tertiary"] = "secondary",
    place: DeltaGenerator | None = None,
) -> None:
    """Draw the download of a file, which reruns nothing; a function gives its content when it is clicked."""
    (place or st).download_button(
        label,
        content,
        file,
        guess_type(file)[0] or "application/octet-stream",
        key=key or f"download-{file}",
        help=help,
        type=type,
        icon=":material/download:",
        on_click="ignore",
    )


def more_options() -> DeltaGenerator:
    """Draw the button behind which the rarer controls of a page are."""
    return st.popover("More options", icon=":material/tune:", type="tertiary")


def slider(
    label: str,
    options: range | Sequence[float],
    default: float,
    key: str,
    help: str,
    disabled: bool = False,
    place: DeltaGenerator | None = None,
) -> Any:
    """Draw a slider over ``options``, which may be values; a single one is returned without a slider."""
    if len(options) == 1:
        return options[0]
    shared = kept(key) | {"disabled": disabled, "help": help}
    if isinstance(options, range):
        return (place or st).slider(label, options.start, options[-1], int(default), options.step, **shared)
    return (place or st).select_slider(label, options, default, format_func="{:g}".format, **shared)


def check_typed(text: str, most: int) -> str:
    """Return what was typed or pasted into a box; raise `InputError` if it has more than ``most`` characters.

    With a limit of the box itself, Streamlit would drop a longer text that is pasted, without a word.
    """
    if len(text) > most:
        raise InputError(f"this text has {len(text):,} characters, and {most:,} are read: give a shorter one")
    return text


def fragment(draw: Callable[P, None]) -> Callable[P, None]:
    """Rerun only a part of a page when its widgets change, and show its errors in its place."""

    @st.fragment
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            draw(*args, **kwargs)
        except GlassboxError as error:
            show_error(error)

    return drawn
