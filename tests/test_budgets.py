"""No folder has more lines of Python than ARCHITECTURE.md allows; `python -m tests.test_budgets` counts."""

import re

from tests.command_line import ROOT

ROW = re.compile(r"^\| `([\w/*. ]+)` \| ([\d,]+) \|", re.MULTILINE)
PRODUCT = "engine pages ui streamlit_app.py"


def files(places):
    """The Python files of folders, or those that patterns match."""
    found = (ROOT.glob(f"{place}/**/*.py" if (ROOT / place).is_dir() else place) for place in places.split())
    return [path for paths in found for path in paths]


def n_lines(places):
    return sum(path.read_bytes().count(b"\n") for path in files(places))


def budgets():
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Budgets\n")[1].split("\n## ")[0]
    return {places: int(most.replace(",", "")) for places, most in ROW.findall(table)}


def test_no_folder_has_more_lines_than_its_budget():
    assert {places: n for places, most in budgets().items() if (n := n_lines(places)) > most} == {}


def test_every_file_of_the_product_is_in_a_folder_with_a_budget():
    covered = {path for places in budgets() if places != PRODUCT for path in files(places)}
    assert set(files(PRODUCT)) - covered == set()


if __name__ == "__main__":
    for places, most in budgets().items():
        print(f"{places:35} {n_lines(places):7,} of {most:7,}")
