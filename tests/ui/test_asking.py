from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from engine.documents.document import Chunk
from engine.generation.answering import Timings
from engine.generation.sampling import Sampling
from engine.retrieval.background import background_of
from engine.retrieval.index import build_index
from ui.figures import timing_figure

QUESTION = "When was the Vardholm tower finished?"
# Words find the first, vectors the second.
TEXTS = (
    "Vardholm bread: when it is finished, and finished it is when brown, take it out.",
    "The building of the tower came to its end in 1891.",
)


def page():
    import streamlit as st

    from ui.asking import start_answer

    state = st.session_state
    start_answer(state["asked"], state["index"], state["background"], state["settings"])
    state["answer"] = state["answer_job"].result()


@pytest.mark.parametrize(("retriever", "expand", "first"), [("dense", False, 1), ("bm25", True, 0)])
def test_an_answer_is_searched_for_as_the_sidebar_says(encoder, decoder, retriever, expand, first):
    index = build_index([Chunk("d.md", n, n + 1, text, 20) for n, text in enumerate(TEXTS)], encoder)
    app = AppTest.from_function(page, default_timeout=60)
    app.session_state["asked"], app.session_state["index"] = QUESTION, index
    app.session_state["background"] = background_of(index, encoder)
    app.session_state["settings"] = SimpleNamespace(
        retriever=retriever,
        expand=expand,
        k=2,
        min_relevance=0,
        max_prompt_tokens=512,
        max_new_tokens=2,
        sampling=Sampling(),
        seed=None,
    )
    app.run()
    assert not app.exception
    answer = app.session_state["answer"]
    assert answer.retriever == retriever
    assert answer.hits[0].chunk.text == TEXTS[first]
    assert (answer.searched_for is not None) is expand


def test_expanding_a_question_is_a_stage_of_its_own_before_the_others():
    [bars] = timing_figure(Timings(0.1, 0.2, 0.3, expand_s=2.0)).data
    assert (bars.y[0], bars.x[0]) == ("Expand question", 2.0)
    [plain] = timing_figure(Timings(0.1, 0.2, 0.3)).data
    assert tuple(plain.y) == tuple(bars.y[1:])
    assert tuple(plain.marker.color) == tuple(bars.marker.color[1:])
