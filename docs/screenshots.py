"""Take every picture of the README and of the documentation from the running app.

``python -m docs.screenshots`` takes all of them in about five minutes, ``python -m docs.screenshots ask
chunk`` two of them. Needs requirements-dev.txt and Chromium.

The documents of one's own are the ten in benchmarks/pages, with the questions of benchmarks/pages.csv.
"""

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

from engine.documents.loaders import load_corpus
from engine.evaluation.answers import load_answer_questions
from engine.evaluation.questions import Question, Reference, to_jsonl
from tests.browser.conftest import (
    PATIENCE,
    ROOT,
    WIDE,
    go_to,
    launch,
    open_chapter,
    open_tab,
    serve,
    settled,
    visit,
    window,
)

FOLDER = ROOT / "docs" / "screenshots"
PAGES = ROOT / "benchmarks" / "pages"
COLOURS = 256  # of a picture's palette: a third of the bytes of true colour

# Brings a page of the app, open at an address, to what its picture shows.
Scene = Callable[[Page, str], None]
SCENES: dict[str, Scene] = {}


def scene(draw: Scene) -> Scene:
    """Add a scene under the name of its function, which is the name of its picture."""
    SCENES[draw.__name__] = draw
    return draw


@scene
def ask(page: Page, url: str) -> None:
    """Show an answer about the bundled documents."""
    visit(page, url)
    ask_question(page, "Who first described the plain maskray scientifically?")


@scene
def own_documents(page: Page, url: str) -> None:
    """Show the first page after documents of one's own were added."""
    visit(page, url)
    add_pages(page)


@scene
def own_answer(page: Page, url: str) -> None:
    """Show an answer about documents of one's own."""
    visit(page, url)
    add_pages(page)
    ask_question(page, "How long did Northvale's bakery employees stay on strike?")
    page.get_by_role("button", name="write it in sentences").click()
    page.get_by_role("tab", name="Exact prompt").wait_for()
    settled(page)


@scene
def documents(page: Page, url: str) -> None:
    """Show a document with its chunks."""
    visit(page, url, "documents")
    open_tab(page, "Chunks")


@scene
def never_read(page: Page, url: str) -> None:
    """Show the text that is lost where chunks are longer than the token limit."""
    visit(page, url, "documents")
    set_slider(page, "Chunk size (tokens)", 512)
    open_tab(page, "Never read")


@scene
def questions(page: Page, url: str) -> None:
    """Show a passage marked as the answer to a question."""
    visit(page, url)
    add_pages(page)
    go_to(page, "Questions")
    box = page.get_by_role("textbox", name="Question", exact=True)
    box.fill("How long did Northvale's bakery employees stay on strike?")
    box.press("Enter")
    settled(page)
    page.get_by_role("button", name="Mark it").nth(1).click()  # the first passage does not answer it
    expect(page.get_by_test_id("stToast")).to_be_visible()
    expect(page.get_by_test_id("stToast")).to_have_count(0)  # it hides what is below it
    scroll_to(page, page.get_by_text("Mark the passage", exact=True))


@scene
def grid(page: Page, url: str) -> None:
    """Show the choice of settings to measure on questions of one's own."""
    own_grid(page, url)


@scene
def own_settings(page: Page, url: str) -> None:
    """Show the results of a grid on documents of one's own."""
    own_grid(page, url)
    run_grid(page)


@scene
def settings(page: Page, url: str) -> None:
    """Show the results of a grid on the bundled documents."""
    visit(page, url, "settings")
    run_grid(page)


@scene
def answers(page: Page, url: str) -> None:
    """Show how often answers about documents of one's own are right."""
    visit(page, url)
    add_pages(page)
    go_to(page, "Best settings")
    upload(page, page.locator("[data-testid=stMain] input[type=file]"), PAGES.with_suffix(".csv"))
    page.get_by_text("Answers", exact=True).first.click()
    answered = page.get_by_role("spinbutton", name="Questions answered in each configuration")
    answered.fill("70")
    answered.press("Enter")
    settled(page)
    run_grid(page)
    scroll_to(page, page.get_by_test_id("stMetric").first)


@scene
def diagnose(page: Page, url: str) -> None:
    """Show the cause of a refused answer, and its cure."""
    visit(page, url, "diagnose")
    main = page.get_by_test_id("stMain")
    main.get_by_role("radio", name="Find it in a document").click()
    main.get_by_role("textbox", name="Your question").fill("Who discribed the plian maskrey?")
    page.keyboard.press("Enter")
    main.get_by_role("textbox", name="Words of the passage").fill("first scientific description")
    page.keyboard.press("Enter")
    main.get_by_role("button", name="Apply it and ask again").wait_for()
    settled(page)
    scroll_to(page, main.get_by_role("heading", name="In short"))


@scene
def poolings(page: Page, url: str) -> None:
    """Show the cosines of three sentences under several poolings."""
    visit(page, url, "poolings")


@scene
def pair(page: Page, url: str) -> None:
    """Show a similarity as a sum over pairs of tokens."""
    visit(page, url, "poolings")
    open_tab(page, "A pair explained")
    open_chapter(page, "Pair by pair")


@scene
def answer(page: Page, url: str) -> None:
    """Show the tokens of an answer and their alternatives."""
    visit(page, url, "answer")
    page.get_by_test_id("stButtonGroup").get_by_text("What happens to text beyond the token limit?").click()
    page.get_by_role("button", name="write it in sentences").click()
    expect(page.get_by_role("tab", name="Tokens")).to_be_visible()
    open_tab(page, "Tokens")


@scene
def chunk(page: Page, url: str) -> None:
    """Show all heads of a layer."""
    visit(page, url, "chunk")
    open_tab(page, "Attention")
    scroll_to(page, page.get_by_text("All heads of layer 0", exact=True))


@scene
def broken(page: Page, url: str) -> None:
    """Show the damage of a model without its scaling."""
    visit(page, url, "broken")
    page.get_by_text("Skip the scaling by √d_head", exact=True).first.click()
    settled(page)


def ask_question(page: Page, question: str) -> None:
    """Ask, and wait for the whole answer."""
    box = page.get_by_label("Your question")
    box.fill(question)
    box.press("Enter")
    expect(page.locator(".st-key-answer").get_by_role("heading", name=question, exact=True)).to_be_visible()
    settled(page)


def upload(page: Page, chooser: Locator, *files: Path) -> None:
    """Give files to the only upload box that a locator finds."""
    expect(chooser).to_have_count(1)
    chooser.set_input_files(files)
    settled(page)


def add_pages(page: Page) -> None:
    """Add the ten pages as documents of one's own."""
    upload(page, page.locator("input[type=file]"), *sorted(PAGES.glob("*.md")))
    expect(page.get_by_text("10 documents ·").first).to_be_visible()
    settled(page)


def own_grid(page: Page, url: str) -> None:
    """Open the grid of settings with ten pages and the 50 questions that they answer."""
    visit(page, url)
    add_pages(page)
    go_to(page, "Best settings")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "my_questions.jsonl"
        path.write_text(labelled_pages(), encoding="utf-8")
        upload(page, page.locator("[data-testid=stMain] input[type=file]"), path)
    expect(page.get_by_test_id("stMetric").filter(has_text="Questions")).to_contain_text("50")


def labelled_pages() -> str:
    """Return the answered questions about the ten pages as JSONL, with their passages."""
    texts = {document.name: document.text for document in load_corpus(PAGES)}
    return to_jsonl(
        [
            Question(
                each.text,
                each.about,
                tuple(Reference(texts[each.document][start:end], start, end) for start, end in each.spans),
            )
            for each in load_answer_questions(PAGES.with_suffix(".csv"))
            if each.answer
        ]
    )


def run_grid(page: Page) -> None:
    """Run the grid to its end, and show its results."""
    page.get_by_role("button", name="Run the grid").click()
    expect(page.get_by_role("heading", name="Take it away")).to_be_visible(timeout=5 * PATIENCE)
    expect(page.get_by_test_id("stButton").get_by_role("button", name="Stop")).to_have_count(0)
    settled(page)


def set_slider(page: Page, label: str, value: int) -> None:
    """Set a slider to its end."""
    thumb = page.get_by_role("slider", name=label)
    thumb.focus()
    thumb.press("End")
    settled(page)
    expect(thumb).to_have_value(str(value))


def scroll_to(page: Page, target: Locator) -> None:
    """Scroll so that an element stands near the upper end of the window."""
    target.evaluate("element => element.scrollIntoView({block: 'start'})")
    page.get_by_test_id("stMain").evaluate("main => main.scrollBy(0, -80)")
    settled(page)


def save(page: Page, name: str) -> int:
    """Write the picture of a page; return its bytes."""
    page.mouse.move(0, 0)  # no element is hovered over
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)  # parts whose script is still being loaded
    settled(page)
    path = FOLDER / f"{name}.png"
    with Image.open(BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path.stat().st_size


def main(names: list[str]) -> None:
    """Take the pictures of the names, or all."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright)
        with serve(Path(folder) / "log.txt") as url:
            for name in names or SCENES:
                with window(browser, WIDE) as context:
                    page = context.new_page()
                    SCENES[name](page, url)
                    print(f"{name}: {save(page, name):,} bytes")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
