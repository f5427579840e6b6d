"""Glassbox's SQLite files: opened safely, marked by an application id, written in transactions."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

APPLICATION_ID = 0x47424F58  # "GBOX", in the header of every file
BUSY_SECONDS = 10.0  # timeout for a lock held by another thread or process


def connect(path: str) -> sqlite3.Connection:
    """Open an SQLite file for use in any thread, without trusting its schema."""
    connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def connect_ours(path: str) -> sqlite3.Connection:
    """Open a new or existing Glassbox file for writing; readers do not wait for writers.

    Raises `sqlite3.DatabaseError` where the file belongs to another program; it is left unchanged.
    """
    connection = connect(path)
    try:
        with transaction(connection):
            [found] = connection.execute("PRAGMA application_id").fetchone()
            if found != APPLICATION_ID:
                if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    raise sqlite3.DatabaseError("it is the database of another program")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        write_ahead(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def write_ahead(connection: sqlite3.Connection) -> None:
    """Switch on write-ahead logging, retrying while the file is locked: SQLite does not wait here itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything written in the block, or roll it back if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
