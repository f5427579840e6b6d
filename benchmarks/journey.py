"""How soon a newcomer has an answer and a conclusion: ``python -m benchmarks.journey [--json] [--rounds 3]``.

Chromium plays a newcomer with four documents of their own; clicks, and seconds from ``streamlit run``.

The sample: open the app and pick an example. The own documents: upload them, pick an example about them, ask
why it was not found, look for better settings, draft questions, run the first grid and apply what it
recommends, copy the link, and reload. At the end the documents and the applied settings must still be there.
Every step ends when its result is in sight. A page that shows an error, or nothing to go on with, ends the
journey.
"""

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from playwright.sync_api import Locator, Page, ViewportSize, expect, sync_playwright

from benchmarks.command import Benchmark, Result, Table
from tests.browser.conftest import (
    NARROW,
    WIDE,
    assert_fits,
    close_sidebar,
    is_narrow,
    launch,
    open_sidebar,
    serve,
    settled,
    window,
)
from ui.server_settings import WORKSPACES

PAGES = Path(__file__).parent / "pages"
DOCUMENTS = (
    "calderis_airways_annual_report.md",
    "northvale_foods_annual_report.md",
    "phage_cocktail_klebsiella_biofilm.md",
    "tablet_audiometry_school_screening.md",
)
QUOTED, RECOMMENDATION = "first answer, quoted", "recommendation in use"
LIMITS = {QUOTED: (8.0, 1), RECOMMENDATION: (300.0, 15)}  # seconds and clicks


@dataclass
class Journey:
    """A user's way through the app: the clicks so far, and the steps with their clicks and seconds."""

    page: Page
    since: float
    clicks: int = 0
    steps: list[tuple[str, int, float]] = field(default_factory=list)

    def click(self, button: Locator) -> None:
        """Click once."""
        button.click()
        self.clicks += 1

    def done(self, step: str) -> None:
        """End a step now."""
        self.steps.append((step, self.clicks, monotonic() - self.since))

    def see(self, step: str, result: Locator) -> None:
        """End a step when its result is in sight; the page may show no error, and must have a way on."""
        expect(result.first).to_be_visible()
        self.done(step)
        settled(self.page)
        assert_fits(self.page)
        main = self.page.get_by_test_id("stMain")
        assert main.locator("button:enabled, input:enabled, a[href]").count(), f"{step}: a dead end"


def ask_sample(journey: Journey, url: str) -> None:
    """Open the app and pick the first example about the samples."""
    page = journey.page
    page.goto(url)
    journey.click(page.get_by_test_id("stButtonGroup").get_by_role("radio").first)
    expect(page.locator("blockquote mark").first).to_be_visible()
    journey.done(QUOTED)
    journey.see("all of the answer", page.get_by_test_id("stMain").get_by_text("Find better settings"))


def try_own_documents(journey: Journey, url: str, documents: Sequence[str] = DOCUMENTS) -> None:
    """Upload documents, ask, diagnose, measure, apply, share and reload."""
    page = journey.page
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    card = page.locator(".st-key-settings-card")
    page.goto(url)
    main.locator("input[type=file]").set_input_files([PAGES / name for name in documents])
    journey.clicks += 1
    journey.see("examples about own documents", main.get_by_text("Try one about your documents"))
    journey.click(main.get_by_test_id("stButtonGroup").get_by_role("radio").first)
    journey.see("answer from own documents", main.get_by_text("Find better settings"))
    journey.click(main.get_by_role("button", name="Was this wrong?"))
    journey.see("diagnosis", main.get_by_role("textbox", name="Words of the passage"))
    page.go_back()
    journey.clicks += 1
    journey.see("back at the answer", main.get_by_text("Find better settings"))
    journey.click(main.get_by_role("button", name="Find better settings"))
    journey.click(main.get_by_role("button", name="Draft 60 from your documents"))
    journey.see("drafts of questions", main.get_by_role("button", name="Draft 60 more"))
    journey.click(main.get_by_role("button", name="Run the grid"))
    advice = page.locator(".st-key-experiment-advice")
    journey.see("recommendation", advice)
    apply = advice.get_by_role("button", name="Apply")
    if apply.count():
        journey.click(apply)
    journey.see(RECOMMENDATION, advice.get_by_text("In use now."))
    used = card.inner_text()
    if is_narrow(page):
        open_sidebar(page)
        journey.clicks += 1
    journey.click(sidebar.get_by_role("button", name="Copy link"))
    journey.see("link", page.get_by_test_id("stPopoverBody").get_by_test_id("stCode"))
    page.reload()
    journey.see("reloaded", page.get_by_role("heading", level=1))
    assert card.inner_text().split("\n")[0] == used.split("\n")[0], "the settings are lost"
    if is_narrow(page):
        open_sidebar(page)
    for name in documents:
        expect(sidebar.get_by_role("button", name=f"Remove {name}")).to_be_visible()
    if is_narrow(page):
        close_sidebar(page)


def played(viewport: ViewportSize) -> dict[str, Any]:
    """Play both journeys from a fresh start each, in a screen of a size; return their steps."""
    steps = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for play in (ask_sample, try_own_documents):
            with tempfile.TemporaryDirectory() as folder, window(browser, viewport) as context:
                page, since = context.new_page(), monotonic()
                with serve(Path(folder) / "log.txt", **{WORKSPACES: f"{folder}/data"}) as url:
                    journey = Journey(page, since)
                    play(journey, url)
                    steps += journey.steps
        browser.close()
    return {step: {"clicks": clicks, "seconds": seconds} for step, clicks, seconds in steps}


def run(arguments: Namespace) -> Result:
    """Play the journeys on both screens; seconds are medians of the rounds."""
    ours: dict[str, Any] = {}
    for screen, viewport in (("1440 px", WIDE), ("390 px", NARROW)):
        rounds = [played(viewport) for _ in range(arguments.rounds)]
        ours[screen] = {
            step: {
                "clicks": rounds[0][step]["clicks"],
                "seconds": median(one[step]["seconds"] for one in rounds),
            }
            for step in rounds[0]
        }
    return {
        "workload": f"four documents of 8,000 characters each, {arguments.rounds} rounds",
        "ours": ours,
        "limit": {step: {"seconds": seconds, "clicks": clicks} for step, (seconds, clicks) in LIMITS.items()},
    }


def table(result: Result) -> Table:
    """Tabulate the clicks and seconds until each step's result, on both screens."""
    screens, limit = result["ours"], result["limit"]
    rows = []
    for step in next(iter(screens.values())):
        cells = [f"{own[step]['clicks']} · {own[step]['seconds']:.1f} s" for own in screens.values()]
        aim = f"{limit[step]['clicks']} · {limit[step]['seconds']:.0f} s" if step in limit else ""
        rows.append([step, *cells, aim])
    return Table(["clicks · seconds until", *screens, "aim, at most"], rows)


BENCHMARK = Benchmark(__doc__, run, table, rounds=3)


if __name__ == "__main__":
    BENCHMARK.main()
