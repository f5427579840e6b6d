"""Texts of strangers in messages and tables."""

import pytest

from engine.wording import csv_cell, printable, reason_of


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "\n-2", "＝1", "＠x"])
def test_a_text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(text):
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["a=1", "1-2", "", "'=1", -1, -0.5, None, "a@b.c"])
def test_other_values_stay_as_they_are(value):
    assert csv_cell(value) is value


def test_a_message_has_no_line_ends_and_no_signs_that_turn_or_hide_it():
    assert printable("a\n b\0\u202ec\x1b[31m 東") == "a b c [31m 東"
    assert reason_of(ValueError("x\n" * 500)) == "x " * 100
