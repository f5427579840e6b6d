import json

import pytest

from engine.errors import InputError
from tests.apps import app_of
from ui.widgets import check_typed

SCRIPT = """
import streamlit as st
from ui.widgets import choice, slider
st.json({
    "first": choice("First", ["a", "b"], "first"),
    "last": choice("Last", range(3), "last", default=2, format_func=lambda number: f"number {number}"),
    "range": slider("Range", range(100, 301, 100), 200, "range", "A range."),
    "stops": slider("Stops", (0.001, 0.5, 1.0), 0.5, "stops", "Some values."),
    "single": slider("Head", range(1), 0, "single", "Of a model with one head."),
})
"""


def test_a_choice_starts_at_its_default_and_a_slider_returns_one_of_its_values():
    app = app_of(SCRIPT).run()
    assert json.loads(app.json[0].value) == {"first": "a", "last": 2, "range": 200, "stops": 0.5, "single": 0}
    assert (app.slider[0].min, app.slider[0].max, app.slider[0].step) == (100, 300, 100)
    assert app.select_slider[0].options == ["0.001", "0.5", "1"]
    app.segmented_control(key="first").set_value("b")
    app.select_slider(key="stops").set_value(1.0)
    app.run()
    assert json.loads(app.json[0].value) == {"first": "b", "last": 2, "range": 200, "stops": 1.0, "single": 0}


def test_an_error_in_a_part_that_reruns_alone_is_shown_in_its_place():
    def page():
        import streamlit as st

        from engine.errors import InputError
        from ui.widgets import fragment

        @fragment
        def show(limit):
            number = st.number_input("Number", value=0)
            if number > limit:
                raise InputError(f"*{number}* is above {limit}")

        show(3)
        st.caption("below")

    app = app_of(page).run()
    assert not app.error
    app.number_input[0].set_value(4).run()
    assert [error.value for error in app.error] == [r"\*4\* is above 3"]
    assert app.caption[0].value == "below"


def test_a_text_that_is_too_long_is_told_with_both_numbers():
    assert check_typed("a" * 2_000, 2_000) == "a" * 2_000
    with pytest.raises(InputError, match="this text has 2,001 characters, and 2,000 are read"):
        check_typed("a" * 2_001, 2_000)


def test_a_link_to_a_tab_that_is_not_there_opens_the_first_and_says_so():
    def page():
        import streamlit as st

        from ui.widgets import show_tabs

        show_tabs({name: (lambda name=name: st.write(name)) for name in ("Here", "There")}, "tab")

    app = app_of(page, tab="Geometry").run()
    assert "no tab “Geometry”" in app.info[0].value
    assert [text.value for text in app.markdown] == ["Here"]
    assert not app.run().info


def test_a_picked_example_is_loaded_and_no_longer_picked():
    def page():
        import streamlit as st

        from ui.widgets import example_choice

        for key, as_list in (("pills", False), ("list", True)):
            load = lambda text, key=key: st.session_state.update({f"{key}-box": text})  # noqa: E731
            example_choice(["one", "two"], key, load, as_list=as_list)

    app = app_of(page).run()
    app.pills(key="pills").set_value("two")
    app.selectbox(key="list").set_value("one").run()
    assert (app.session_state["pills-box"], app.session_state["list-box"]) == ("two", "one")
    assert app.session_state["pills"] is app.session_state["list"] is None


def test_long_work_begins_at_a_button_with_its_price_and_short_work_by_itself(monkeypatch):
    monkeypatch.setattr("ui.background.n_cores", lambda: 2)
    monkeypatch.setattr("ui.jobs._taken", {})
    script = """
import streamlit as st
from ui.background import in_background

def count(report):
    report(1, 2)
    return n

n = st.session_state["n"]
short = in_background("short", "Count", n, 2.0, "documents", count)
st.json([short, in_background("long", "Compare", n, 120.0, "documents", count)])
"""
    app = app_of(script, n=1).run()
    assert json.loads(app.json[0].value) == [1, None]
    assert app.button[0].label == "Compare · about 2 min 0 s"
    app.button[0].click().run()
    while json.loads(app.json[0].value) != [1, 1]:
        app.run()
    app.session_state["n"] = 2  # other work
    assert json.loads(app.run().json[0].value) == [2, None]
