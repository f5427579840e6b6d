"""Functions, scripts and pages of the app in Streamlit's test harness, with a state, not run yet."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent
PATIENCE = 300  # seconds that one run of a script may take; one that is done sooner is not waited for


def app_of(script, args=(), kwargs=None, **state):
    """A function that draws, or the source of a script."""
    if isinstance(script, str):
        return with_state(AppTest.from_string(script, default_timeout=PATIENCE), state)
    app = AppTest.from_function(script, args=args, kwargs=kwargs, default_timeout=PATIENCE)
    return with_state(app, state)


def app_page(folder, **state):
    """A page by its folder, without the frame that streamlit_app.py draws around it."""
    return app_file(f"pages/{folder}/page.py", **state)


def app_file(path="streamlit_app.py", **state):
    """A script by its path; by default the whole app."""
    return with_state(AppTest.from_file(str(ROOT / path), default_timeout=PATIENCE), state)


def with_state(app, state):
    for key, value in state.items():
        app.session_state[key] = value
    return app


def said(app):
    """All sentences on a page on which nothing went wrong."""
    assert not app.exception
    parts = (*app.markdown, *app.warning, *app.success, *app.info, *app.error, *app.caption)
    return "\n".join(part.value for part in parts)
