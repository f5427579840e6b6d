"""The lab: the original transformer by hand, from one worked example to training."""

from collections.abc import Callable

import streamlit as st

from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.frame import require_frame
from ui.lab_seq2seq import show_seq2seq
from ui.lab_worked import show_worked_example

VIEWS: dict[str, Callable[[], None]] = {
    "The worked example": show_worked_example,
    "Learn to translate": show_seq2seq,
}


def main() -> None:
    """Draw the page."""
    require_frame("pages/lab.py")
    st.title("The lab")
    st.write("Take a transformer apart by hand: every number of it, and what happens when one changes.")
    try:
        for tab, show in zip(
            st.tabs(list(VIEWS), on_change="rerun", key="lab-tab"), VIEWS.values(), strict=True
        ):
            if not tab.open:
                continue
            with tab:
                show()
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
