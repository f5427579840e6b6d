from tests.apps import app_of, by_label, said


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
    assert "Skipped 1 file of other formats: rows\\.xyz. These are read: Text, Markdown," in said(app)
    by_label(app.button, "Close").click().run()
    assert "Skipped" not in said(app)
    app.file_uploader(key="uploader-2").set_value([("rows.xyz", b"a\tb", "")]).run()
    app.file_uploader(key="uploader-3").set_value([("other.txt", b"Another.", "")]).run()
    assert "Skipped" not in said(app)
