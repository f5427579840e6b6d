"""Tables that screen readers can read and keys can reach: HTML where they are short, else a grid and a CSV.

Streamlit's grid is painted on a canvas; a screen reader gets only the rows in sight. It sorts and
searches, which is worth it for long tables; `show_csv` gives their numbers in another form.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

import streamlit as st

from engine.wording import csv_cell
from ui.colours import stylesheet
from ui.widgets import download

Rows = Sequence[Mapping[str, Any]]
Columns = Mapping[str, Any]  # as of `st.dataframe`: by name, from `st.column_config`

MAX_ROWS_SHOWN = 50  # of a table as HTML
ROWS_IN_SIGHT, SCROLLED_HEIGHT = 10, 440  # of a table whose rows can be selected, and its pixels with more
LONG = 40  # characters from which on a text is broken into lines
FOLDED = 160  # characters of a text that are shown before it is unfolded
NOTHING = "–"


def table_style() -> str:
    """Return the CSS of tables, for a page's one style element."""
    page = ", ".join(str(st.get_option(f"theme.{theme}.backgroundColor")) for theme in ("light", "dark"))
    return stylesheet(Path(__file__).with_name("tables.css"), page=page)


def show_table(rows: Rows, alt: str, columns: Columns | None = None, key: str = "") -> None:
    """Draw rows as a table whose cells can all be read without a mouse.

    A column that a row lacks is empty there. ``alt`` is the table in words, for screen readers; ``columns``
    are as `st.dataframe` takes them; ``key`` is that of a long table's download, if ``alt`` is not unique.
    """
    if len(rows) > MAX_ROWS_SHOWN:
        st.dataframe(rows, hide_index=True, column_config=columns, placeholder=NOTHING, alt=alt)
        show_csv(rows, key or alt)
    elif rows:
        st.html(table_html(rows, alt, columns))


def show_selectable(
    rows: Rows, alt: str, columns: Columns, key: str, on_select: Callable[[int | None], None]
) -> None:
    """Draw rows as `show_table`; one can be selected: ``on_select`` gets its place, or None."""

    def select() -> None:
        picked = st.session_state[key].selection.rows
        on_select(picked[0] if picked else None)

    st.dataframe(
        rows,
        hide_index=True,
        height="content" if len(rows) <= ROWS_IN_SIGHT else SCROLLED_HEIGHT,
        column_config=columns,
        key=key,
        on_select=select,
        selection_mode="single-row",
        alt=alt,
    )


def show_csv(rows: Rows, key: str, name: str = "table") -> None:
    """Draw the download of a table's rows, as a file of a name; ``key`` is unique on the page."""
    words = "Every row of the table above."
    download("CSV", lambda: rows_csv(rows), f"{name}.csv", words, f"csv-{key}", "tertiary")


def rows_csv(rows: Rows) -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    writer, names = csv.writer(text, lineterminator="\n"), names_of(rows)
    writer.writerow(map(csv_cell, names))
    writer.writerows([csv_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def names_of(rows: Rows) -> list[str]:
    """Return the names of all columns, in the order in which rows have them."""
    return list(dict.fromkeys(chain.from_iterable(rows)))


def table_html(rows: Rows, alt: str, columns: Columns | None = None) -> str:
    """Return rows as an HTML table, escaped, and below it the help of its columns; as `show_table`."""
    configs = {name: dict((columns or {}).get(name) or {}) for name in names_of(rows)}
    labels = {name: str(config.get("label") or name) for name, config in configs.items()}
    numeric = {name for name in configs if any(is_number(row.get(name)) for row in rows)}
    named = next(iter(configs))  # the column that names a row, unless it has numbers
    head = "".join(
        f'<th scope="col"{classes("number" if name in numeric else "")}{tooltip(config.get("help"))}>'
        f"{escape(labels[name])}</th>"
        for name, config in configs.items()
    )
    body = "".join(
        "<tr>"
        + "".join(
            cell_html(row.get(name), config, name in numeric, name == named and name not in numeric)
            for name, config in configs.items()
        )
        + "</tr>"
        for row in rows
    )
    helps = {labels[name]: config["help"] for name, config in configs.items() if config.get("help")}
    pairs = "".join(f"<dt>{escape(label)}</dt><dd>{escape(words)}</dd>" for label, words in helps.items())
    folded = f"<summary>Columns explained</summary><dl>{pairs}</dl>"  # a tooltip needs a mouse
    return (
        f'<div class="gb-table" role="region" aria-label="{escape(alt)}" tabindex="0"><table>'
        f"<caption>{escape(alt)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    ) + (f'<details class="gb-columns">{folded}</details>' if helps else "")


def cell_html(value: object, config: Mapping[str, Any], is_numeric: bool, names_row: bool) -> str:
    """Return a cell; a long text is folded after `FOLDED` characters."""
    kind, text = config.get("type_config") or {}, value_text(value, config)
    style = "number" if is_numeric else "long" if len(text) > LONG else ""
    inner = escape(text)
    if kind.get("type") == "progress" and is_number(value):
        share = min(max((value - kind["min_value"]) / (kind["max_value"] - kind["min_value"]), 0.0), 1.0)
        inner = f'<span class="bar"><span style="width:{share:.0%}"></span></span>{inner}'
    elif len(text) > FOLDED:
        first, rest = escape(text[:FOLDED]), escape(text[FOLDED:])
        inner = f"<details><summary>{first}…</summary>…{rest}</details>"
    attributes = classes(style) if is_numeric else f'{classes(style)} dir="auto"'
    return f'<th scope="row"{attributes}>{inner}</th>' if names_row else f"<td{attributes}>{inner}</td>"


def value_text(value: object, config: Mapping[str, Any]) -> str:
    """Return a value as `st.dataframe` shows it in a column of this format."""
    number_format = (config.get("type_config") or {}).get("format")
    if value is None or (is_number(value) and math.isnan(value)):
        return NOTHING
    if not is_number(value):
        return str(value)
    if number_format == "percent":
        return f"{value:.1%}"
    if number_format and "%" in number_format:
        return str(number_format % value)
    return f"{value:,}" if isinstance(value, Integral) else f"{value:,.3f}"


def is_number(value: object) -> TypeGuard[Real]:
    """Return whether a value is a number, of Python or of NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def classes(name: str) -> str:
    """Return the attribute of a CSS class, if any."""
    return f' class="{name}"' if name else ""


def tooltip(words: str | None) -> str:
    """Return the attribute of a tooltip, if any."""
    return f' title="{escape(words)}"' if words else ""
