import pytest

from engine.documents.document import Document
from tests.apps import app_page, said, tables

TEXT = "The tide turns twice a day. " * 100


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (64, "**1 document in 8 chunks: 8 lose their end.**"),
        (256, "**1 document in 8 chunks, each read whole:**"),
    ],
)
def test_what_the_encoder_reads_of_the_chunks_is_said_first(limit, words):
    own = {"uploads": {"tide.md": (Document("tide.md", TEXT),)}, "searched": ["tide.md"]}
    app = app_page("documents", **own, chunk_tokens=96, max_tokens=limit).run()
    assert words in said(app)
    [table] = tables(app)
    assert table["Chunks"].tolist() == [8]


def test_without_text_nothing_is_claimed():
    own = {"uploads": {"empty.md": (Document("empty.md", ""),)}, "searched": ["empty.md"]}
    app = app_page("documents", **own).run()
    assert "read whole" not in said(app)
