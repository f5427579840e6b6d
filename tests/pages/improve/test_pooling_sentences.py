import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.inspection.pooling.mistakes import possible_mistakes
from pages.improve.poolings.examples import EXAMPLES, cut_notes, own_sentences
from pages.improve.poolings.mistakes import MISTAKES, NAMES, WHAT, ranking_change
from pages.improve.poolings.pair import BACK, FORWARD
from pages.improve.poolings.sentences import (
    finding,
    own_finding,
    scale_start,
    similarities,
    weightless_sentences,
)
from pages.improve.poolings.similarity_figures import cosine_matrix, in_lines, token_heat_map
from tests.apps import app_of, tables

SENTENCES = list(EXAMPLES["Other words"].sentences)


def matrix(one_two, one_three):
    return np.array([[1, one_two, one_three], [one_two, 1, 0], [one_three, 0, 1]])


def sentences_app(own):
    import streamlit as st

    from pages.improve.poolings.sentences import show_sentences
    from ui.models import load_encoder

    st.session_state["pooling-sentences-set"] = "Your own"
    st.session_state["pooling-sentences-own"] = own
    show_sentences(load_encoder(), 16)


def run(own):
    app = app_of(sentences_app, args=(own,)).run()
    return app, " ".join(element.value for element in [*app.info, *app.warning, *app.caption, *app.markdown])


def test_matrices_are_symmetric_with_ones_on_the_diagonal(encoder):
    weighted = encoder.with_idf(SENTENCES)
    cosines = similarities(SENTENCES, weighted, 256)
    assert set(cosines) == set(weighted.poolings)
    for own in cosines.values():
        np.testing.assert_allclose(own, own.T, atol=1e-6)
        np.testing.assert_allclose(np.diag(own), 1, atol=1e-5)


def test_the_mean_is_that_of_sentence_transformers(encoder, official):
    theirs = official.encode(SENTENCES, show_progress_bar=False)
    np.testing.assert_allclose(similarities(SENTENCES, encoder, 256)["mean"], theirs @ theirs.T, atol=2e-6)


def weights_app(sentences):
    import streamlit as st

    from pages.improve.poolings.sentences import cosines_of, similarities
    from ui.models import load_encoder

    for name, texts in (("one", sentences), ("other", ["the cat", "the mat", "a rug"])):
        encoder = load_encoder().with_idf(texts)
        st.session_state[name] = [call(sentences, encoder, 256)["idf"] for call in (cosines_of, similarities)]


def test_weights_of_other_documents_are_not_taken_for_those_of_a_session_before():
    app = app_of(weights_app, args=(SENTENCES,)).run()
    for kept, computed in (app.session_state["one"], app.session_state["other"]):
        np.testing.assert_allclose(kept, computed, atol=1e-6)
    assert np.abs(app.session_state["one"][0] - app.session_state["other"][0]).max() > 1e-3


def test_a_finding_says_what_was_measured():
    words = finding({"mean": matrix(0.5, 0.1), "cls": matrix(0.6, 0.7), "max": matrix(0.9, 0.8)})
    assert words.startswith("**2 of 3** strategies put 1 nearer to 2.")
    assert "widest gap: **mean** puts 1 and 2 at 0.50, 1 and 3 at 0.10" in words
    assert "narrowest: **\\[CLS\\]** puts 1 and 2 at 0.60, 1 and 3 at 0.70" in words
    assert finding({"mean": matrix(0.5, 0.6), "max": matrix(0.5, 0.9)}).startswith("**None**")
    assert finding({"mean": matrix(0.5, 0.1), "max": matrix(0.5, 0.1)}).startswith("All")
    assert finding({"mean": matrix(0.5, 0.1)}).startswith("Here 1 is nearer to 2. **mean**")


def test_own_sentences_are_compared_pair_by_pair():
    assert "**mean**: 1 and 3 at 0.70; least alike 2 and 3 at 0.00" in own_finding({"mean": matrix(0.2, 0.7)})
    assert own_finding({"mean": np.eye(2)}) == "Most alike:\n- **mean**: 1 and 2 at 0.00"


@given(st.lists(st.sampled_from(["", "  ", "\t", "one", " two "])))
def test_blank_lines_are_no_sentences(lines):
    assert own_sentences("\n".join(lines)) == [line.strip() for line in lines if line.strip()]


def test_what_is_cut_is_said_with_its_place(encoder):
    text = "one two three four five six seven"
    assert cut_notes(["short", text], encoder, 6) == [
        "Sentence 2 has 9 tokens and 6 are read: up to character 18 of 33, “…one two three four”."
    ]
    assert cut_notes([text], encoder, 9) == []


def test_sentences_without_weights_are_named(encoder):
    weighted = encoder.with_idf(["the cat", "the dog"])
    assert weightless_sentences(["the the", "the cat"], weighted, 256) == [1]
    assert weightless_sentences(["the the"], encoder, 256) == []


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("\n \n", "There is no sentence yet"),
        ("only one", "There is one sentence"),
        ("same\n\nsame\nother", "The same twice: 1 and 2"),
        ("word " * 40 + "\nother", "Sentence 1 has 42 tokens and 16 are read"),
        ("\n".join(f"sentence {n}" for n in range(15)), "The first 12 of 15 sentences"),
        ("<b>*a*</b>\n[x](y) $z$", "IDF is left out"),
    ],
)
def test_bad_input_gives_a_clear_line(own, said):
    assert said in run(own)[1].replace("\\", "")


def pair_app(first, second):
    import streamlit as st

    from pages.improve.poolings.pair import choose_pair, show_bars, similarities_of_pair
    from ui.models import load_encoder

    st.session_state["pooling-pair-0"], st.session_state["pooling-pair-1"] = first, second
    st.session_state["found"] = found = choose_pair(load_encoder(), 256)
    if found:
        show_bars(*found, load_encoder(), 256)
    st.session_state["cosines"] = similarities_of_pair((first, second), load_encoder(), 256)


def pair(first, second):
    app = app_of(pair_app, args=(first, second)).run()
    return app.session_state


def test_both_texts_are_returned_and_a_blank_one_is_asked_for():
    assert pair("one", "two")["found"] == ("one", "two")
    assert pair("one", " ")["found"] is None


def test_the_scale_begins_below_the_lowest_cosine():
    assert scale_start({"mean": np.ones((2, 2)), "max": np.ones((2, 2))}) == 0.9
    assert scale_start({"mean": matrix(0.5, -0.02), "max": matrix(0.5, 0.6)}) == -0.1


def test_maxsim_looks_both_ways_and_a_text_is_most_like_itself():
    cosines, unrelated = pair("The cat sat.", "A long text about cats, mats and rugs.")["cosines"]
    assert cosines[FORWARD] != pytest.approx(cosines[BACK], abs=1e-4)
    same, _ = pair("The cat sat.", "The cat sat.")["cosines"]
    assert list(same.values()) == pytest.approx([1] * len(same), abs=1e-5)
    assert set(cosines) == set(unrelated) == set(same)
    assert all(unrelated[name] < 1 for name in unrelated)


def test_a_change_of_order_is_counted_and_a_change_of_scores_is_not():
    right = matrix(0.5, 0.4)
    assert ranking_change(right, right / 2).startswith("The order is the same")
    assert "from 1 of 3 sentences: 1." in ranking_change(right, matrix(0.4, 0.5))


def test_every_mistake_has_words():
    assert set(NAMES) == set(WHAT) == set(MISTAKES)


def test_figures_share_their_scale_and_escape_tokens():
    figure = cosine_matrix(matrix(0.5, -0.2), -0.2).data[0]
    assert (figure.zmin, figure.zmax) == (-0.2, 1)
    values = np.array([[1, 0, 0], [0.2, 0.5, 0.3]])
    heat = token_heat_map(values, ["[CLS]", "mean"], ["a", "<b>", "c"], "share").data[0]
    assert (heat.zmin, heat.zmax) == (0, 0.5)
    assert heat.x[1] == "1 &lt;b&gt;"
    assert max(len(line) for line in in_lines("mean of first and last layer").split("<br>")) <= 18


def reports_app(encoder, document, chunks):
    from engine.evaluation.questions import Question, Reference
    from pages.improve.poolings.mistakes import reports_of, show_reports
    from pages.improve.poolings.pooled_chunks import PooledChunks

    vectors = {"mean": encoder.encode([chunk.text for chunk in chunks])}
    questions = [Question("Who keeps bees?", "bees", (Reference(document.text[:20], 0, 20),))]
    show_reports(reports_of("one", PooledChunks((document,), chunks, encoder, vectors, 64), questions))


def test_the_costs_of_mistakes_are_drawn_again_from_the_cache(encoder):
    document = Document("bees.txt", "The keeper has bees. The baker sells bread. The cat sleeps.")
    chunks = tuple(split(document, encoder.tokenizer, Splitting("sentences", 16, 0)))
    app = app_of(reports_app, args=(encoder, document, chunks)).run()
    [costs] = tables(app)
    assert len(costs) == 1 + len(possible_mistakes(encoder))
    app.run()
    assert tables(app)[0].equals(costs)
