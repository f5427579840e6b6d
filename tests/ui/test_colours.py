import re
from pathlib import Path

from ui.colours import BLUE, CATEGORIES, SOURCE_MARKS, faded, source_colour

ROOT = Path(__file__).parents[2]
FOLDERS = ("engine", "pages", "ui")
FILES = [ROOT / "streamlit_app.py", *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))]


def test_no_other_module_has_a_colour_of_its_own():
    hexadecimal = r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b"
    coloured = [file for file in FILES if re.search(rf"{hexadecimal}|\brgba?\(", file.read_text("utf-8"))]
    assert coloured == [ROOT / "ui" / "colours.py"]


def test_sources_have_colours_of_their_own_until_these_run_out():
    n = len(SOURCE_MARKS)
    assert len({source_colour(number) for number in range(1, n + 1)}) == n
    assert source_colour(n + 1) == source_colour(1)


def test_categories_differ():
    assert len(set(CATEGORIES)) == len(CATEGORIES)


def test_a_faded_colour_is_the_same_hue():
    assert faded(BLUE, 0.65) == "rgba(0,114,178,0.65)"
