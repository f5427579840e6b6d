"""GGUF files whose numbers lie: one short line within a second, and never a traceback or gigabytes."""

import os
import struct

import pytest

from engine.weights.gguf_file import GGUF
from tests.hostile.child import in_child

U8, U32, F32, STRING, LIST, U64 = 0, 4, 6, 8, 9, 10


def text(content):
    content = content.encode()
    return struct.pack("<Q", len(content)) + content


def listed(kind, n, content=b""):
    return struct.pack("<IQ", kind, n) + content


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def place(name, shape, start, kind=0):
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, start)


def file_of(keys=(), places=(), n_keys=None, n_tensors=None, data=b""):
    counts = struct.pack(
        "<QQ", len(places) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys
    )
    header = b"GGUF" + struct.pack("<I", 3) + counts + b"".join((*keys, *places))
    return header + b"\0" * (-len(header) % 32) + data


def nested(depth):
    return b"".join(listed(LIST, 1) for _ in range(depth)) + listed(U8, 1, b"x")


MILLION = 10**6
CASES = {
    "alignment 0": file_of([key("general.alignment", U32, struct.pack("<I", 0))]),
    "alignment text": file_of([key("general.alignment", STRING, text("a"))]),
    "alignment list": file_of([key("general.alignment", LIST, listed(U8, 1, b"x"))]),
    "alignment NaN": file_of([key("general.alignment", F32, struct.pack("<f", float("nan")))]),
    "alignment 3": file_of([key("general.alignment", U32, struct.pack("<I", 3))]),
    "text of 2**63": file_of([struct.pack("<Q", 2**63 - 1) + b"a" * 64]),
    "text of 2**64 - 1": file_of([struct.pack("<Q", 2**64 - 1) + b"a" * 64]),
    "texts of 2**64 - 1": file_of(
        [key("a", LIST, listed(STRING, 2, struct.pack("<Q", 2**64 - 1) + b"a" * 64))]
    ),
    "list of 2**63": file_of([key("a", LIST, listed(U8, 2**63))]),
    "lists 500 deep": file_of([key("a", LIST, nested(500))]),
    "lists 100,000 deep": file_of([key("a", LIST, nested(100_000))]),
    "a million empty lists": file_of([key("a", LIST, listed(LIST, MILLION, listed(U8, 0) * MILLION))]),
    "5 million empty texts": file_of([key("a", LIST, listed(STRING, 5 * MILLION, b"\0" * 40 * MILLION))]),
    "5 million numbers": file_of([key("a", LIST, listed(U8, 5 * MILLION, b"x" * 5 * MILLION))]),
    "many lists": file_of([key(f"{i}", LIST, listed(U8, 3 * MILLION, b"x" * 3 * MILLION)) for i in range(2)]),
    "200,000 nameless tensors": file_of(places=[place("", (), 0) * 200_000], n_tensors=200_000),
    "tensors of 2**60": file_of(n_tensors=2**60),
    "two tensors of one name": file_of(places=[place("w", (8,), 0), place("w", (8,), 32)], data=b"x" * 64),
    "type of metadata": file_of([key("a", 99, b"x" * 8)]),
    "type of a tensor": file_of(places=[place("w", (8,), 0, 99)], data=b"x" * 32),
    "axes of a tensor": file_of(places=[place("w", (1,) * 100_000, 0)], data=b"x" * 32),
    "tensor of 2**126": file_of(places=[place("w", (2**63, 2**63), 0)], data=b"x" * 32),
    "overlapping tensors": file_of(places=[place("v", (16,), 0), place("w", (16,), 32)], data=b"x" * 128),
    "unaligned tensor": file_of(places=[place("w", (8,), 5)], data=b"x" * 64),
    "tensor far away": file_of(places=[place("w", (8,), 2**63)], data=b"x" * 64),
    "rows of no whole blocks": file_of(places=[place("w", (33, 32), 0, 2)], data=b"x" * 4096),
    "tensor of no rows": file_of(places=[place("w", (0, 8), 0)], data=b"x" * 64),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_lies_is_refused_by_one_short_line(tmp_path, case):
    path = tmp_path / "x.gguf"
    path.write_bytes(CASES[case])
    outcome = in_child(GGUF, path, seconds=10, megabytes=400)
    assert outcome.error == "ModelFileError"
    is_incomplete = outcome.message.startswith(f"{path} is not a complete GGUF file")
    assert is_incomplete or "unknown type" in outcome.message
    assert len(outcome.message) < 300
    assert "\n" not in outcome.message


def test_weights_that_are_not_finite_are_found(tmp_path):
    path = tmp_path / "x.gguf"
    places = [place("single", (32,), 0), place("brain", (4,), 128, 30), place("good", (32,), 160)]
    nan, infinite = struct.pack("<32f", *[1.0] * 31, float("nan")), b"\x80\x7f" * 4
    path.write_bytes(file_of(places=places, data=nan + infinite + bytes(24 + 128)))
    file = GGUF(path)
    found = [file.tensor(name).is_finite() for name in ("single", "brain", "good")]
    assert found == [False, False, True]


def read_after_cut(path):
    file = GGUF(path)
    with path.open("r+b") as shorter:
        shorter.truncate(4096)
    return file.tensor("w").float32().sum()


def test_a_file_that_shrinks_while_it_is_open_ends_no_process(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(file_of(places=[place("w", (64, 1024), 0)], data=b"\0" * 64 * 1024 * 4))
    outcome = in_child(read_after_cut, path)
    assert outcome.error == "ModelFileError"
    assert "it ends within tensor 'w'" in outcome.message


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "x.gguf")
    outcome = in_child(GGUF, tmp_path / "x.gguf", seconds=5)
    assert "not a regular file" in outcome.message
