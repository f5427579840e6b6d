import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.documents.document import Chunk
from engine.inspection.pooling.pooling_search import rankings
from pages.improve.poolings.quality import TRUST
from pages.improve.poolings.rank_flow import flow_places, rank_flow
from pages.improve.poolings.search import WHY, passage_html
from tests.apps import app_of

NAMES = ("mean", "cls", "max", "idf", "last4", "first_last", "maxsim")


def chunks_of(n_chunks, text="passage {}", document="a.md"):
    return [Chunk(document, 100 * n, 100 * n + 50, text.format(n), n_tokens=5) for n in range(n_chunks)]


def random_rankings(n_strategies, n_chunks, k):
    values = np.random.default_rng(0).random((n_strategies, n_chunks))
    return rankings(dict(zip(NAMES, values, strict=False)), k)


@given(
    arrays(np.float32, st.tuples(st.integers(1, 7), st.integers(1, 25)), elements=st.floats(-1, 1, width=32)),
    st.integers(1, 12),
)
def test_a_line_for_each_passage_at_its_rank_or_in_the_lane_below(values, k):
    compared = rankings(dict(zip(NAMES, values, strict=False)), k)
    lines = rank_flow(compared, chunks_of(values.shape[1])).data
    assert len(lines) == len(compared.rows)
    drawn = np.array([line.y for line in lines], float).T  # (n_strategies, n_rows)
    assert np.isfinite(drawn).all()
    for places, ranks in zip(drawn, compared.ranks, strict=True):
        found = ranks <= compared.k
        assert (places[found] == ranks[found]).all()
        assert (places[~found] > compared.k).all()
        assert np.argsort(places).tolist() == np.argsort(ranks).tolist()
        assert len(set(places.tolist())) == len(places)


def test_text_and_names_of_documents_are_escaped_and_shortened():
    hostile = "<b>bold</b> <script>alert(1)</script> & " + "long words " * 100
    chunks = chunks_of(4, hostile, document="<i>x</i>.md")
    compared = random_rankings(2, 4, 2)
    shown = [about for line in rank_flow(compared, chunks).data for about in line.hovertext]
    shown += [passage_html(compared, number, chunks[row]) for number, row in enumerate(compared.rows)]
    for html in shown:
        assert "<script" not in html
        assert "<b>bold" not in html
        assert "<i>" not in html
        assert "&lt;b&gt;bold&lt;/b&gt;" in html
        assert html.count("long") < 80
    compared = rankings({"mean": np.array([0.1, 0.9, 0.5]), "cls": np.array([0.9, 0.1, 0.5])}, 1)
    assert "mean 1 · [CLS] 3" in passage_html(compared, 0, chunks_of(3)[1])


def panel():
    import streamlit as st

    from engine.documents.document import Chunk
    from pages.improve.poolings.pooled_chunks import PooledChunks
    from pages.improve.poolings.search import show_search
    from ui.models import load_encoder

    texts = ["Cats <b>chase</b> mice.", "Banks raise rates.", "A kitten sleeps.", "Rain fell all day."]
    chunks = tuple(Chunk("own.md", 0, len(text), text, n_tokens=6) for text in texts)
    encoder = load_encoder().with_idf(texts)
    pooled = PooledChunks((), chunks, encoder, encoder.encode(texts, list(encoder.poolings)), 64)
    st.session_state["returned"] = show_search(pooled)


def test_own_documents_are_ranked_but_not_judged():
    app = app_of(panel).run()
    assert app.session_state["returned"] is None
    assert any("Type a question" in info.value for info in app.info)
    app.text_input(key="pooling-question").set_value("What do kittens do?")
    app.button[0].click().run()
    app.toggle(key="pooling-maxsim").set_value(True).run()
    assert app.header[0].value == "How the ranking changes"
    app.session_state["pooling-question-part"] = WHY
    app.run()
    assert app.session_state["returned"] == ("What do kittens do?", "A kitten sleeps.")
    app.session_state["pooling-question-part"] = TRUST
    app.run()
    assert any("no ranking can be called better" in info.value for info in app.info)


def test_the_lane_keeps_the_true_rank_for_the_hover():
    compared = random_rankings(3, 200, 5)
    places, lowest = flow_places(compared)
    assert compared.ranks.max() > 50 > lowest == places.max()
    for line, figure_line in enumerate(rank_flow(compared, chunks_of(200)).data):
        for rank, score, about, number in zip(
            compared.ranks[:, line],
            compared.scores[:, line],
            figure_line.hovertext,
            figure_line.text,
            strict=True,
        ):
            assert f"rank {rank:,}, score {score:.3f}" in about
            assert number == (str(line + 1) if rank <= 5 else "")
