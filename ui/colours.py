"""Every colour of the app, named by what it stands for: no other module has a hexadecimal colour.

The hues are Okabe and Ito's, which colour-blind people can tell apart. Plotly and CSS both read them; a
hue followed by two hexadecimal digits is translucent, so that text reads through it in both themes.
"""

from pathlib import Path
from string import Template

# The hues of figures. What each stands for in one figure is said by its legend or its title.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, VERMILION, YELLOW = "#56B4E9", "#D55E00", "#F0E442"
GREY = "#8C8C8C"  # the rest: baselines, axes, whatever comes after the last category
WHITE, BLACK = "#FFFFFF", "#000000"

# Categories in one figure (documents, groups, strategies), in order of use.
CATEGORIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)

# Plotly's scales of heat maps; both read the same to colour-blind eyes.
SEQUENTIAL, DIVERGING = "Cividis", "RdBu"
# Cividis without its darkest end, which dark pages swallow: points by their cosine.
COSINE_SCALE = ["#35456C", "#666970", "#948E77", "#C8B866", "#FEE838"]
# Scales of maps with numbers in their cells, light enough for black ones: the second half of Cividis, and two
# hues that the eye tells apart as it does those of RdBu.
NUMBERED = ("#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838")
NUMBERED_DIVERGING = (VERMILION, WHITE, SKY)
# From light to dark, so that it reads without colour, and light enough for black numbers.
DIFFERENCE_SCALE = ((0, WHITE), (1, SKY))

# Text by what it is. The sources of an answer by number, and the chunks of a document in turn.
SOURCE_MARKS = tuple(f"{hue}55" for hue in (ORANGE, SKY, GREEN, YELLOW, PURPLE, VERMILION, BLUE))
CHUNK_TINTS = tuple(f"{hue}55" for hue in (SKY, ORANGE, GREEN))
PASSAGE = f"{SKY}55"
NEVER_READ = f"{VERMILION}26"
REMOVED = f"{VERMILION}33"
QUOTE_EDGE = LINE = f"{GREY}66"  # next to quotes, and between the rows of a table
# Opacity of the strongest paint behind text by its weight: orange on dark pages allows no more.
STRONGEST = 0.55
FAINT = "opacity:0.8"  # CSS of text that matters less
# Tokens: of the text, special ones, of the second text of a pair.
TEXT_TOKEN, SPECIAL_TOKEN, SECOND_TEXT_TOKEN = f"{SKY}33", f"{ORANGE}55", f"{GREEN}33"


def source_colour(number: int) -> str:
    """Return the background of source ``number``, counted from 1."""
    return SOURCE_MARKS[(number - 1) % len(SOURCE_MARKS)]


def ink(hue: str) -> str:
    """Return the colour of text on a full hue."""
    return WHITE if hue == BLUE else BLACK


def stylesheet(path: Path, **colours: str) -> str:
    """Return a style sheet, in which colours have their names behind dollar signs."""
    hues = {"white": WHITE, "black": BLACK, "blue": BLUE, "sky": SKY, "orange": ORANGE, "line": LINE}
    return Template(path.read_text("utf-8")).substitute(hues | colours)


def paint(hue: str, share: float) -> str:
    """Return the background of text by its weight, a share from 0 to 1 of the largest one."""
    return f"{hue}{round(share * STRONGEST * 255):02x}"


def faded(colour: str, opacity: float) -> str:
    """``"#0072B2", 0.65 -> "rgba(0,114,178,0.65)"``, which Plotly's scales need for translucent colours."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
