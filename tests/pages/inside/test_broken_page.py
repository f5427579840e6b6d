"""The page “Break it” ranks the bundled documents by the intact and by the broken model."""

import re

from engine.documents.document import Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from tests.apps import app_page, said

QUESTION = "What is the price of insulin for seniors on Medicare?"
PART = slice(12_500, 16_500)  # of each document, that they are embedded in seconds; one is shorter


def test_the_intact_model_finds_the_passage_and_its_place_by_the_broken_one_stands_beside_it(monkeypatch):
    documents = [Document(each.name, each.text[PART]) for each in load_corpus(BUNDLED_CORPUS)]
    monkeypatch.setattr("ui.documents.bundled_documents", lambda: documents)
    app = app_page("inside/broken").run()
    app.text_input[0].set_value(QUESTION)
    app.button_group[0].set_value(["no_positions"]).run()
    assert "The model is intact" not in said(app)
    [intact, broken] = (element.value for element in app.get("html") if "score" in element.value)
    first = r"<b>1\.</b> state_of_the_union\.md · score 0\.\d{3} · <b>%s \d+ [▼▲=]</b><br>[^<]*insulin"
    assert re.search(first % "now", intact)
    assert intact.count("<li") == broken.count("<li") == 5
