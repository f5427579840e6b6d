import re
import tomllib
from pathlib import Path

import pytest

from ui import colours

ROOT = Path(__file__).parents[2]
FOLDERS, KINDS = ("engine", "pages", "ui"), (".py", ".css", ".js")
FOUND = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in KINDS]
FILES = [ROOT / "streamlit_app.py", *FOUND]
THEMES = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
READABLE = 4.5  # the least contrast of text by WCAG 2.2, success criterion 1.4.3
# All translucent colours that ui.colours names, and the strongest paints.
MARKS = {
    *re.findall("#[0-9A-F]{6}[0-9a-f]{2}", str(vars(colours))),
    *(colours.paint(hue, 1) for hue in (colours.BLUE, colours.ORANGE)),
}


def over(colour, page):
    """Red, green and blue from 0 to 1 of a colour, which may be translucent, on a page."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in range(1, len(colour), 2)]
    return blend(channels[:3], channels[3], page) if channels[3:] else channels


def blend(above, opacity, below):
    return [opacity * a + (1 - opacity) * b for a, b in zip(above, below, strict=True)]


def contrast(first, second):
    """Contrast ratio of two colours by WCAG 2.2."""
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.fixture(params=["light", "dark"])
def theme(request):
    """The colours of a page's background and of its text."""
    return [over(THEMES[request.param][name], None) for name in ("backgroundColor", "textColor")]


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_text_is_readable_on_every_mark(theme, mark):
    page, text = theme
    assert contrast(text, over(mark, page)) >= READABLE


@pytest.mark.parametrize(
    "mark", [None, colours.REMOVED, colours.TEXT_TOKEN, colours.SPECIAL_TOKEN, colours.SECOND_TEXT_TOKEN]
)
def test_faint_text_is_readable_where_it_stands(theme, mark):
    page, text = theme
    background = over(mark, page) if mark else page
    faint = blend(text, float(colours.FAINT.removeprefix("opacity:")), background)
    assert contrast(faint, background) >= READABLE


def test_no_other_module_has_a_colour_of_its_own():
    hexadecimal = r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b"
    coloured = [file for file in FILES if re.search(rf"{hexadecimal}|\brgba?\(", file.read_text("utf-8"))]
    assert coloured == [ROOT / "ui" / "colours.py"]


def test_categories_differ_and_sources_have_colours_of_their_own_until_these_run_out():
    assert len(set(colours.CATEGORIES)) == len(colours.CATEGORIES)
    n = len(colours.SOURCE_MARKS)
    assert len({colours.source_colour(number) for number in range(1, n + 1)}) == n
    assert colours.source_colour(n + 1) == colours.source_colour(1)


@pytest.mark.parametrize("hue", [*colours.CATEGORIES, colours.GREY])
def test_text_is_readable_on_every_full_hue(hue):
    assert contrast(over(colours.ink(hue), None), over(hue, None)) >= READABLE


def test_a_faded_colour_is_the_same_hue():
    assert colours.faded(colours.BLUE, 0.65) == "rgba(0,114,178,0.65)"
