"""The page “Break it” ranks the user's own documents by the intact and by the broken model."""

import re

from engine.documents.document import Document
from tests.apps import app_page, own_documents, said

QUESTION = "What does the ferry to Tarno cost?"
TEXTS = ("The ferry to Tarno costs 32 euros.", "Bees winter in the hive.", "Dough rests for a day.") * 2


def test_the_intact_model_finds_the_passage_and_its_place_by_the_broken_one_stands_beside_it():
    documents = [Document(f"{n}.txt", f"{text} It is note {n}.") for n, text in enumerate(TEXTS)]
    app = app_page("inside/broken", **own_documents(*documents)).run()
    app.text_input(key="broken-question").set_value(QUESTION)
    app.button_group(key="faults").set_value(["no_positions"]).run()
    assert "The model is intact" not in said(app)
    [intact, broken] = (element.value for element in app.get("html") if "score" in element.value)
    first = r"<b>1\.</b> [03]\.txt · score 0\.\d{3} · <b>%s \d+ [▼▲=]</b><br>The ferry"
    assert re.search(first % "now", intact)
    assert intact.count("<li") == broken.count("<li") == 5
    app.button_group(key="faults").set_value(["pad_mean"]).run()
    assert "the ranking is left to chance" in said(app)
