"""Sixteen sessions with secrets at once: none is seen by another, written to a log, or left on the disk."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

import pytest

from tests.browser.conftest import serve
from tests.browser.visitor import visiting
from ui.server_settings import PUBLIC, WORKSPACES

N_SESSIONS, N_ASKING = 16, 4
PAGES = ("documents", "settings", "questions", "poolings", "")


@dataclass(frozen=True)
class Secrets:
    """What one visitor types: in the name of a document, its heading, its text, and a question about it."""

    number: int

    def of(self, place):
        return f"{place}{sha256(f'{place} {self.number}'.encode()).hexdigest()[:12]}"

    @property
    def name(self):
        return self.of("name")

    @property
    def text(self):
        line = f"The vault of {self.of('owner')} opens with {self.of('code')}. "
        return f"# {self.of('heading')}\n\n{line * 20}"

    @property
    def question(self):
        return f"What opens the vault of {self.of('asker')}?"

    @property
    def all(self):
        return [self.of(place) for place in ("name", "heading", "owner", "code", "asker")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("public")


@pytest.fixture(scope="module")
def received(app, folder):
    """What each visitor of a public server received."""
    environment = {PUBLIC: "1", WORKSPACES: str(folder / "data"), "TMPDIR": str(folder)}

    def visit(number):
        secrets = Secrets(number)
        with visiting(url) as visitor:
            visitor.open("documents")
            visitor.run(**{"Name": secrets.name, "Text": secrets.text, "Add it": None})
            for page in PAGES:
                visitor.open(page)
            if number < N_ASKING:
                visitor.run(**{"Your question": secrets.question, "Ask": None})
            return visitor.received.decode("utf-8", "replace")

    with serve(folder / "log.txt", **environment) as url, ThreadPoolExecutor(N_SESSIONS) as pool:
        return list(pool.map(visit, range(N_SESSIONS)))


def test_every_visitor_sees_what_they_brought_and_nothing_of_another(received):
    for number, text in enumerate(received):
        secrets = Secrets(number)
        assert secrets.name in text
        if number < N_ASKING:
            assert all(secret in text for secret in secrets.all)
        others = [secret for other in range(N_SESSIONS) if other != number for secret in Secrets(other).all]
        assert not [secret for secret in others if secret in text], number


def test_a_public_server_writes_nothing_of_it(received, folder):
    secrets = [secret.encode() for number in range(N_SESSIONS) for secret in Secrets(number).all]
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not [secret for secret in secrets if secret in content], path
