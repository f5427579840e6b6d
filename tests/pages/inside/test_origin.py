from types import SimpleNamespace

import numpy as np
import pytest

from engine.inspection.model.patching import align_prompts
from pages.inside.answer.fact_pair import EXAMPLE, spoken
from pages.inside.answer.figures import effect_map
from pages.inside.answer.lens import lens_html, rank_lines, settled_words
from pages.inside.answer.origin import MAX_POSITIONS, against, alignment_words, headline, positions_of
from tests.apps import Cells, app_page, said, tables

ROWS = ["embeddings", "layer 0", "layer 1", "layer 2"]
TOKENS = ["Berlin", "is", "now"]


def effects(*rows):
    return np.array(rows, float)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            effects([1, 0, 0], [0.9, 0, 0.2], [0.1, 0, 0.8], [0, 0, 1]),
            "Up to layer 0 the fact is at “Berlin”; from layer 1 on it is at “now” (80%).",
        ),
        (
            effects([0, 0, 0], [0, 0.1, 0.2], [0, 0, 0.6], [0, 0, 1]),
            "At first no token that is compared holds the fact; from layer 1 on it is at “now” (60%).",
        ),
        (
            effects([0, 0, 0], [0, 0.4, 0.2], [0, 0, 0.3], [0, 0, 0.1]),
            "Residual stream: the most is moved by layer 0 at “is”, 40% of the difference.",
        ),
        (
            effects([np.nan] * 3, [np.nan] * 3, [np.nan, 0.2, 0.8], [0, 0, 1]),
            "At first no token that is compared holds the fact; from layer 1 on it is at “now” (80%).",
        ),
    ],
)
def test_the_way_of_the_fact_is_said_in_words(values, words):
    assert headline(values, ROWS, TOKENS, "Residual stream") == words


def test_the_largest_effects_are_named_and_a_head_that_works_against_them_if_it_does_clearly():
    words = headline(effects([0, 0.2, 0], [0, 0, 0.7]), ["layer 0", "layer 1"], TOKENS, "Attention output")
    assert words == "Attention output: the most is moved by layer 1 at “now”, 70% of the difference."
    assert against(effects([0.5, -0.3])) == " Layer 0, head 1 works against them (-30%)."
    assert against(effects([0.5, -0.05], [np.nan, 0])) == ""


def test_the_alignment_is_said():
    same = alignment_words(align_prompts([5, 6, 7, 8], [5, 9, 7, 8], [3]))
    assert (
        same == "Both prompts have 4 tokens: each is compared with the one at its place, the last 3 of them."
    )
    other = alignment_words(align_prompts([5, 6, 7, 8], [7, 8], [3]))
    assert "4 and 2 tokens, so they are aligned from the end: the last 2 that" in other
    long = [*range(90)]
    assert positions_of(align_prompts([1, *long], long, [3])) == MAX_POSITIONS
    assert positions_of(align_prompts([1, *long], long, [3] * 30)) == 30


def test_tokens_in_sentences_are_escaped_and_have_no_blanks_around():
    assert spoken("␣Berlin") == "Berlin"
    assert spoken("␣") == "␣"
    assert spoken("␣*<b>") == r"\*\<b\>"


def test_the_lens_is_a_table_whose_last_layer_is_on_top():
    rows = [
        {
            "after": after,
            "read": read,
            "most probable": "<i>" if after == "layer 0" else "is",
            "probability": 0.25,
        }
        for after in ("embeddings", "layer 0")
        for read in ("<b>", "now")
    ]
    html = lens_html(rows, 2, "is", 'what "each" says')
    assert Cells(html).rows == [
        ["after", "<b>", "now"],
        ["layer 0", "<i> 25%", "<i> 25%"],
        ["embeddings", "is 25%", "is 25%"],
    ]
    assert "<i>" not in html
    assert "<b>" in html  # the answer's own
    assert html.count("<b>is</b>") == html.count("<b>") == 2


def test_effects_are_coloured_from_the_middle_and_ranks_have_1_on_top():
    figure = effect_map(effects([0.2, np.nan], [-0.6, 0]), ["embeddings", "layer 0"], ["0", "1"], "head")
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-0.6, 0.6)
    empty = effect_map(effects([np.nan]), ["layer 0"], ["0"], "head")
    assert empty.data[0].zmax == 0.1
    many = effect_map(
        np.zeros((31, 2)), ["embeddings", *(f"layer {n}" for n in range(30))], ["0", "1"], "token"
    )
    assert many.layout.yaxis.tickvals == tuple(f"layer {n}" for n in range(0, 30, 5))
    figure = rank_lines(np.array([900, 1]), np.array([900, 40]), ("with", "without"))
    assert figure.layout.yaxis.autorange == "reversed"
    assert [list(line.y) for line in figure.data] == [[900, 1], [900, 40]]


def result_of(app, what):
    app.button(key=f"origin-measure-{what}").click().run()
    app.session_state["jobs"][f"patches-{what}"].result()
    return app.run()


def test_the_example_is_traced_without_a_question():
    app = app_page("inside/answer", **{"origin-chapter": "Which heads"}).run()
    assert [metric.value for metric in app.metric] == ["77.3%", "0.2%", "+6.17 nats"]
    app = result_of(app, "heads")
    assert "**Layer 23, head 0 moves 57% of the 6.2 nats by which “Berlin” is more probable" in said(app)
    [heads] = tables(app)
    assert heads.iloc[0][["layer", "head"]].tolist() == [23, 0]
    app.session_state["origin-chapter"] = "What each layer would say"
    app.run()
    assert (
        "“Berlin” is the most probable token from layer 29 on after the first prompt, and not even"
        in said(app)
    )


def test_prompts_that_cannot_be_compared_are_explained_and_the_example_comes_back():
    app = app_page("inside/answer").run()
    app.text_area(key="pair-second").set_value(EXAMPLE["pair-first"]).run()
    assert "both prompts are the same" in app.error[0].value
    app.text_area(key="pair-second").set_value("").run()
    assert "aligned from the end" in said(app)
    app.text_input(key="pair-answer").set_value("Paris").run()
    assert "is not clearly more probable after the first prompt" in said(app)
    app.button(key="pair-example").click().run()
    assert app.text_area(key="pair-second").value == EXAMPLE["pair-second"]
    assert not app.error


def test_where_the_token_settles_is_said():
    for row, words in (
        (0, "from the embeddings on"),
        (2, "from layer 1 on"),
        (4, "not even in the last layer"),
    ):
        lens = SimpleNamespace(ids=np.zeros((4, 1, 1)), settled=lambda row=row: np.array([row]))
        assert settled_words(lens, 0) == words
