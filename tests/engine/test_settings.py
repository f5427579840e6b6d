from dataclasses import fields, replace

import pytest
import typer

from engine.documents.splitters import SPLITTERS
from engine.evaluation.grid import grid
from engine.settings import SETTINGS, SWEPT, Configuration
from tests.command_line import app


def test_a_configuration_has_the_settings_that_have_a_plural():
    assert {field.name for field in fields(Configuration)} == {
        key for key, setting in SETTINGS.items() if setting.plural
    }


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_described_and_allows_its_default(key):
    setting = SETTINGS[key]
    assert setting.help.endswith(".")
    assert all(choice.label for choice in setting.choices.values())
    if setting.default is not None and setting.has_widget:
        assert setting.allows(setting.default)
    assert not setting.allows("no such value")
    assert not setting.allows([])


def test_an_entry_of_a_table_can_be_chosen_at_once(monkeypatch):
    monkeypatch.setitem(SPLITTERS, "halves", replace(SPLITTERS["fixed"], label="Halves"))
    assert SETTINGS["splitter"].allows("halves")
    assert SETTINGS["splitter"].words("halves") == "Halves"
    assert [each.splitter for each in grid(splitter=["halves"]).configurations] == ["halves"]


def test_values_are_put_into_words():
    words = {("chunk_tokens", 1024): "1,024", ("temperature", 0.1 + 0.2): "0.3", ("think", True): "on"}
    words |= {("max_tokens", None): "the model's own", ("pooling", "own"): "the model's own"}
    words |= {("seed", None): "none", ("retriever", "bm25"): "BM25 (words)", ("model", "any"): "any"}
    assert {(key, value): SETTINGS[key].words(value) for key, value in words} == words


def test_numbers_have_a_range_and_whole_numbers_stay_whole():
    k = SETTINGS["k"]
    assert [value for value in (1, 10, 0, 11, 3.0, True) if k.allows(value)] == [1, 10]


@pytest.mark.parametrize("key", SWEPT)
def test_every_setting_that_a_sweep_varies_is_an_option_of_it(key):
    names = [parameter.name for parameter in typer.main.get_command(app).commands["sweep"].params]
    assert key in names
