from playwright.sync_api import expect

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.models.small_decoder import SmallDecoderConfig
from engine.training.language.small_decoder_checkpoint import Checkpoint, checkpoint_bytes
from engine.training.language.small_decoder_loop import TrainingState
from engine.training.language.vocabulary import Vocabulary
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import assert_fits, search_only
from tests.browser.training import at_rest, expect_line, give, pause, press, slide, unfold

ADDRESS = "decoder"


def small_decoder(page):
    """Choose a decoder that learns fast, and more steps than a test has time for."""
    unfold(page, "Sizes and pace")
    slide(page, "Home", "Layers", "Width", "Context", "Batch")
    slide(page, "End", "Steps")


def test_a_decoder_learns_rests_writes_and_goes_on(narrow):
    n_characters = sum(len(document.text) for document in load_corpus(BUNDLED_CORPUS))
    expect(narrow.get_by_text(f"Corpus: {n_characters:,} characters")).to_be_visible()
    assert_fits(narrow)
    small_decoder(narrow)
    press(narrow, "Train")
    pause(narrow)
    state = narrow.get_by_text("of 5,000 steps, paused")
    expect(state).to_be_visible()
    at_rest(narrow)
    press(narrow, "Write")
    expect(narrow.get_by_text("120 tokens by the model of step")).to_be_visible()
    at_rest(narrow)
    assert_fits(narrow)
    assert_usable(narrow)
    before = state.inner_text()
    press(narrow, "Resume")
    pause(narrow)
    expect(state).not_to_have_text(before)
    at_rest(narrow)
    press(narrow, "Reset")
    expect(narrow.get_by_text("Nothing is trained yet")).to_be_visible()
    expect(narrow.get_by_test_id("stException")).to_have_count(0)


def test_a_decoder_that_cannot_go_on_says_so_in_a_line(wide):
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
    assert_usable(wide)
    config = SmallDecoderConfig(vocab_size=2, d_model=8, n_layers=1, n_heads=2, d_ff=8, context=4)
    other = Checkpoint(TrainingState.fresh(config, 0), Vocabulary("characters", ("a", "b")))
    n_letters = len({letter for document in load_corpus(BUNDLED_CORPUS) for letter in document.text})
    said = f"the checkpoint is of another model (vocab_size 2 instead of {n_letters}"
    give(wide, checkpoint_bytes(other), said)
    press(wide, "Reset")
    expect(wide.get_by_text("Nothing is trained yet")).to_be_visible()


def test_a_corpus_shorter_than_the_context_is_told_in_a_line(wide):
    sidebar = wide.get_by_test_id("stSidebar")
    file = {"name": "short.txt", "mimeType": "text/plain", "buffer": b"Too short."}
    sidebar.locator("input[type=file]").set_input_files(file)
    expect(sidebar.get_by_test_id("stMultiSelect").get_by_text("short.txt")).to_be_visible()
    search_only(wide)
    expect(wide.get_by_text("Corpus: 10 characters")).to_be_visible()
    at_rest(wide)
    press(wide, "Train")
    expect_line(wide, "too short for a context of")
