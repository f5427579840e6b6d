import numpy as np
import pytest

from pages.improve.poolings.examples import EXAMPLES
from pages.improve.poolings.sentences import headline, most_alike
from pages.improve.poolings.similarity_figures import cosine_matrix, in_lines, token_heat_map
from tests.apps import app_of, said

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


def cosines_app(sentences):
    import streamlit as st

    from pages.improve.poolings.sentences import cosines_of, show_weightless
    from ui.models import load_encoder

    for name, texts in (("one", sentences), ("other", ["the cat", "the mat", "a rug"])):
        encoder = load_encoder().with_idf(texts)
        st.session_state[name] = cosines_of(sentences, encoder, 256)
    show_weightless(["the the", "a the"], load_encoder().with_idf(["the cat", "the dog"]), 256, "sentence")


def test_cosines_are_those_of_sentence_transformers_and_of_the_documents_weights(encoder, official):
    app = app_of(cosines_app, args=(SENTENCES,)).run()
    one, other = app.session_state["one"], app.session_state["other"]
    assert set(one) == set(encoder.with_idf(SENTENCES).poolings)
    theirs = official.encode(SENTENCES, show_progress_bar=False)
    np.testing.assert_allclose(one["mean"], theirs @ theirs.T, atol=2e-6)
    expected = encoder.with_idf(SENTENCES).encode(SENTENCES, "idf")
    np.testing.assert_allclose(one["idf"], expected @ expected.T, atol=1e-6)
    assert np.abs(one["idf"] - other["idf"]).max() > 1e-3  # not those of the documents before
    assert "No word of sentence 1 has an IDF weight" in said(app)


def test_a_finding_says_what_was_measured():
    words = headline({"mean": matrix(0.5, 0.1), "cls": matrix(0.6, 0.7), "max": matrix(0.9, 0.8)})
    assert words.startswith("**2 of 3** strategies put 1 nearer to 2.")
    assert "widest gap: **mean** puts 1 and 2 at 0.50, 1 and 3 at 0.10" in words
    assert "narrowest: **\\[CLS\\]** puts 1 and 2 at 0.60, 1 and 3 at 0.70" in words
    assert headline({"mean": matrix(0.5, 0.6), "max": matrix(0.5, 0.9)}).startswith("**None**")
    assert headline({"mean": matrix(0.5, 0.1)}).startswith("Here 1 is nearer to 2. **mean**")
    assert "**mean**: 1 and 3 at 0.70; least alike 2 and 3 at 0.00" in most_alike({"mean": matrix(0.2, 0.7)})


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("\n \n", "There is no sentence yet"),
        ("only one", "There is one sentence"),
        ("same\n\nsame\nother", "The same twice: 1 and 2"),
        ("word " * 40 + "\nother", "Sentence 1 has 42 tokens and 16 are read: up to character 69 of 199"),
        ("\n".join(f"sentence {n}" for n in range(15)), "The first 12 of 15 sentences"),
    ],
)
def test_bad_input_gives_a_clear_line(own, words):
    assert words in said(app_of(sentences_app, args=(own,)).run()).replace("\\", "")


def test_figures_share_their_scale_and_escape_tokens():
    figure = cosine_matrix(matrix(0.5, -0.2), -0.2).data[0]
    assert (figure.zmin, figure.zmax) == (-0.2, 1)
    values = np.array([[1, 0, 0], [0.2, 0.5, 0.3]])
    heat = token_heat_map(values, ["[CLS]", "mean"], ["a", "<b>", "c"], "share").data[0]
    assert (heat.zmin, heat.zmax) == (0, 0.5)
    assert heat.x[1] == "1 &lt;b&gt;"
    assert max(len(line) for line in in_lines("mean of first and last layer").split("<br>")) <= 18
