"""What a server takes of the machine, memory and watched files; visitors use it without a browser."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from benchmarks.memory import LIMITS, N_SESSIONS, PAGES, QUESTION, READY, SESSIONS, memory_mb
from tests.browser.conftest import TITLES, served
from tests.browser.visitor import visiting
from ui.server_settings import PUBLIC

PATIENCE_S = 60  # until memory that is not used any more is given back; what is sooner is not waited for


def given_back(server, most_mb):
    """Wait until a server has no more memory than it may; return the megabytes."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := memory_mb(server)) > most_mb and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def test_the_memory_of_a_public_server_stays_within_its_limits(app, tmp_path):
    def ask(_):
        with visiting(url) as visitor:
            visitor.open()
            visitor.run(**{"Your question": QUESTION, "Ask": None})

    with served(tmp_path / "log.txt", **{PUBLIC: "1"}) as (url, server), visiting(url) as first:
        first.open()
        assert given_back(server, LIMITS[READY]) <= LIMITS[READY]
        for address in TITLES:
            first.open(address)
        assert given_back(server, LIMITS[PAGES]) <= LIMITS[PAGES]
        with ThreadPoolExecutor(N_SESSIONS) as pool:
            list(pool.map(ask, range(N_SESSIONS)))
        assert given_back(server, LIMITS[SESSIONS]) <= LIMITS[SESSIONS]


def test_a_server_watches_no_files(app, process):
    with visiting(app) as visitor:
        visitor.open()
        for opened in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                assert "inotify" not in str(opened.readlink())
