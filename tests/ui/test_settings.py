from dataclasses import dataclass, replace

import pytest

from engine.generation.sampling import RULES, Sampling, sampling_of
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.retrieval.retrievers import RETRIEVERS
from engine.settings import SETTINGS, answer_settings, rule_setting
from tests.apps import app_of
from ui.chunk_settings import Cut, cut_of
from ui.setting_values import settings_words, widget_keys
from ui.settings import Settings, settings_values

EVERYTHING = {"top_k": 5, "top_p": 0.5, "min_p": 0.1, "repetition_penalty": 1.2, "seed": 7}


def page():
    import streamlit as st

    from ui.settings import sampling_settings

    st.session_state["chosen"] = sampling_settings(st.session_state["on_server"])


def sidebar(**values):
    app = app_of(page, on_server=False).run().slider(key="temperature").set_value(0.8).run()
    for key, value in values.items():
        widget = app.number_input(key=key) if key == "seed" else app.slider(key=key)
        widget.set_value(value)
    return app.run()


def chosen(app):
    return app.session_state["chosen"]


def greyed_out(app):
    return {widget.key for widget in (*app.slider, *app.number_input) if widget.disabled}


def test_sampling_is_what_was_set_where_it_has_an_effect():
    app = sidebar()
    assert (chosen(app), greyed_out(app)) == (Sampling(0.8), set())
    for key, value in EVERYTHING.items():
        assert chosen(sidebar(**{key: value})) == Sampling(0.8, **{key: value})
    app = sidebar(**EVERYTHING).slider(key="temperature").set_value(0.0).run()
    assert chosen(app) == Sampling(repetition_penalty=1.2)
    assert greyed_out(app) == {"top_k", "top_p", "min_p", "seed"}
    app = app.slider(key="temperature").set_value(0.8).run()
    assert chosen(app) == Sampling(0.8, 5, 0.5, 0.1, 1.2, seed=7)
    app.session_state["on_server"] = True
    assert chosen(app.run()) == Sampling(0.8, top_p=0.5, seed=7)
    assert greyed_out(app) == {"top_k", "min_p", "repetition_penalty"}


def retriever_page():
    import streamlit as st

    from ui.models import load_encoder
    from ui.settings import retriever_setting

    st.session_state["chosen"] = retriever_setting(load_encoder())


def test_a_retriever_of_the_table_can_be_chosen_and_is_explained(monkeypatch):
    shortest = replace(RETRIEVERS["dense"], label="short", help="Few words.")
    monkeypatch.setitem(RETRIEVERS, "shortest", shortest)
    app = app_of(retriever_page).run()
    assert chosen(app.selectbox(key="retriever").select("shortest").run()) == "shortest"
    assert "- **short**: Few words." in app.selectbox(key="retriever").help


@dataclass(frozen=True)
class MoreSampling(Sampling):
    floor: float | None = None


def test_a_sampling_rule_of_the_table_has_a_slider_and_is_kept(monkeypatch):
    rule = replace(RULES["min_p"], low=-9.0, high=0.0, off=-9.0, label="Floor", help="Leave out low logits.")
    monkeypatch.setitem(RULES, "floor", replace(rule, is_valid=lambda value: value <= 0))
    monkeypatch.setitem(SETTINGS, "floor", rule_setting(rule))
    monkeypatch.setattr("engine.generation.sampling.Sampling", MoreSampling)
    app = sidebar(floor=-2.0)
    assert chosen(app) == MoreSampling(0.8, floor=-2.0)
    assert app.slider(key="floor").help == "Leave out low logits. -9 is off."
    assert [SETTINGS["floor"].allows(value) for value in (-9.0, 1.0)] == [True, False]
    app.session_state["on_server"] = True
    assert chosen(app.run()) == MoreSampling(0.8)


def test_sizes_in_tokens_say_which_model_counts_them():
    for key, setting in SETTINGS.items():
        if setting.unit == "tokens":
            model = "decoder" if setting.stage == "answer" else "embedding model"
            assert f"as the {model} counts them" in setting.help, key


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.8, top_k=5, top_p=0.5, min_p=0.1, repetition_penalty=1.2, seed=7)]
)
def test_the_values_of_settings_give_them_back(sampling):
    search = SearchSettings(k=3, min_relevance=50, retriever="bm25")
    answer = AnswerSettings(search, 512, 64, sampling, "passages", answer_threshold=0.6, refuse_threshold=0.2)
    cut = Cut("fixed", 64, 8, 256, 128)
    values = settings_values(Settings(cut, "cls", answer, False))
    assert set(values) == set(widget_keys())
    assert cut_of(values) == cut
    drawn = sampling_of({name: values[name] for name in RULES}, values["seed"])
    assert answer_settings(values, drawn) == answer
    assert settings_words(values)["Retriever"] == "BM25 (words)"
    assert settings_words({"k": 3}) == {"Passages (k)": "3"}
