import json

import pytest

from engine.cli.settings_file import as_options, read_settings
from engine.export.libraries import LIBRARIES
from engine.settings import SETTINGS, named_settings
from tests.apps import app_of, said
from ui.export_as_code import SETTINGS_FILE, settings_file
from ui.setting_values import configuration_of, default_settings


def card(**changed):

    from ui.documents import bundled_documents
    from ui.models import load_encoder
    from ui.settings_card import show_settings_card

    show_settings_card(bundled_documents(), load_encoder())


def opened(**state):
    """The settings card after a click on its button."""
    return app_of(card, **state).run().button(key="export-as-code").click().run()


def script(app):
    return next(each.value for each in app.code if each.language == "python")


@pytest.mark.parametrize("to", LIBRARIES)
def test_the_settings_in_use_are_written_for_each_library(to):
    app = opened(**{"export-as-code-library": to}, chunk_tokens=64, overlap=8, retriever="dense", k=3)
    assert LIBRARIES[to].package in script(app)
    assert "CHUNK_TOKENS = 64" in script(app)
    assert "OVERLAP = 8" in script(app)
    assert "K = 3" in script(app)
    assert "Not carried over" not in said(app)


def test_settings_that_are_left_out_are_listed():
    assert "Not carried over:\n- the precision int8" in said(opened(precision="int8"))


def test_the_command_line_and_python_take_the_file_of_settings(tmp_path, encoder):
    values = default_settings(encoder) | {"splitter": "paragraphs", "chunk_tokens": 64, "write": True, "k": 2}
    path = tmp_path / SETTINGS_FILE
    path.write_text(settings_file(configuration_of(values), 256, values), encoding="utf-8")
    read = as_options(read_settings(path, SETTINGS))
    wanted = {"splitter": "paragraphs", "chunk_tokens": "64", "parent_tokens": "256", "k": "2"}
    wanted |= {"write": "True", "answer_threshold": "0.57", "model": encoder.name}
    assert read.items() >= wanted.items()
    assert not {"top_k", "temperature", "seed"} & set(read)  # off
    given = json.loads(path.read_text(encoding="utf-8"))
    assert named_settings(given, ("cut", "embedding", "search", "answer")) == given
