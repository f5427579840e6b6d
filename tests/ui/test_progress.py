from engine.wording import TimeLeft
from tests.apps import app_of


def told(clock, *reports):
    """What is said at each report, of seconds since the first one and the share done."""
    left = TimeLeft()
    words = []
    for clock[0], share in reports:
        words.append(left(share))
    return words


def test_the_rest_takes_as_long_as_the_part_before(clock):
    assert told(clock, (0, 0.0), (10, 0.25)) == ["", ", about 30 s left"]
    assert told(clock, (0, 0.0), (60, 0.5), (90, 0.75)) == ["", ", about 1 min 0 s left", ", about 30 s left"]
    assert told(clock, (0, 0.5), (10, 0.75)) == ["", ", about 10 s left"]  # what was there does not count
    # Nothing is told of short work, of work that stands still, and at the end.
    assert told(clock, (0, 0.0), (0.5, 0.5), (9, 0.0), (9, 1.0)) == [""] * 4


def test_a_bar_counts_and_is_gone_at_the_end():
    def script():
        import streamlit as st

        from ui.progress import counting

        with counting("Reading", "texts") as show:
            show(1200, 3000)
            if not st.session_state.get("ends"):
                st.stop()

    [bar] = app_of(script).run().get("progress")
    assert (bar.proto.value, bar.proto.text) == (40, "Reading: 1,200 of 3,000 texts")
    assert not app_of(script, ends=True).run().get("progress")
