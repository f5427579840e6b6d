"""The KV cache at work on the session's last answer."""

import streamlit as st

from pages.inside.cache.kv_cache import show_cache
from ui.asking import last_answer, reason_unavailable
from ui.models import load_decoder

answer = last_answer()
if answer is None or answer.written is None:
    st.info(
        "Ask a question, and have a language model write the answer in sentences: the cache of that text is "
        "measured here."
    )
    if st.button("Ask a question", icon=":material/arrow_forward:"):
        st.switch_page("pages/inside/answer/page.py")
elif reason := reason_unavailable(answer.written, load_decoder()):
    st.info(reason, icon=":material/lock:")
else:
    show_cache(answer.written, answer.timed.writing)
