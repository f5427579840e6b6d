"""The words of a count follow its number: one document of one chunk is not “1 chunks”."""

import re

import pytest

from engine.documents.document import Document
from tests.apps import app_page, own_documents, said

TABS = ("Files", "Chunks", "Never read", "Health", "Index")
ONE = {**own_documents(Document("a.txt", "The tide turns.")), "k": 1}
NOUNS = "characters|chunks|documents|files|pairs|passages|questions|sentences|tokens|words"
WRONG = re.compile(rf"(?<![\d.,–])\b1 (?:\w+ )?(?:{NOUNS})\b")


@pytest.mark.parametrize(
    ("folder", "state"),
    [
        *(("documents", {"documents-tab": tab}) for tab in TABS),
        *((f"improve/{page}", {}) for page in ("settings", "diagnose", "poolings", "tuning", "questions")),
        *((page, {}) for page in ("ask", "inside/answer", "inside/late", "learn/decoder")),
    ],
)
def test_one_is_not_written_with_a_plural(encoder, folder, state):
    app = app_page(folder, **ONE, **state).run()
    assert not WRONG.findall(said(app))
