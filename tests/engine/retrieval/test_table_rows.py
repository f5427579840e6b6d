import pytest

from engine.retrieval.evidence import heads_above, is_row_of_heads

TABLE = "| Years | Days |\n|-------|:----:|\n| 0 to 5 | 25 |\n| over 5 | 27 |\n"


@pytest.mark.parametrize(
    ("text", "row", "heads"),
    [
        (f"Leave:\n\n{TABLE}\nAll.", "| over 5", "| Years | Days |"),
        (f"{TABLE}{TABLE.replace('Years', 'Months')}", "| 0 to 5", "| Years | Days |"),
        ("Years | Days\n--- | ---\nover 5 | 27", "over 5", "Years | Days"),
        ("|---|---|\n| over 5 | 27 |", "| over 5", ""),
        ("| 0 to 5 | 25 |\n| over 5 | 27 |", "| over 5", ""),
        (f"{TABLE}Over 5, all the same.", "Over 5", ""),
        (f"{TABLE}\n| a choice | of words |", "| a choice", ""),
    ],
)
def test_the_row_above_a_table_names_its_columns(text, row, heads):
    assert heads_above(text, text.index(row)) == heads


@pytest.mark.parametrize("line", ["| Years | Days |", "Years | Days"])
@pytest.mark.parametrize("below", ["|---|---|", "--- | :-:", "| - |"])
def test_a_row_of_heads_stands_above_a_line_of_dashes(line, below):
    assert is_row_of_heads(f"{line}\n{below}", len(line))
    assert is_row_of_heads(f"{line}\n{below}\n| 1 | 2 |", len(line))


@pytest.mark.parametrize("below", ["", "---", "| 1 | 2 |", "|||", "\n|---|"])
def test_no_other_line_is_one(below):
    assert not is_row_of_heads(f"| Years | Days |\n{below}", 16)
    assert not is_row_of_heads("| Years | Days |", 16)
