"""SQLite files of ours: opened with care, marked as ours, written in transactions."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

APPLICATION_ID = 0x47424F58  # "GBOX", in the header of every file
BUSY_SECONDS = 10.0  # that a writer waits for another thread or process to finish


def connect(path: str) -> sqlite3.Connection:
    """Open an SQLite file, for any thread; nothing that its schema holds is trusted."""
    connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def connect_ours(path: str) -> sqlite3.Connection:
    """Open a file of ours to write to, new or old, in which readers need not wait for writers.

    Raises
    ------
    sqlite3.DatabaseError
        It is another program's; not a byte of it was changed.
    """
    connection = connect(path)
    try:
        with transaction(connection):
            stamp(connection)
        write_ahead(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def write_ahead(connection: sqlite3.Connection) -> None:
    """Let writers append to a log beside the file; SQLite itself does not wait for others here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def stamp(connection: sqlite3.Connection) -> None:
    """Mark an empty file as ours; raise for one that is another's."""
    [found] = connection.execute("PRAGMA application_id").fetchone()
    if found == APPLICATION_ID:
        return
    if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise sqlite3.DatabaseError("it is the database of another program")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written in the block is kept, or, where it raises, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
