import re

import pytest
from playwright.sync_api import expect

from engine.models.small_decoder import SmallDecoderConfig
from engine.training.checkpoint import Checkpoint, checkpoint_bytes
from engine.training.loop import Trainee
from engine.training.seq2seq_checkpoint import training_bytes
from engine.training.seq2seq_loop import Recipe, Training
from engine.training.tasks import date_task, number_task
from engine.training.vocabulary import Vocabulary
from tests.browser.conftest import drawn, press_until, settled

expect.set_options(timeout=60_000)

SMALL = Recipe(d_model=8, n_heads=2, d_ff=8, n_layers=1, batch_size=2, n_steps=2, n_exam=2)


def open_lab(page, app):
    page.goto(f"{app}/lab")
    expect(page.get_by_role("heading", name="The lab", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="12 · The sizes of 2017")).to_be_visible()
    settled(page)
    return page


@pytest.fixture(scope="module")
def labs(widths, app):
    """The lab in a window of each width, opened once: what a test changes there, it sets back."""
    opened = {}

    def lab(width):
        if width not in opened:
            opened[width] = open_lab(widths[width].new_page(), app)
        return opened[width]

    yield lab
    for page in opened.values():
        page.close()


@pytest.fixture(params=["1440px", "390px"])
def anywhere(labs, request):
    return labs(request.param)


@pytest.fixture
def wide(labs):
    return labs("1440px")


def set_cell(page, matrix, row, column, text):
    """Type into a cell of an editable matrix of three columns; rows and columns are counted from 0."""
    choose_cell(page, page.get_by_test_id("stDataFrame").nth(matrix), row, column)
    if text:
        page.keyboard.press("1")  # any digit opens the cell
        editor = page.locator("#portal input")
        expect(editor).to_have_value("1")
        editor.fill(text)
        editor.press("Enter")
    else:
        page.keyboard.press("Delete")
    settled(page)


def choose_cell(page, grid, row, column):
    """Click a cell until it is chosen: a grid that was just drawn anew does not hear the first click."""
    cell = grid.get_by_test_id(f"glide-cell-{column}-{row}")
    for _ in range(5):
        grid.scroll_into_view_if_needed()
        box = grid.bounding_box()
        height = box["height"] / 5  # four rows and the head
        page.mouse.click(box["x"] + box["width"] * (column + 0.5) / 3, box["y"] + height * (row + 1.5))
        for _ in range(20):
            page.wait_for_timeout(50)
            if cell.get_attribute("aria-selected") == "true":
                return
    expect(cell).to_have_attribute("aria-selected", "true")


def matrix(page, name):
    return page.get_by_role("region", name=name, exact=True)


def assert_fits(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def at_rest(page):
    """Wait as `settled` does, but for bars, which here stay when the work is done."""
    drawn(page)
    expect(page.get_by_test_id("stSpinner")).to_have_count(0)


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
    at_rest(page)
    reset = page.get_by_role("button", name="Reset", exact=True)
    if reset.count():  # a test before ended too soon
        reset.click()
        at_rest(page)


def unfold(page, name):
    box = page.get_by_test_id("stExpander").filter(has_text=name)
    if box.locator("details[open]").count() == 0:
        box.get_by_text(name).click()
        at_rest(page)


def button(page, name):
    """A button of the page itself: while it is drawn, Streamlit's header has a Stop too, which ends that."""
    return page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True)


def press(page, name):
    button(page, name).click()


def pause(page):
    press_until(button(page, "Pause"), button(page, "Resume"))


def slide(page, key, *labels):
    for label in labels:
        page.get_by_role("slider", name=label).press(key)
    at_rest(page)


def give(page, content, said):
    """Load a checkpoint, see what is said of it, and close the box for it again."""
    press(page, "Load a checkpoint")
    box = page.get_by_test_id("stPopoverBody")
    file = {"name": "model.safetensors", "mimeType": "application/octet-stream", "buffer": content}
    box.locator("input[type=file]").set_input_files(file)
    load = box.get_by_role("button", name="Load", exact=True)
    expect(load).to_be_enabled()
    at_rest(page)
    press_until(load, page.get_by_text(said))
    expect(page.get_by_text(said)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)


def expect_line(page, words):
    """One line says what is wrong, and nothing fell over."""
    expect(page.get_by_test_id("stAlert").filter(has_text=words)).to_have_count(1)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def small_decoder(page):
    """Choose a decoder that learns fast, and more steps than a test has time for."""
    unfold(page, "Sizes and pace")
    slide(page, "Home", "Layers", "Width", "Context", "Batch")
    slide(page, "End", "Steps")


def small_seq2seq(page):
    unfold(page, "Settings")
    slide(page, "Home", "Steps", "Width", "Layers", "Batch")


def test_every_section_shows_something_at_once_and_nothing_is_wider_than_the_screen(anywhere):
    expect(anywhere.get_by_role("tabpanel").get_by_role("heading", level=3)).to_have_count(12)
    expect(matrix(anywhere, "Z").get_by_text("11.46394285")).to_be_visible()
    expect(anywhere.get_by_text("Bounded:")).to_be_visible()
    expect(anywhere.get_by_text("because the end token came")).to_be_visible()
    expect(anywhere.get_by_test_id("stException")).to_have_count(0)
    assert_fits(anywhere)


def test_a_number_is_changed_everything_follows_and_the_other_head_does_not_forget_it(wide):
    set_cell(wide, 1, 0, 0, "2")  # WQ of head 1: Hello's query was 8 3 3
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_have_count(0)
    z = matrix(wide, "Z").inner_text()
    wide.get_by_role("radio", name="Head 2").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).not_to_have_text("10")
    assert matrix(wide, "Z").inner_text() == z
    wide.get_by_role("radio", name="Head 1").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("10")
    wide.get_by_role("button", name="Back to the example").click()
    settled(wide)
    expect(matrix(wide, "Q").get_by_role("cell").nth(0)).to_have_text("8")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_be_visible()


def test_an_emptied_cell_gives_one_line_that_says_where(wide):
    set_cell(wide, 2, 1, 2, "")
    expect(wide.get_by_text("WK of head 1, row 2, column 3 is empty or no number")).to_be_visible()
    expect(wide.get_by_text("as soon as every cell above holds one")).to_be_visible()
    expect(wide.get_by_test_id("stException")).to_have_count(0)
    set_cell(wide, 2, 1, 2, "0")
    expect(matrix(wide, "Z").get_by_text("11.46394285")).to_be_visible()


def test_the_model_of_2017_runs_when_asked_to(wide):
    wide.get_by_role("button", name="Run a forward pass").click()
    expect(wide.get_by_text("The logits are 10 × 37,000")).to_be_visible()


def test_a_decoder_learns_rests_writes_and_goes_on(anywhere):
    open_tab(anywhere, "A decoder from scratch")
    expect(anywhere.get_by_text("To learn from: 219,012 characters")).to_be_visible()
    assert_fits(anywhere)
    small_decoder(anywhere)
    press(anywhere, "Train")
    pause(anywhere)
    state = anywhere.get_by_text("of 5,000 steps, paused")
    expect(state).to_be_visible()
    at_rest(anywhere)
    press(anywhere, "Write")
    expect(anywhere.get_by_text("120 tokens by the model of step")).to_be_visible()
    at_rest(anywhere)
    assert_fits(anywhere)
    before = state.inner_text()
    press(anywhere, "Resume")
    pause(anywhere)
    expect(state).not_to_have_text(before)
    at_rest(anywhere)
    press(anywhere, "Reset")
    expect(anywhere.get_by_text("Nothing is trained yet")).to_be_visible()
    expect(anywhere.get_by_test_id("stException")).to_have_count(0)


def test_a_decoder_that_cannot_go_on_says_so_in_a_line(wide):
    open_tab(wide, "A decoder from scratch")
    small_decoder(wide)
    wide.get_by_role("radio", name="After each part").click()
    at_rest(wide)
    slide(wide, "End", "Learning rate")
    press(wide, "Train")
    expect_line(wide, "Training diverged: the loss")
    at_rest(wide)
    wide.get_by_role("textbox", name="Prompt").fill("Жук")
    press(wide, "Write")
    expect_line(wide, "character 'Ж' at place 0 is none of the")
    config = SmallDecoderConfig(vocab_size=2, d_model=8, n_layers=1, n_heads=2, d_ff=8, context=4)
    other = Checkpoint(Trainee.fresh(config, 0), Vocabulary("characters", ("a", "b")))
    give(wide, checkpoint_bytes(other), "the checkpoint is of another model (vocab_size 2 instead of 120")
    press(wide, "Reset")
    expect(wide.get_by_text("Nothing is trained yet")).to_be_visible()


def test_an_encoder_decoder_learns_to_the_end_and_translates(anywhere):
    open_tab(anywhere, "Learn to translate")
    expect(anywhere.get_by_role("table")).to_contain_text("cincuenta y seis mil dos")
    assert_fits(anywhere)
    small_seq2seq(anywhere)
    press(anywhere, "Train")
    expect(anywhere.get_by_text("all 100 steps")).to_be_visible()
    at_rest(anywhere)
    source = anywhere.get_by_role("textbox", name="Source")
    source.fill("342")
    source.press("Enter")
    said = re.compile("Right|it should be “trescientos cuarenta y dos”")
    expect(anywhere.get_by_role("tabpanel").get_by_text(said).last).to_be_visible()
    at_rest(anywhere)
    assert_fits(anywhere)
    source.fill("zwei")
    source.press("Enter")
    expect_line(anywhere, "“zwei” is not in the vocabulary")
    at_rest(anywhere)
    press(anywhere, "Reset")
    expect(anywhere.get_by_text("Nothing is trained yet")).to_be_visible()


def test_a_saved_encoder_decoder_comes_back_and_one_that_cannot_is_told_in_a_line(wide):
    open_tab(wide, "Learn to translate")
    give(wide, training_bytes(Training(date_task(), SMALL)), "the checkpoint learnt “Dates")
    small_seq2seq(wide)
    slide(wide, "End", "Highest learning rate")
    press(wide, "Train")
    expect_line(wide, "begin again with a learning rate below 1")
    at_rest(wide)
    with wide.expect_download() as download:
        press(wide, "Checkpoint")
    press(wide, "Reset")
    expect(wide.get_by_text("Nothing is trained yet")).to_be_visible()
    at_rest(wide)
    give(wide, download.value.path().read_bytes(), "of 100, ended early")
    other = training_bytes(Training(number_task(), SMALL))
    give(wide, other, "the checkpoint is of another model (d_model 8 instead of 32")
    press(wide, "Reset")


def test_a_search_is_tuned_and_judged(anywhere):
    open_tab(anywhere, "Tune the search")
    expect(anywhere.get_by_text("Train learns from 310 labelled questions about 4 documents")).to_be_visible()
    assert_fits(anywhere)
    slide(anywhere, "Home", "Folds", "Epochs, at most")
    press(anywhere, "Train")
    verdict = anywhere.get_by_test_id("stAlert").filter(
        has_text="nDCG@10 of questions that were not trained on"
    )
    expect(verdict).to_have_text(re.compile("It helps beyond noise|the original is kept"))
    expect(anywhere.get_by_role("button", name="Download the tuned model")).to_be_visible()
    at_rest(anywhere)
    assert_fits(anywhere)
    expect(anywhere.get_by_text("results of the last training")).to_have_count(0)
    expect(anywhere.get_by_test_id("stException")).to_have_count(0)


def test_a_tuning_that_is_stopped_changes_nothing(wide):
    open_tab(wide, "Tune the search")
    wide.get_by_role("radio", name="Last layers").click()
    at_rest(wide)
    press(wide, "Train")
    press_until(button(wide, "Stop"), wide.get_by_text(re.compile("Stopping…|was stopped before")))
    expect_line(wide, "the training was stopped before its end: nothing was changed")
    wide.get_by_role("radio", name="Adapter").click()
    at_rest(wide)


def test_a_corpus_shorter_than_the_context_is_told_in_a_line(wide):
    """The last of the window, whose documents it leaves short."""
    open_tab(wide, "A decoder from scratch")
    sidebar = wide.get_by_test_id("stSidebar")
    file = {"name": "short.txt", "mimeType": "text/plain", "buffer": b"Too short."}
    sidebar.locator("input[type=file]").set_input_files(file)
    expect(sidebar.get_by_test_id("stMultiSelect").get_by_text("short.txt")).to_be_visible()
    for name in ("chatlogs.md", "inside_the_pipeline.md", "state_of_the_union.md", "wikitexts.md"):
        wide.get_by_role("button", name=re.compile(f"^Remove {name}|{name}, press")).click()
        at_rest(wide)
    expect(wide.get_by_text("To learn from: 10 characters")).to_be_visible()
    at_rest(wide)
    press(wide, "Train")
    expect_line(wide, "too short for a context of")
