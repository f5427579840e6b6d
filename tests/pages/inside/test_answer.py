import re
from functools import partial
from html import unescape

import numpy as np
import pytest

from engine.documents.document import Document
from engine.generation.attribution import Support
from engine.generation.cache_cost import CacheCost
from engine.generation.generated_token import Candidate, GeneratedToken
from engine.inspection.model.positions import score_by_distance
from engine.inspection.model.reading import answer_tokens, best_words
from engine.models.reader import Reader
from pages.inside.answer.attribution import badges
from pages.inside.answer.figures import candidate_bars, certainty_figure, sentence_map
from pages.inside.answer.tokens import branch_html, code, token_label
from pages.inside.cache.kv_cache import cache_figure, measured_lengths
from pages.inside.positions.positions import positions_figure
from tests.apps import app_of, app_page, html_of, own_documents, plain, said, tables
from ui.models import shared_reader
from ui.reading import painted_scores


def visible(html):
    return unescape(re.sub(r"</?(del|ins|b|span)\b[^>]*>", "", html))


def test_a_branch_frames_its_first_token_and_escapes_all():
    html = branch_html(["<i>", "a", " <b>", "& c"], 2)
    assert visible(html) == "<i>a <b>& c"
    assert re.search(r'<b style="outline[^"]*"> &lt;b&gt;</b>', html)
    assert "<i>" not in html


def step(token_id=1, text="a", reason=None):
    return GeneratedToken(token_id, text, -0.5, reason)


def test_tokens_show_their_white_space_and_the_end():
    labels = [token_label(step(text=text)) for text in (" Paris", "\n", "")]
    assert labels == ["␣Paris", "↵", "…"]  # the last is the beginning of a character
    assert token_label(step(text="", reason="stop")) == "■ end"
    assert "`" not in code(Candidate(1, "`*b*`", 0.1, 0.0))


def test_marks_tell_three_kinds_of_sentences_apart():
    assert "[2]" in badges(Support((2, 3), True))
    assert "[3]" in badges(Support((2, 3), True))
    assert "several passages together" in badges(Support((), True))
    assert "rests on no passage" in badges(Support((), False))


def test_certainty_shows_both_measures_and_the_chosen_token():
    figure = certainty_figure(["<b>", "b"], [0.25, 1.0], [2.0, 0.0], chosen=0)
    bars, line = figure.data
    assert list(bars.y) == [0.25, 1.0]
    assert list(line.y) == [2.0, 0.0]
    assert list(bars.x) == ["0 &lt;b&gt;", "1 b"]
    assert bars.marker.color[0] != bars.marker.color[1]


def test_candidates_show_what_the_model_gives_and_what_the_sampler_makes_of_it():
    candidates = [Candidate(5, " <i>", 0.4, 0.0), Candidate(9, "b", 0.3, 1.0)]
    probability, chance = candidate_bars(candidates, chosen=9).data
    assert list(probability.x) == [0.4, 0.3]
    assert list(chance.x) == [0.0, 1.0]
    assert list(chance.y) == ["1. ␣&lt;i&gt;", "<b>2. b ◂</b>"]


def test_maps_have_0_in_the_middle_and_costs_are_drawn_in_milliseconds():
    shares = sentence_map(np.array([[0.1, 0.3]]), ["S1"], ["[1]", "[2]"], are_shares=True).data[0]
    np.testing.assert_array_equal(shares.z, [[0.1, 0.3]])
    falls = sentence_map(np.array([[-0.2, 1.5]]), ["S1"], ["[1]", "all"], are_shares=False).data[0]
    assert (falls.zmin, falls.zmax) == (-1.5, 1.5)
    without, cached = cache_figure(CacheCost((16, 64), (0.01, 0.02), (0.1, 0.4))).data
    assert list(without.y) == [100, 400]
    assert list(cached.y) == [10, 20]


def test_positions_have_a_line_each_and_a_band_where_the_distance_is_not_all():
    learned, sinusoidal, rope, alibi = score_by_distance(16, 32, 4)
    assert len(positions_figure(learned).data) == 2
    assert len(positions_figure(sinusoidal).data) == 1
    assert len(positions_figure(rope).data) == 1
    assert len(positions_figure(alibi).data) == 4


def agreement():
    import numpy as np

    from pages.inside.answer.attribution import show_correlation

    rng = np.random.default_rng(0)
    shares = rng.random((4, 5))
    show_correlation(shares, shares + 0.1 * rng.random((4, 5)))


def test_the_agreement_of_attention_and_leaving_out_is_two_correlations():
    app = app_of(agreement).run()
    values = {metric.label: float(metric.value) for metric in app.metric}
    assert set(values) == {"Spearman", "Pearson"}
    assert all(0.8 < value <= 1 for value in values.values())
    assert np.isfinite(list(values.values())).all()


TOWER = Document(
    "tower.md",
    "The <b>tower</b> of Vardholm was finished in 1891. Forty masons built it. Is it old? The keeper of the "
    "lighthouse kept bees, and sold the honey in June.",
)
CHAPTERS = ("Start and end", "Without each part", "Attention")


def asked(question, **state):
    state = {"queued_question": question, "min_relevance": 0} | own_documents(TOWER) | state
    return app_page("inside/answer", **state).run()


def test_an_answer_opens_on_the_reader_with_its_scores_parts_and_attention():
    app = asked("When was the tower finished?")
    span = app.session_state["answer"].spans[0]
    assert span.text == "1891"
    assert [tab.label for tab in app.tabs] == ["Reader"]
    assert f"The words win by {span.score:.2f}" in plain(said(app))
    assert ">1891</span>" in html_of(app)
    assert "<b>tower" not in html_of(app)
    [others] = tables(app)
    assert str(others["Words"][0]) == "1891"
    np.testing.assert_allclose(others["Over no answer"][0], span.score, atol=0.01)
    app.session_state["reading-chapter"] = CHAPTERS[1]
    app.run()
    if "reading-parts" not in app.session_state and not tables(app):  # on a slow machine
        next(button for button in app.button if "without each part" in button.label).click().run()
    assert "the score of “1891” falls" in plain(said(app))
    assert "holds the answer" in html_of(app)
    assert set(tables(app)[0]["Left out"]) >= {"tower", "Forty masons built it."}
    app.session_state["reading-chapter"] = CHAPTERS[2]
    assert "Most in head" in said(app.run())
    assert len(app.get("plotly_chart")) == 2


@pytest.mark.parametrize("n_sentences", [0, 40])
def test_a_painted_passage_keeps_every_character_and_no_markup_of_its_own(reader, n_sentences):
    text = "The tide rises <b>twice</b>\na day. " * n_sentences + TOWER.text
    windows = reader.scores("When was the tower finished?", [text])
    words = best_words("When was the tower finished?", text, windows)
    html = painted_scores(text, answer_tokens(windows, words).window, words)
    assert text[slice(*words)] == "1891"
    assert visible(html) == f"no answer {text}"
    assert "<b>" not in html
    assert (len(windows) > 1) == (n_sentences > 0)


def test_words_that_are_not_given_as_the_answer_say_why():
    refused = asked("How much is a ticket for the ferry?", refuse_threshold=60)
    assert refused.session_state["answer"].judged.status == "refused"
    assert "The answer was refused" in said(refused)
    assert tables(refused)
    assert "A few words cannot answer" in said(asked("Why was the tower finished?", refuse_threshold=0))


def test_without_the_readers_file_the_tab_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(Reader, "load", partial(Reader.load, tmp_path / "none"))
    monkeypatch.setattr("engine.models.reader._shipped", [])
    shared_reader.clear()
    app = asked("When was the tower finished?")
    assert "No reader: there is no reader at" in plain(said(app))
    assert app.button(key="write-text")
    shared_reader.clear()


def test_lengths_end_at_the_prompt_or_where_it_takes_too_long():
    for n_prompt, lengths in (
        (30, (16, 30)),
        (10, (10,)),
        (624, (16, 64, 128, 256, 512, 624)),
        (66, (16, 66)),
    ):
        assert measured_lengths(n_prompt) == lengths
    assert measured_lengths(4000) == (16, 64, 128, 256, 512, 1024)
