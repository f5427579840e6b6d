import pytest

from tests.apps import app_of, app_page, app_within, said

DEFAULTS = "4 documents · Sentences, 192 tokens · mean · hybrid (scores weighted) · 4 passages"


def sidebar():
    import streamlit as st

    from ui.documents import bundled_documents
    from ui.models import load_encoder
    from ui.setting_values import keep_set, kept_settings, settings_in_use
    from ui.settings import settings_sidebar
    from ui.settings_card import show_settings_card

    keep_set()
    encoder = load_encoder()
    show_settings_card(bundled_documents(), encoder)
    st.session_state["in use"] = settings_in_use(encoder)
    settings_sidebar(encoder, on_server=False)
    st.session_state["kept"] = kept_settings()


def card(app):
    """The lines of the card, without those of the settings."""
    return [caption.value for caption in app.caption if " · " in caption.value or "changed" in caption.value]


def labels(app):
    return [each.label for each in app.button if not (each.key or "").endswith(("-load", "-picker"))]


def press(app, label):
    return next(button for button in app.button if button.label.startswith(label)).click().run()


def test_the_defaults_are_one_line_from_the_table_and_changes_are_named_undone_and_reset(monkeypatch):
    monkeypatch.setattr("ui.setting_values.CONFIRMED_S", 600)
    app = app_of(sidebar).run()
    assert card(app) == [DEFAULTS]
    assert labels(app) == ["Export as code", "Upload vectors"]
    widgets = (*app.slider, *app.selectbox, *app.toggle, *app.number_input, *app.segmented_control)
    assert {widget.key: widget.value for widget in widgets} == app.session_state["in use"]
    app.slider(key="k").set_value(6).run()
    assert "Undo: passages 6 → 4" in labels(app)
    press(app, "Undo")
    assert app.slider(key="k").value == 4
    assert not [label for label in labels(app) if label.startswith("Undo")]
    press(app, "Redo: passages 4 → 6")
    assert "Undo: passages 6 → 4" in labels(app)
    app.selectbox(key="splitter").select("fixed").run()
    changed = [
        "4 documents · Fixed size, 192 tokens · mean · hybrid (scores weighted) · 6 passages",
        "**2 changed:** splitter, passages",
    ]
    assert card(app) == changed
    press(app, "Reset")
    assert card(app) == [DEFAULTS]
    app.slider(key="k").set_value(6).run()  # as a browser sends with a click before it has drawn the reset
    assert (app.slider(key="k").value, app.selectbox(key="splitter").value) == (4, "sentences")
    press(app, "Undo: 2 settings")
    assert card(app) == changed
    app.slider(key="temperature").set_value(0.1 + 0.2).run()
    assert "Undo: temperature 0.3 → 0" in labels(app)
    assert card(app) == [changed[0], "**3 changed:** splitter, passages, temperature"]


def test_changes_of_one_setting_in_a_row_are_one_step_and_steps_are_undone_one_by_one():
    app = app_of(sidebar).run()
    for k in (5, 6, 7):
        app.slider(key="k").set_value(k).run()
    app.selectbox(key="splitter").select("fixed").run()
    press(app, "Undo: splitter Fixed size → Sentences")
    press(app, "Undo: passages 7 → 4")
    assert card(app) == [DEFAULTS]
    press(app, "Redo: passages 4 → 7")
    for k in (3, 7):
        app.slider(key="k").set_value(k).run()
    assert [label for label in labels(app) if label.startswith(("Undo", "Redo"))] == ["Undo: passages 7 → 4"]


def test_what_a_change_lowers_with_it_is_undone_with_it():
    app = app_of(sidebar, chunk_tokens=128, overlap=64, answer_threshold=60, refuse_threshold=50).run()
    app.slider(key="chunk_tokens").set_value(64).run()
    assert app.session_state["in use"]["overlap"] == app.slider(key="overlap").value == 32
    press(app, "Undo: 2 settings")
    assert (app.slider(key="chunk_tokens").value, app.slider(key="overlap").value) == (128, 64)
    app.slider(key="answer_threshold").set_value(40).run()
    assert app.session_state["in use"]["refuse_threshold"] == app.slider(key="refuse_threshold").value == 40
    press(app, "Undo: 2 settings")
    assert (app.slider(key="answer_threshold").value, app.slider(key="refuse_threshold").value) == (60, 50)


def test_the_card_stays_without_a_document():
    app = app_within("documents", searched=[])
    assert any(caption.value.startswith("0 documents · Sentences") for caption in app.sidebar.caption)
    assert any(selectbox.key == "splitter" for selectbox in app.sidebar.selectbox)


MEAN = "mean vectors, whatever pooling and retriever the app uses"


@pytest.mark.parametrize(
    ("folder", "state", "words"),
    [
        ("improve/tuning", {"pooling": "cls"}, MEAN),
        ("inside/late", {"pooling": "cls", "searched": ["inside_the_pipeline.md"]}, MEAN),
        (
            "documents",
            {"pooling": "cls", "documents-tab": "Health", "searched": ["inside_the_pipeline.md"]},
            "the model's own vectors, whatever the pooling and retriever in use",
        ),
    ],
)
def test_a_page_with_vectors_or_chunks_of_its_own_says_so(folder, state, words):
    assert words in said(app_page(folder, **state).run())
