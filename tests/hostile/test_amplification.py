"""Small files that would become gigabytes of text."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from engine.documents.loaders import parse_file
from tests.hostile.child import in_child


def zipped(files):
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


REPEATED_HEADER = b"h" * 60_000 + b"\n" + b"x\n" * 90_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", REPEATED_HEADER),
        ("a.zip", zipped({"a.csv": REPEATED_HEADER})),
    ],
)
def test_text_that_a_reader_repeats_is_refused_before_it_fills_the_memory(name, content):
    outcome = in_child(parse_file, name, content, megabytes=600)
    assert not outcome.error
    [failure] = outcome.result.failures
    assert "million characters" in failure.reason
    assert outcome.megabytes < 400


def test_a_long_path_in_an_archive_is_not_repeated_in_every_row():
    [failure] = parse_file("a.zip", zipped({"n" * 60_000 + ".csv": b"h\n" + b"x\n" * 9000})).failures
    assert "is a path of over 1000 characters" in failure.reason
    assert len(failure.name + failure.reason) < 1300


def test_narrow_columns_of_ordinary_files_are_read():
    rows = b"temperature_celsius,humidity_percent\n" + b"1,2\n" * 20_000
    loaded = parse_file("a.csv", rows)
    assert len(loaded.documents) == 20_000
    assert not loaded.failures
