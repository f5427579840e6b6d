"""Requests under other hosts and from other origins' pages: no session, no file and no word of one."""

import json
import urllib.request
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from tests.browser.visitor import visiting

FOREIGN = "http://attacker.example"
ROUTES = (
    "/",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/agent/openapi.json",
    "/media/x.txt",
    "/_stcore/metrics",
)


def request(url, method="GET", body=None, **headers):
    """The status, the headers and the body of an answer."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, names, method=method)) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as error:
        return error.code, error.headers, error.read()


HOSTS = (
    "attacker.example",
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "xlocalhost",
    "streamlit.app",
    "[::1]",
    "0.0.0.0",
    "169.254.169.254",
)
ORIGINS = (
    FOREIGN,
    "https://localhost.attacker.example",
    "null",
    "http://127.0.0.1.attacker.example",
    "file://",
    "http://localhost:1",
    "http://localhost",
)


def test_no_session_begins_under_another_host_or_from_the_page_of_another_origin(app):
    port = urlsplit(app).port
    for host, origin in [(f"{host}:{port}", None) for host in HOSTS] + [(None, each) for each in ORIGINS]:
        with pytest.raises(InvalidStatus, match="403"), visiting(app, host, origin):
            pass


def test_a_session_begins_from_the_apps_own_page_also_behind_a_proxy_that_encrypts(app):
    port = urlsplit(app).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        for scheme in ("http", "https"):
            with visiting(app, host, f"{scheme}://{host}") as visitor:
                assert "Ask your documents" in visitor.run()


def test_nothing_but_the_health_is_told_under_another_host(app):
    for route in ROUTES:
        status, _, body = request(f"{app}{route}", Host="attacker.example")
        assert (status, b"html" in body) == (200 if route == "/_stcore/health" else 403, False), route


def test_no_page_of_another_origin_may_read_an_answer(app):
    for route in ROUTES:
        _, headers, _ = request(f"{app}{route}", Origin=FOREIGN)
        assert headers.get("Access-Control-Allow-Origin") in (None, ""), route


def test_no_page_of_another_origin_uploads_a_file_into_a_session(app):
    with visiting(app) as visitor:
        visitor.run()
        body = b"--x\r\nContent-Disposition: form-data; name=f; filename=a.txt\r\n\r\nx\r\n--x--\r\n"
        headers = {"Origin": FOREIGN, "Content_Type": "multipart/form-data; boundary=x"}
        status, _, _ = request(f"{app}/_stcore/upload_file/{visitor.session}/1", "PUT", body, **headers)
        assert status == 403
    status, _, _ = request(f"{app}/_stcore/upload_file/no-session/1", "PUT", body, **headers)
    assert status in (400, 403)


def test_programs_that_drive_apps_are_refused(app):
    for route in ("interact", "mcp"):
        status, _, body = request(
            f"{app}/_stcore/agent/{route}", "POST", json.dumps({}).encode(), Content_Type="application/json"
        )
        assert status >= 400, route
        assert b"Ask your documents" not in body
