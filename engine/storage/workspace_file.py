"""The SQLite file of a workspace: tables, their digests, and the checks before reading."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from ..errors import UNREADABLE, DocumentError, InputError
from ..retrieval.sqlite_file import APPLICATION_ID, transaction
from ..retrieval.vector_cache import CACHE_SCHEMA
from ..wording import reason_of

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]  # by the name of the table, in the order of `position`

MAX_BYTES = 1024**3
SCHEMA_VERSION = 3  # the first had no date and tags of a document, the second no context of a chunk
# A chunk's text is a span of its document; a chunk without a vector is the parent of later chunks.
TABLES = {
    "documents": "position INTEGER PRIMARY KEY, name TEXT, title TEXT, text TEXT, sections TEXT",
    "settings": "position INTEGER PRIMARY KEY, content TEXT",
    "stamp": "position INTEGER PRIMARY KEY, model TEXT, name TEXT, pooling TEXT, max_tokens INTEGER, "
    "d_model INTEGER, idf BLOB",
    "chunks": (
        "position INTEGER PRIMARY KEY, document INTEGER, start INTEGER, stop INTEGER, n_tokens INTEGER, "
        "headings TEXT, page INTEGER, parent INTEGER, vector BLOB"
    ),
    "question_sets": "position INTEGER PRIMARY KEY, name TEXT, questions TEXT",
    "runs": "position INTEGER PRIMARY KEY, name TEXT, time TEXT, content TEXT",
}
SCHEMA = (
    *(f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()),
    "CREATE TABLE digests (position INTEGER PRIMARY KEY, digest TEXT)",  # of each table's rows, in order
)


def write_rows(connection: sqlite3.Connection, rows: Rows, saved_as: str, name: str) -> str:
    """Write the tables that changed, in one transaction, and return the digest of all."""
    digests = [table_digest(table, within_limit(table, rows[table], name)) for table in TABLES]
    with transaction(connection):
        found: list[str] = []  # the digests of the tables that are there
        if file_version(connection):
            check_schema(connection, name)
            found = read_digests(connection)
        else:
            for statement in SCHEMA:
                connection.execute(statement)
        if found and joined(found) not in (saved_as, joined(digests)):
            raise DocumentError(
                f"{name} holds another workspace, or changes of another session: open it again, or save "
                f"under another name"
            )
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for number, table in enumerate(TABLES):
            if found[number : number + 1] != [digests[number]]:
                replace_rows(connection, table, rows[table])
        replace_rows(connection, "digests", list(enumerate(digests)))
    return joined(digests)


def read_rows(connection: sqlite3.Connection, name: str) -> tuple[Rows, str]:
    """Read all tables and their common digest."""
    connection.execute("BEGIN")  # later writes of others are not seen
    check_schema(connection, name)
    for table in (*TABLES, "digests"):
        [problem] = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if problem != "ok":
            raise ValueError(f"the pages of its {table} are not in order")
    rows = {}
    for table in TABLES:
        found = connection.execute(f"SELECT * FROM {table} ORDER BY position")
        rows[table] = list(within_limit(table, found, name))
    digests = [table_digest(table, rows[table]) for table in TABLES]
    if digests != read_digests(connection):
        raise ValueError("its content has changed since it was saved")
    return rows, joined(digests)


def replace_rows(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Replace all rows of a table."""
    connection.execute(f"DELETE FROM {table}")
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def check_schema(connection: sqlite3.Connection, name: str) -> None:
    """Raise unless the schema is exactly `SCHEMA`, without views, triggers or expressions."""
    [n_pages] = connection.execute("PRAGMA page_count").fetchone()
    if not n_pages:
        raise DocumentError(f"{name} is empty: give a file that was saved as a workspace")
    [application] = connection.execute("PRAGMA application_id").fetchone()
    version = file_version(connection)
    if application != APPLICATION_ID:
        raise DocumentError(f"{name} is not a workspace: give a file that was saved as one")
    if version == 0:
        raise DocumentError(f"{name} holds no workspace yet, embeddings at most: save one in it first")
    if version > SCHEMA_VERSION:
        raise DocumentError(
            f"{name} was saved by a newer version (format {version}, this one reads {SCHEMA_VERSION}): "
            f"update Glassbox"
        )
    found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found - set(CACHE_SCHEMA) != set(SCHEMA):
        raise ValueError("its tables are not those of a workspace")


def file_version(connection: sqlite3.Connection) -> int:
    """Version of the schema; 0 if no workspace was saved."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def read_digests(connection: sqlite3.Connection) -> list[str]:
    """Stored digest of each table."""
    return [row[0] for row in connection.execute("SELECT digest FROM digests ORDER BY position")]


def table_digest(table: str, rows: Iterable[Row]) -> str:
    """SHA-256 over all values of a table with their types and lengths."""
    digest = sha256()
    for row in rows:
        for value in row:
            try:
                content = value if isinstance(value, bytes) else str(value).encode()
            except UnicodeEncodeError as error:
                raise InputError(f"one of the {table} holds half of a surrogate pair: remove it") from error
            digest.update(f"{type(value).__name__} {len(content)} ".encode())
            digest.update(content)
    return digest.hexdigest()


def joined(digests: Sequence[str]) -> str:
    """Digest of several digests."""
    return sha256("".join(digests).encode()).hexdigest()


def within_limit(table: str, rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Yield the rows of a table, or raise `DocumentError` once they exceed `MAX_BYTES`."""
    n_bytes = 0
    for row in rows:
        n_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
        if n_bytes > MAX_BYTES:
            raise DocumentError(
                f"{name} has over {MAX_BYTES / 1024**2:.0f} MB of {table}, the most a workspace holds: "
                f"remove some"
            )
        yield row


def check_bytes(name: str, n_bytes: int) -> None:
    """Raise `DocumentError` if a file's content exceeds `MAX_BYTES`."""
    if n_bytes > MAX_BYTES:
        raise DocumentError(
            f"{name} has {n_bytes / 1024**2:.0f} MB, more than the {MAX_BYTES / 1024**2:.0f} MB of an "
            f"exported workspace: remove documents or runs"
        )


@contextmanager
def as_document_errors(name: str) -> Iterator[None]:
    """Turn errors with a file into a `DocumentError` that says what to do."""
    try:
        yield
    except InputError:
        raise
    except sqlite3.Error as error:
        raise DocumentError(f"{name} {sqlite_reason(error)}") from error
    except OSError as error:
        raise DocumentError(f"{name} cannot be opened: {error.strerror or error}") from error
    except UNREADABLE as error:
        raise DocumentError(f"{name} is damaged ({reason_of(error)}): open a copy that is not") from error


def sqlite_reason(error: sqlite3.Error) -> str:
    """Explain an SQLite error to the user."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended code in the upper bits
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "is being written by another session: try again in a moment"
    if code == sqlite3.SQLITE_NOTADB or "another program" in str(error):
        return "is not a workspace: give a file that was saved as one"
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return f"cannot be written ({error}): give a file in a folder that you can write to"
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"cannot be read or written ({error}): make room on the disk"
    return f"is damaged ({reason_of(error)}): open a copy that is not"
