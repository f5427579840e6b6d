from engine.documents.document import Document
from tests.apps import app_file, app_of, by_label, own_documents, said


def picker():
    from ui.documents import document_picker

    document_picker()


def test_files_of_other_formats_are_listed_beside_those_that_are_read():
    app = app_of(picker).run()
    files = [("rows.xyz", b"a\tb", ""), ("note.txt", b"A note.", ""), ("README", b"Read me.", "")]
    app.file_uploader(key="uploader-0").set_value(files).run()
    assert list(app.session_state["uploads"]) == ["note.txt"]
    assert "Skipped 2 files of other formats: rows\\.xyz, README." in said(app)
    app.file_uploader(key="uploader-1").set_value([("rows.xyz", b"a\tb", "")]).run()
    assert "Skipped 1 file of other formats: rows\\.xyz. Those that are read are" in said(app)
    by_label(app.button, "Close").click().run()
    assert "Skipped" not in said(app)
    app.file_uploader(key="uploader-2").set_value([("rows.xyz", b"a\tb", "")]).run()
    app.file_uploader(key="uploader-3").set_value([("other.txt", b"Another.", "")]).run()
    assert "Skipped" not in said(app)


def test_many_files_are_chosen_in_a_table_and_found_by_their_names():
    texts = [Document(f"notes/{n}.md" if n % 2 else f"bills/{n}.md", f"Number {n}.") for n in range(31)]
    app = app_file(**own_documents(*texts)).run()
    assert not app.multiselect
    assert "Search in 31 of 35 files" in said(app)
    app.session_state["files-find"] = "bills"
    app.button(key="choose-files").click().run()
    app.button(key="files-choice-1").click().run()
    bills = [document.name for document in texts if "bills" in document.name]
    assert app.session_state["searched"] == bills
    app.button(key="choose-files").click().run()
    app.button(key="files-choice-0").click().run()  # what is ticked: no change
    assert app.session_state["searched"] == bills


def test_many_files_are_read_together_up_to_the_limit_of_a_visitor(monkeypatch):
    monkeypatch.setenv("GLASSBOX_PUBLIC", "1")
    app = app_of(picker).run()
    files = [(f"{n}.txt", b"word " * 199_000 if n == 2 else b"A note.", "") for n in range(300)]
    files.insert(200, ("large.txt", b"word " * 210_000, ""))
    app.file_uploader(key="uploader-0").set_value(files).run()
    assert list(app.session_state["uploads"]) == [f"{n}.txt" for n in range(300)]
    assert app.session_state["searched"] == list(app.session_state["uploads"])
    assert "1 file not read" in [each.label for each in app.expander]
    monkeypatch.setattr("ui.documents.MOST_SENT", 1)
    assert "301 files arrived" in said(app.run())


def cutting():
    from ui.chunk_settings import Cut
    from ui.corpus import split_documents
    from ui.documents import session_documents

    split_documents(session_documents(), Cut("sentences", 192, 0, 0, 256))


def test_chunks_and_tokens_of_a_replaced_file_are_dropped():
    app = app_of(cutting)
    for text in ("The first version.", "The second version."):
        app.session_state["uploads"] = {"own.txt": (Document("own.txt", text),)}
        app.run()
    kept = [*app.session_state["tokens"], *next(iter(app.session_state["chunks"].values()))]
    own = Document("own.txt", "The second version.").fingerprint
    assert kept.count(own) == 2
    assert Document("own.txt", "The first version.").fingerprint not in kept
