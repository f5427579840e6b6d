"""“Best settings” with another model that is on a server."""

import pytest

from engine.documents.document import Document
from engine.evaluation.questions import Question, Reference, question_fields
from engine.settings import Configuration
from engine.storage.workspace import Workspace
from pages.improve.settings.experiments import Experiment, server_key
from pages.improve.settings.export import command_line
from pages.improve.settings.grid import default_name
from tests.apps import app_page, by_label, own_documents, said
from tests.embedding_server import embedding_server

TEXT = "Nobody had much to say that year. A forager dances the way to the flowers. " * 3
PASSAGE = "A forager dances"
KEY = "gl4ss-s3cret"


@pytest.fixture
def page(encoder):
    start = TEXT.index(PASSAGE)
    question = Question("Who dances?", "bees", (Reference(PASSAGE, start, start + len(PASSAGE)),))
    workspace = Workspace(question_sets={"mine.jsonl": [question_fields(question)]})
    own = own_documents(Document("bees.md", TEXT))
    return app_page("improve/settings", **own, workspace=workspace).run()


def configurations(app):
    return int(by_label(app.metric, "Configurations").value)


def test_a_server_is_compared_once_it_has_its_key(page, encoder):
    with embedding_server(encoder.encode, key=KEY) as server:
        alone = configurations(page)
        page.text_input(key="grid-model").set_value(server.address).run()
        [error] = page.error
        assert "401" in error.value
        assert "The grid uses" in error.value
        assert configurations(page) == alone
        page.text_input(key=server_key(server.address)).set_value(KEY).run()
        assert KEY not in said(page)
        assert not page.error
        assert configurations(page) > alone
        assert not any("is not measured at all" in warning.value for warning in page.warning)
        with embedding_server(encoder.encode, key=KEY) as other:  # which does not get to know the key
            page.text_input(key="grid-model").set_value(other.address).run()
            assert "401" in page.error[0].value


def test_an_answer_of_a_server_is_escaped(page):
    with embedding_server(lambda texts: [[1]], status=lambda *_: (400, "<b>*too long*</b>")) as server:
        page.text_input(key="grid-model").set_value(server.address).run()
    [error] = page.error
    assert "<b>" not in error.value.replace("\\<", "")
    assert r"\*too long\*" in error.value


def test_the_limit_of_a_server_is_no_value_to_measure():
    configurations = (
        Configuration(max_tokens=256),
        Configuration(max_tokens=256, k=3),
        Configuration(model="http://localhost:1#mini", k=3),
    )
    assert default_name(configurations) == "2 models"
    line = command_line(Experiment("run", "now", ("a.md",), "0", (), configurations)).splitlines()[0]
    assert "--max-tokens 256 " in line
