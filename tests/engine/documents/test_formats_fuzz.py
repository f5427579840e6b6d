import json

from hypothesis import given
from hypothesis import strategies as st

from engine.documents.loaders import parse_file, suffixes

STARTS = (
    b"",
    b"%PDF-1.4\n",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\xff\xfe",
    b"<html>",
    b'{"cells": [',
    b'{"text": "',
)


@given(st.sampled_from(suffixes()), st.sampled_from(STARTS), st.binary(max_size=200))
def test_any_bytes_give_documents_or_say_why_in_a_line(suffix, start, rest):
    name = "a" + suffix
    loaded = parse_file(name, start + rest)
    assert loaded.documents or loaded.failures
    for failure in loaded.failures:
        assert failure.name.startswith(name)
        assert "\n" not in failure.reason
    for document in loaded.documents:
        document.text.encode()
        assert document.text.strip()
        starts = [section.start for section in document.sections]
        assert starts == sorted(starts)
        assert all(0 <= place < len(document.text) for place in starts)


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))
)
def test_any_json_under_the_keys_of_a_notebook_or_a_record_is_read_or_refused(value):
    for name, content in (
        ("a.ipynb", {"cells": [value, {"cell_type": "code", "source": value}]}),
        ("a.jsonl", value),
    ):
        loaded = parse_file(name, json.dumps(content).encode())
        assert loaded.documents or loaded.failures
