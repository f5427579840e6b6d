"""The conversation on the page: what a follow-up was read as, the turns before it, and a new topic."""

from collections.abc import Sequence

import streamlit as st

from engine.generation.conversation import Turn
from ui.asking import Asked, conversation, end_topic, queue_question
from ui.text import escape_markdown

READ_AS_HELP = (
    "By itself your question is much further from the documents than with the words of the conversation's "
    "topic, so these were added. Change the question if it was read wrongly."
)
TOPIC_HELP = (
    "A question that needs the topic of the conversation, such as “And in 2016?”, is read with it. One that "
    "is complete stands alone."
)


def show_follow_up(asked: Asked) -> None:
    """Show the question that a follow-up was read as, to be changed, and offer to answer it as typed."""
    if asked.question == asked.typed:
        return
    with st.form("follow-up-form", border=True):
        box, change, alone = st.columns([4, 1, 1], vertical_alignment="bottom")
        read_as = box.text_input(
            "Read as a follow-up:", asked.question, key=f"read-as-{asked.question}", help=READ_AS_HELP
        )
        if change.form_submit_button("Ask this", width="stretch") and read_as.strip():
            queue_question(read_as, asked.turns)
            st.rerun()
        if alone.form_submit_button("As typed", width="stretch"):
            queue_question(asked.typed, ())
            st.rerun()


def show_conversation(earlier: Sequence[Turn]) -> None:
    """List the turns that an answer follows on, with a button to start a new topic."""
    if earlier:
        with st.expander(f"Earlier in this conversation: {len(earlier)}", icon=":material/forum:"):
            for turn in earlier:
                st.markdown(f"**{escape_markdown(turn.question)}**")
                st.caption(escape_markdown(turn.answer) or "Refused.")
    with st.container(horizontal=True, vertical_alignment="center"):
        if conversation():
            st.caption("The next question may follow on this one.", help=TOPIC_HELP)
            st.button("New topic", type="tertiary", icon=":material/restart_alt:", on_click=end_topic)
        else:
            st.caption("The next question starts a new topic.")
