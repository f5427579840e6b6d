"""A chunk that is listed can be opened inside the model."""

from engine.documents.document import Document
from tests.apps import app_within, own_documents

NAME = "inside_the_pipeline.md"
OPENED = {"documents-tab": "Chunks", "searched": [NAME], "chunks-number-a": 3}


def opened(side="a", **state):
    """What “Inside the model” is set to, after a chunk of a document was opened there."""
    app = app_within("documents", **OPENED | state)
    return app.button(key=f"look-inside-chunk-{side}").click().run().session_state


def test_a_chunk_of_a_document_that_is_cut_otherwise_by_now_is_opened_as_a_text():
    text = "The tide turns twice a day. " * 200
    own = {"tide.md": (Document("tide.md", text),)}
    other = {"chunks-compare": True, "chunk_tokens-other": 16, "chunks-number-b": 2}
    state = opened("b", uploads=own, searched=["tide.md"], **other)
    assert state["source-encoder"] == "Type a text"
    assert state["inside-text"] in text


def test_the_chunk_of_a_table_is_chosen_and_opened():
    units = "\n\n".join(f"The coolant of the old unit {n} in the north hall is glycol." for n in (1, 2))
    own = own_documents(Document("units.txt", units), Document("museum.txt", "Guided tours start here."))
    way = {f"diagnose-way-{asked}": "Find it in a document" for asked in (False, True)}
    question = {"diagnose-question": "What is the coolant of the unit?", "diagnose-words": "tours"}
    app = app_within("improve/diagnose", **own | way | question, chunk_tokens=16)
    opened_chunks = []
    for number in (0, 1):
        app = app.switch_page("pages/improve/diagnose/page.py").run()
        box = app.selectbox(key="chunks-above")
        assert box.options[number].startswith(f"{number + 1} · units.txt · ")
        app = box.set_value(number).run().button(key="look-inside-above").click().run()
        opened_chunks.append((app.session_state["inside-document"], app.session_state["inside-chunk"]))
    assert opened_chunks[0] != opened_chunks[1]
