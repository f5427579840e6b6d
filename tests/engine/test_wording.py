"""Texts of strangers in messages and tables."""

import pytest

from engine.wording import csv_cell, error_words, printable, reason_of, without_directions


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "\n-2", "＝1", "＠x"])
def test_a_text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(text):
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["a=1", "1-2", "", "'=1", -1, -0.5, None, "a@b.c"])
def test_other_values_stay_as_they_are(value):
    assert csv_cell(value) is value


def test_a_message_has_no_line_ends_and_no_signs_that_turn_or_hide_it():
    assert printable("a\n b\0\u202ec\x1b[31m 東") == "a b c [31m 東"
    assert reason_of(ValueError("x\n" * 500)) == "x " * 100


def test_names_in_a_message_are_cut_and_paths_keep_their_parts():
    path = f"/home/{'a' * 300}/notes"
    assert error_words(f"{path} is gone") == f"/home/{'a' * 79}…/notes is gone"
    assert len(error_words("word " * 5000)) < 1100
    assert error_words(ValueError("as it is")) == "as it is"


def test_marks_of_direction_are_left_out_and_letters_are_not():
    name = "invoice\u202egpj.exe\u2066\u200f \u05e9\u05dc\u05d5\u05dd\u200d\u200c"
    assert without_directions(name) == "invoicegpj.exe \u05e9\u05dc\u05d5\u05dd\u200d\u200c"
