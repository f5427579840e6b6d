import re

from playwright.sync_api import expect

from engine.training.language.seq2seq_checkpoint import training_bytes
from engine.training.language.seq2seq_loop import Recipe, Training
from engine.training.language.tasks import date_task, number_task
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import assert_fits
from tests.browser.training import at_rest, expect_line, give, press, slide, unfold

ADDRESS = "translator"
SMALL = Recipe(d_model=8, n_heads=2, d_ff=8, n_layers=1, batch_size=2, n_steps=2, n_exam=2)


def small_seq2seq(page):
    unfold(page, "Settings")
    slide(page, "Home", "Steps", "Width", "Layers", "Batch")


def test_an_encoder_decoder_learns_to_the_end_and_translates(narrow):
    expect(narrow.get_by_role("table")).to_contain_text("cincuenta y seis mil dos")
    assert_fits(narrow)
    small_seq2seq(narrow)
    press(narrow, "Train")
    expect(narrow.get_by_text("all 100 steps")).to_be_visible()
    at_rest(narrow)
    source = narrow.get_by_role("textbox", name="Source")
    source.fill("342")
    source.press("Enter")
    said = re.compile("Right|it should be “trescientos cuarenta y dos”")
    expect(narrow.get_by_test_id("stMain").get_by_text(said).last).to_be_visible()
    at_rest(narrow)
    assert_fits(narrow)
    assert_usable(narrow)
    source.fill("zwei")
    source.press("Enter")
    expect_line(narrow, "“zwei” is not in the vocabulary")
    at_rest(narrow)
    press(narrow, "Reset")
    expect(narrow.get_by_text("Nothing is trained yet")).to_be_visible()


def test_a_saved_encoder_decoder_comes_back_and_one_that_cannot_is_told_in_a_line(wide):
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
