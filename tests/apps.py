"""Functions, scripts and pages of the app in Streamlit's test harness, with a state, not run yet."""

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent
# Every harness would read the metadata of all installed packages anew, to find components in them.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
run_script = AppTest._run
DIALOGS = 2  # place of the dialogs after main page and sidebar
OPENED = []  # apps, and the test that each was opened in
PATIENCE = 300  # seconds that one run of a script may take; one that is done sooner is not waited for


def run_without_exception(app, *arguments, **settings):
    """Run a script, and fail where it ends by an exception, which the harness would only draw."""
    run_script(app, *arguments, **settings)
    assert not app.exception, "the script ended by an exception: its traceback is in the captured output"
    return app


AppTest._run = run_without_exception


def app_of(script, args=(), kwargs=None, **state):
    """A function that draws, or the source of a script."""
    if isinstance(script, str):
        return with_state(AppTest.from_string(script, default_timeout=PATIENCE), state)
    app = AppTest.from_function(script, args=args, kwargs=kwargs, default_timeout=PATIENCE)
    return with_state(app, state)


def app_page(folder, **state):
    """A page by its folder, without the frame that ui/frame.py draws around it."""
    return app_file(f"pages/{folder}/page.py", **state)


def app_file(path="streamlit_app.py", **state):
    """A script by its path; by default the whole app."""
    return with_state(AppTest.from_file(str(ROOT / path), default_timeout=PATIENCE), state)


def app_within(folder, **state):
    """A page within the whole app, which draws the errors of pages; already run."""
    return app_file(**state).run().switch_page(f"pages/{folder}/page.py").run()


def own_documents(*documents):
    """State of a session that searches only these documents of its own."""
    names = [document.name for document in documents]
    return {"uploads": {document.name: (document,) for document in documents}, "searched": names}


def with_state(app, state):
    test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    for earlier, its_test in list(OPENED):
        if its_test != test:  # its session has ended, and its work with it
            OPENED.remove((earlier, its_test))
            if "jobs" in earlier.session_state:
                for job in earlier.session_state["jobs"].values():
                    job.stop()
    OPENED.append((app, test))
    for key, value in state.items():
        app.session_state[key] = value
    return app


def said(app):
    """All sentences on a page."""
    parts = (*app.markdown, *app.warning, *app.success, *app.info, *app.error, *app.caption)
    return "\n".join(part.value for part in parts)


def plain(markdown):
    """Escaped Markdown as it reads on the page."""
    return re.sub(r"\\(.)", r"\1", markdown)


def html_of(app):
    """All HTML on a page."""
    return "".join(part.proto.body for part in app.get("html"))


def by_label(elements, label):
    """The only one of some elements that has a label."""
    [found] = [element for element in elements if element.label == label]
    return found


class Cells(HTMLParser):
    """The text of the cells of each row of a table."""

    def __init__(self, html):
        super().__init__()
        self.rows = []
        self.is_open = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = self.is_open and tag not in ("th", "td")

    def handle_data(self, data):
        if self.is_open:
            self.rows[-1][-1] += data


def tables(app):
    """The tables on a page in their order, long or short; in short ones numbers are as exact as shown."""
    dialogs = app._tree.children.get(DIALOGS, ())
    found = []
    for element in (*app.main, *dialogs):
        if element.type == "dataframe":
            found.append(element.value)
        elif element.type == "html" and "<table><caption>" in element.proto.body:
            names, *rows = Cells(element.proto.body).rows
            columns = zip(*rows, strict=True)
            found.append(pd.DataFrame(dict(zip(names, map(numbers, columns), strict=True))))
    return found


def numbers(column):
    """A column as numbers, where all of it are."""
    try:
        return pd.to_numeric([text.replace(",", "").removesuffix("%") for text in column])
    except ValueError:
        return list(column)
