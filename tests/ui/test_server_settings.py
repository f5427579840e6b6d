"""The settings of the server: a public one refuses what its operator did not name, and keeps nothing."""

import tomllib

import pytest
from streamlit import config

from engine.errors import InputError
from tests.apps import ROOT, app_of, said
from ui import server_settings

OTHERS = ("/etc/passwd", "/no/such/file.gguf", "owner/name", ".", "http://10.0.0.7/v1", "http://a:1#model")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("yes", True), ("ture", True), ("0", False), (" Off ", False), ("", False)],
)
def test_any_value_that_does_not_say_no_makes_a_server_public(monkeypatch, value, expected):
    monkeypatch.setenv(server_settings.PUBLIC, value)
    assert server_settings.is_public() is expected


def test_secrets_are_settings_where_there_is_no_variable(monkeypatch):
    monkeypatch.delenv(server_settings.PUBLIC, raising=False)
    assert not server_settings.is_public()
    for value in (True, "1", 1):
        monkeypatch.setattr(server_settings.st, "secrets", {server_settings.PUBLIC: value})
        assert server_settings.is_public()
    monkeypatch.setenv(server_settings.PUBLIC, "0")
    assert not server_settings.is_public()


def test_a_public_server_refuses_every_other_model_with_one_message(monkeypatch):
    monkeypatch.setenv(server_settings.PUBLIC, "0")
    for source in OTHERS:
        server_settings.check_source(source)
    monkeypatch.setenv(server_settings.PUBLIC, "1")
    messages = set()
    for source in OTHERS:
        with pytest.raises(InputError, match="uses no models but") as refusal:
            server_settings.check_source(source)
        messages.add(str(refusal.value))
    assert len(messages) == 1
    server_settings.check_source(server_settings.DECODER)


def test_a_public_server_uses_the_servers_that_its_operator_lists(monkeypatch):
    monkeypatch.setenv(server_settings.PUBLIC, "1")
    monkeypatch.setenv(server_settings.SERVERS, "http://models:8000/v1, https://b.example")
    for address in ("http://models:8000", "http://models:8000/v1/", "https://b.example#bge"):
        server_settings.check_source(address)
    for address in ("http://models:8001/v1", "http://models:8000/v1@10.0.0.7", "https://b.example.org"):
        with pytest.raises(InputError):
            server_settings.check_source(address)


@pytest.mark.parametrize(
    ("public", "whole"), [("0", server_settings.OWN_LIMITS), ("1", server_settings.PUBLIC_LIMITS)]
)
def test_the_server_takes_what_its_boxes_offer_and_no_more(monkeypatch, public, whole):
    monkeypatch.setenv(server_settings.PUBLIC, public)
    file = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    option, of_tests = "server.maxUploadSize", config.get_option("server.maxUploadSize")
    for taken in (file["server"]["maxUploadSize"], 4):  # as it is, and as an operator may set it
        config.set_option(option, taken)
        server_settings.bound_uploads()
        most = min(whole.document_mb, taken), min(whole.workspace_mb, taken)
        assert (server_settings.limits().document_mb, server_settings.limits().workspace_mb) == most
        assert config.get_option(option) == server_settings.limits().workspace_mb
    config.set_option(option, of_tests)
    crowded = server_settings.CROWDED_MB if public == "1" else whole.reading.megabytes
    for used, megabytes in ((0, whole.reading.megabytes), (server_settings.CROWDED + 1, crowded)):
        monkeypatch.setattr("ui.server_settings.memory_in_use", lambda process, used=used: used)
        assert server_settings.limits().reading.megabytes == megabytes
    assert file["server"]["maxUploadSize"] >= whole.workspace_mb


def picker():
    from pages.ask.model_choice import model_picker

    model_picker()


@pytest.mark.parametrize("wanted", ["/dev", "/no/such/file.gguf", "owner/name"])
def test_visitors_of_a_public_server_cannot_tell_whether_a_file_exists(monkeypatch, decoder, wanted):
    monkeypatch.setenv(server_settings.PUBLIC, "1")
    app = app_of(picker, wanted_decoder=wanted).run()
    assert not app.selectbox  # neither a server nor another model can be chosen
    assert not app.radio
    assert "Built-in model: " in said(app)
    assert wanted not in said(app)
    with pytest.raises(InputError, match="uses no models but"):
        server_settings.check_source(wanted)


def test_a_public_server_connects_to_no_other_address(monkeypatch, decoder):
    monkeypatch.setenv(server_settings.PUBLIC, "1")
    monkeypatch.setenv(server_settings.SERVERS, "http://127.0.0.1:9/v1")
    asked = []
    monkeypatch.setattr("pages.ask.model_choice.server_models", lambda *address: asked.append(address))
    with pytest.raises(AssertionError, match="ended by an exception"):
        app_of(picker, writer="A server", server_url="http://10.0.0.7/v1").run()
    assert not asked


def test_a_public_server_keeps_nothing_whatever_else_is_set(monkeypatch, tmp_path):
    from ui.data_folder import data_folder

    monkeypatch.setenv(server_settings.WORKSPACES, str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv(server_settings.PUBLIC, "1")
    assert data_folder() is None
