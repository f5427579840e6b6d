"""The app's own configuration: it listens on this machine, and answers under this machine's names alone."""

import tomllib
from pathlib import Path

import pytest
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

SERVER = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["server"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:8501", True),
        ("127.0.0.1:8501", True),
        ("glassbox.streamlit.app", True),
        ("streamlit.app.example", False),
        ("rebound.example:8501", False),  # a web page's host name that leads to this machine
        ("localhost.example", False),
        ("", False),
        (None, False),
    ],
)
def test_a_web_page_cannot_drive_the_app_by_a_host_name_that_leads_to_it(monkeypatch, host, expected):
    assert SERVER["address"] == "127.0.0.1"
    options = {"server.allowedHosts": SERVER["allowedHosts"]}
    monkeypatch.setattr(config, "get_option", options.__getitem__)
    assert is_host_allowed(host) is expected
