"""Ways of a person through the app by clicks and keys alone, and the eight files of a small club."""

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import drawn, settled

MOST_CLICKS = 15
PAGES = Path(__file__).parents[2] / "benchmarks" / "pages"
REPORTS = [next(PAGES.glob(f"{name}_*")) for name in ("calderis", "northvale", "phage", "tablet")]
FILES = {
    "bees.txt": "The honey is sold at the desk of the library for 6.50 euros a jar. In winter the bees form "
    "a cluster, whose centre is kept at about 27 degrees.",
    "bread.md": "# Rye bread\n\nMix 300 g of rye flour with 50 g of starter, and let it stand for 14 hours.",
    "ferries.csv": "Route,Days,Fare EUR\nHellau-Vigra,3,18.50\nHellau-Tarno,5,32\nOsby-Tarno,7,14\n",
    "greenhouse.md": "# Greenhouse\n\n## Ventilation\n\nThe roof vents open when the air is warmer than "
    "26 °C and close below 22 °C.\n\n## Alarm\n\nIf a probe fails, the display shows code E17.",
    "lease.html": "<h1>Lease of the hall</h1><p>The tenant pays a deposit of 750 euros at least ten days "
    "before the event.</p>",
    "minutes.txt": "The annual fee rises from 36 to 42 euros from January 2024. Present were 63 members.",
    "telescope.txt": "The reflector on Harrow Hill has a main mirror of 61 centimetres and was built in 1974 "
    "by the optician Edmund Farquhar.",
    "workshop.md": "# Workshop\n\n## Brakes\n\nA worn brake pad of less than 0.8 mm is replaced in pairs.",
}


@dataclass
class Person:
    """A user of the app, with the clicks so far."""

    page: Page
    clicks: int = 0

    def click(self, button):
        button.click()
        self.clicks += 1


@contextmanager
def journey(window, url):
    """A person who opens an address; at the end everything is usable, after at most `MOST_CLICKS`."""
    with window.new_page() as page:
        person = Person(page)
        person.page.goto(url)
        drawn(person.page)
        yield person
        assert_usable(person.page)
    assert person.clicks <= MOST_CLICKS


def add_files(person, *names):
    """Drop files of the club, or all, on the page "Ask your documents"; one click."""
    names = names or tuple(FILES)
    files = [{"name": name, "mimeType": "text/plain", "buffer": FILES[name].encode()} for name in names]
    person.page.locator("input[type=file]").set_input_files(files)
    person.clicks += 1
    chunks = re.compile(rf"^{len(names)} documents? · \d+ chunks?")
    expect(person.page.get_by_test_id("stMain").get_by_text(chunks)).to_be_visible()
    drawn(person.page)


def write(person, label, text):
    """Fill a box in and press Enter; one click."""
    box = person.page.get_by_test_id("stMain").get_by_role("textbox", name=label)
    box.fill(text)
    box.press("Enter")
    person.clicks += 1
    settled(person.page)


def answer_few(page):
    """Have the grid answer two questions in each configuration, in place of 20."""
    page.get_by_text("Answers", exact=True).first.click()
    box = page.get_by_role("spinbutton", name="Questions answered")
    box.fill("2")
    box.press("Enter")
    settled(page)
