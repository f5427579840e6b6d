from urllib.parse import parse_qs

from engine.documents.document import Document
from tests.apps import app_file, app_of, own_documents, plain, said

ASKED = {"question": ["How are words cut?"], "way": ["Find it in a document"]}


def opened():
    import streamlit as st

    from ui.address import address_query, open_address

    open_address("diagnose")
    st.text(address_query("diagnose"))


def test_a_diagnosis_is_opened_with_its_question_and_the_way_to_its_passage():
    app = app_of(opened)
    for name, [value] in ASKED.items():
        app.query_params[name] = value
    app.run()
    assert app.session_state["current-question"] == "How are words cut?"
    assert app.session_state["diagnose-way-True"] == "Find it in a document"
    assert parse_qs(app.text[0].value) == ASKED


def test_many_files_are_not_named_and_those_that_were_searched_stay():
    texts = [Document(f"{n}.md", f"Number {n}.") for n in range(31)]
    app = app_of(opened, **own_documents(*texts)).run()
    query = parse_qs(app.text[0].value)
    assert query == {"search": ["many files"]}
    again = app_of(opened, **own_documents(*texts))
    again.query_params["search"] = "many files"
    again.run()
    assert again.session_state["searched"] == [document.name for document in texts]
    assert "address-documents" not in again.session_state


def test_names_and_values_that_mean_nothing_are_ignored_and_missing_documents_told():
    app = app_file()
    nonsense = {"tab": "no", "chunk_tokens": "-7", "retriever": "<script>", "k": "[1"}
    for name, value in (nonsense | {"search": "<b>mine.txt"}).items():
        app.query_params[name] = value
    app.run()
    assert "The link names documents that are not here: <b>mine.txt." in plain(said(app))
    assert (app.slider(key="k").value, app.selectbox(key="retriever").value) == (4, "weighted")
