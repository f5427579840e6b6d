"""Small files that unpack to gigabytes, or whose parts take many times their bytes: a function a file."""

import sqlite3
from contextlib import closing
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from engine.storage.workspace import Workspace, export_workspace
from engine.storage.workspace_file import TABLES, table_digest


def of_columns(**columns):
    """A Parquet file."""
    file = BytesIO()
    parquet.write_table(pa.table(columns), file, compression="zstd", store_schema=False)
    return file.getvalue()


def repeated(value, n):
    """A column of one value, which is stored once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value]))


def long_texts(n=3000, n_characters=1_000_000):
    """Parquet: each chunk is the same text, of a million characters or as many as there are given."""
    return of_columns(
        document=repeated("a", n),
        start=np.zeros(n, int),
        end=np.full(n, n_characters),
        text=repeated("x" * n_characters, n),
        vector=pa.FixedSizeListArray.from_arrays(np.ones(n, np.float32), 1),
    )


def zeros(n_megabytes=1500):
    """NPZ: vectors of zeros."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, array in {
            "documents": np.array(["a"]),
            "starts": np.array([0]),
            "ends": np.array([1]),
            "text": np.frombuffer(b"x", np.uint8),
            "text_starts": np.array([0, 1]),
        }.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)
        with archive.open("vectors.npy", "w") as member:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_megabytes, 2**18)}
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(n_megabytes):
                member.write(bytes(2**20))
    return file.getvalue()


def collection(n=3_000_000):
    """A BEIR collection of millions of empty documents."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("corpus.jsonl", b"".join(b'{"_id":"%d","text":""}\n' % i for i in range(n)))
        archive.writestr("queries.jsonl", '{"_id":"q","text":"q"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\t1\t1\n")
    return file.getvalue()


def workspace(n=6_000_000):
    """A workspace whose settings are millions of empty lists."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(export_workspace(Workspace()))
        settings = f'{{"a": [{"[]," * n}0]}}'
        connection.execute("UPDATE settings SET content = ?", (settings,))
        rows = list(connection.execute("SELECT * FROM settings"))
        place = list(TABLES).index("settings")
        connection.execute(
            "UPDATE digests SET digest = ? WHERE position = ?", (table_digest("settings", rows), place)
        )
        connection.commit()
        return connection.serialize()


def lines(n=1_700_000):
    """JSONL of millions of empty objects."""
    return b"{}\n" * n


def brackets(n=1_600_000):
    """JSONL of one question with millions of empty lists for its passages."""
    return b'{"question": "a", "corpus_id": "a", "references": [' + b"[]," * n + b"[]]}"


def rows(n=1_300_000):
    """CSV of millions of questions."""
    return b"question,passage\n" + b"a,b\n" * n
