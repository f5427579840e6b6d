"""What is chosen in the sidebar stays from page to page."""

from engine.documents.document import Document
from tests.apps import ROOT, app_file, own_documents

OWN = Document("harbour.txt", "The harbour of Ystad opens at six in the morning. " * 40)
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "pages").rglob("page.py"))
SEARCHING = ("ask", "documents", "settings", "diagnose", "poolings", "tuning", "questions", "answer", "late")


def settings(app):
    """The values of the sliders and selections of the sidebar."""
    return {widget.label: widget.value for widget in (*app.sidebar.slider, *app.sidebar.selectbox)}


def choose_others(app):
    """Move sliders to their ends, and take the first option of selections, or the second; return the app."""
    for slider in (each for each in app.sidebar.slider if not each.disabled):
        slider.set_value(slider.min if slider.value != slider.min else slider.max)
    for box in app.sidebar.selectbox:
        if box.label != "Built-in model" and not box.disabled:
            box.select_index(int(box.value == box.options[0]))
    return app.run()


def test_documents_and_settings_are_the_same_on_every_page():
    app = app_file(**own_documents(OWN)).run()
    before = settings(app)
    chosen = settings(choose_others(app))
    assert sum(chosen.get(label) != value for label, value in before.items()) >= 12
    for page in [*PAGES, "pages/ask/page.py"]:
        shown = settings(app.switch_page(page).run())
        assert shown == {label: chosen[label] for label in shown}, page
        assert app.session_state["searched"] == [OWN.name]
        if page.split("/")[-2] in SEARCHING:
            captions = [caption.value for caption in app.sidebar.caption]
            assert any(caption.startswith("1 document · ") for caption in captions), page
            assert any(" changed:** " in caption for caption in captions), page
    assert shown == chosen
