"""The origins of pages that are the app's own."""

import pytest

from ui.own_server import is_own


@pytest.mark.parametrize(
    ("origin", "host", "is_secure", "expected"),
    [
        ("http://localhost:8501", "localhost:8501", False, True),
        ("http://LOCALHOST:8501", "localhost:8501", False, True),
        ("https://a.example", "a.example", False, True),  # a proxy ends the encryption
        ("https://a.example:443", "a.example", True, True),
        ("http://a.example", "a.example:80", False, True),
        ("http://[::1]:8501", "[::1]:8501", False, True),
        ("http://localhost:9999", "localhost:8501", False, False),
        ("http://localhost", "localhost:8501", False, False),
        ("http://127.0.0.1:8501", "localhost:8501", False, False),
        ("http://a.example:443", "a.example", True, False),
        ("ftp://localhost:8501", "localhost:8501", False, False),
        ("null", "localhost:8501", False, False),
        ("http://[", "localhost:8501", False, False),
        ("http://localhost:x", "localhost:8501", False, False),
        ("", "localhost:8501", False, False),
    ],
)
def test_a_page_is_the_apps_own_by_scheme_host_and_port(origin, host, is_secure, expected):
    assert is_own(origin, host, is_secure) is expected
