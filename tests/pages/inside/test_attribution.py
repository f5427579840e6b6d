import numpy as np

from tests.apps import app_of


def agreement():
    import numpy as np

    from pages.inside.answer.attribution import show_correlation

    rng = np.random.default_rng(0)
    shares = rng.random((4, 5))
    show_correlation(shares, shares + 0.1 * rng.random((4, 5)))


def choice_of_a_head():
    import streamlit as st

    from pages.inside.answer.attribution import ONE_HEAD, attention_choice

    st.session_state["attention-of"] = ONE_HEAD
    st.write(attention_choice(1, 1))


def test_a_model_with_one_layer_and_one_head_leaves_nothing_to_choose():
    app = app_of(choice_of_a_head).run()
    assert app.markdown[0].value == "`(0, 0)`"


def test_the_agreement_of_attention_and_leaving_out_is_two_correlations():
    app = app_of(agreement).run()
    values = {metric.label: float(metric.value) for metric in app.metric}
    assert set(values) == {"Spearman", "Pearson"}
    assert all(0.8 < value <= 1 for value in values.values())
    assert np.isfinite(list(values.values())).all()
