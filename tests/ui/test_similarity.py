import re
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.inspection.pooling.similarity_decomposition import (
    decompose_similarity,
    read_text,
    sum_by_unit,
    text_units,
)
from tests.apps import app_of
from ui.similarity.explained import BOTH_TEXTS, PAIRS, special_shares, unit_sums
from ui.similarity.figures import colour_of, contribution_map, painted, unit_labels, won_bars

QUESTION = "How do cats <b>sleep</b>?"
PASSAGE = 'A feline rests & naps unbelievably, "curled" <i>up</i>. 한국 It is warm. $5$ _more_'
LONG = "A feline rests curled up. It naps through unbelievably warm afternoons. " * 12


def text_of(html):
    """What a painted text shows, its chips aside."""
    without_chips = re.sub(r"<span[^>]*monospace[^>]*>[^<]*</span>", "", html)
    return unescape(re.sub(r"<[^>]*>", "", without_chips))


def test_a_painted_text_is_the_text_and_no_markup_of_its_own(encoder):
    read = read_text(encoder, PASSAGE)
    for level in ("tokens", "words", "sentences"):
        of_text = text_units(read, level)
        html = painted(read, of_text, np.linspace(-1, 1, len(of_text)), "share")
        assert text_of(html) == PASSAGE
        assert "<b>" not in html
        assert html.count("monospace") == 2  # [CLS] and [SEP]


@given(st.text(st.sampled_from("cat <&\"'>한é東\n##ing[SEP]"), max_size=30))
def test_any_text_is_painted_once_and_what_is_not_read_is_shown_as_such(encoder, text):
    read = read_text(encoder, text, 10)
    of_text = text_units(read, "tokens")
    html = painted(read, of_text, np.zeros(len(of_text)), "share")
    assert text_of(html) == text
    assert ('title="not read"' in html) == bool(read.tokens_truncated)


def test_what_adds_is_blue_and_what_takes_is_orange_the_darker_the_farther(encoder):
    assert colour_of(0.5, 1.0).startswith("background:#0072B246")
    assert colour_of(-1.0, 1.0).startswith("background:#E69F008c")
    assert colour_of(7.0, 1.0) == colour_of(1.0, 1.0)
    read = read_text(encoder, "cats sleep")
    html = painted(read, text_units(read, "words"), np.array([9.0, 0.5, -0.25, 0.0]), "share")
    assert 'title="cats: share +0.5000" style="background:#0072B28c' in html  # the scale is that of the words
    assert 'title="sleep: share -0.2500" style="background:#E69F0046' in html


def test_the_map_shows_every_pair_centred_at_zero(encoder):
    found = decompose_similarity(encoder, QUESTION, PASSAGE)
    rows, columns = text_units(found.first, "words"), text_units(found.second, "words")
    matrix = sum_by_unit(found.matrix, rows, columns)
    [trace] = contribution_map(matrix, rows, columns).data
    np.testing.assert_allclose(trace.z, matrix, rtol=1e-6)
    assert trace.zmin == -trace.zmax
    assert trace.zmax > 0
    assert len(set(trace.x)) == len(columns)
    assert not any("<" in label for label in (*trace.x, *trace.y))


def test_labels_are_short_and_differ_and_bars_show_the_winners_best_first(encoder):
    labels = unit_labels(text_units(read_text(encoder, "nap nap " + "a" * 90), "words"))
    assert labels[1:3] == ["1 nap", "2 nap"]
    assert all(len(label) <= 18 for label in labels)
    of_text = text_units(read_text(encoder, "cats sleep"), "words")
    [trace] = won_bars(np.array([5, 100, 279, 0]), of_text).data
    assert list(trace.x) == [279, 100, 5, 0]
    assert trace.y[0] == "2 sleep"


def test_shares_of_words_and_special_tokens_add_up(encoder):
    found = decompose_similarity(encoder, QUESTION, PASSAGE)
    by_token = found.matrix.sum(axis=1)
    shares = special_shares(found.first, by_token)
    assert list(shares) == ["Words", "[CLS]", "[SEP]", "All"]
    assert shares["[CLS]"] == by_token[0]
    assert shares["Words"] + shares["[CLS]"] + shares["[SEP]"] == pytest.approx(found.score, abs=1e-6)
    by_sentence = unit_sums(by_token, text_units(found.first, "sentences"))
    assert by_sentence.sum() == pytest.approx(found.score, abs=1e-6)


def page(first, second, max_tokens, chapter):
    from ui.models import load_encoder
    from ui.similarity.explained import show_explained

    encoder = load_encoder().with_idf(["How do cats sleep?", "The end."])
    show_explained(encoder, max_tokens, first, second, "here", chapter)


def run(first, second, max_tokens=128, chapter=BOTH_TEXTS):
    return app_of(page, args=(first, second, max_tokens, chapter)).run()


def test_the_panel_shows_every_similarity_and_what_it_is_made_of(encoder):
    app = run(QUESTION, PASSAGE)
    options = app.selectbox[0].options
    assert "BERT pooler" not in options
    assert {"mean", "max", "MaxSim (ColBERT)", "mean, rare words more (IDF)"} <= set(options)
    u, v = encoder.encode([QUESTION, PASSAGE])
    assert app.metric[0].value == f"{float(u @ v):.4f}"
    total = sum(float(metric.value) for metric in app.metric[1:3])
    assert total == pytest.approx(float(u @ v), abs=2e-4)
    for strategy in ("max", "maxsim"):
        app.selectbox[0].set_value(strategy).run()
        assert app.metric[0].label == ("MaxSim" if strategy == "maxsim" else "Cosine")


def test_texts_that_are_missing_too_long_or_over_the_limit_are_told():
    app = run("text", "  ")
    assert [info.value for info in app.info] == ["Give two texts to see their similarity explained."]
    assert not app.selectbox
    app = run(QUESTION, LONG, 64)
    assert app.segmented_control[0].value == "words"
    assert any("beyond the limit of 64: " in caption.value for caption in app.caption)
    [warning] = run(QUESTION, PASSAGE, 4096).warning
    assert "4096" in warning.value


def test_the_pairs_are_drawn_as_a_map_and_listed():
    app = run(QUESTION, PASSAGE, chapter=PAIRS)
    for strategy, title in (
        ("mean", "The pairs that count most"),
        ("maxsim", "Each token's best match"),
        ("max", "Dimensions won"),
    ):
        app.selectbox[0].set_value(strategy).run()
        titles = [markdown.value for markdown in app.markdown]
        assert "**Tokens by tokens**" in titles
        assert f"**{title}**" in titles
