"""What the tests of the pages that train a model have in common."""

from playwright.sync_api import expect

from tests.browser.conftest import drawn, press_until


def at_rest(page):
    """Wait as `settled` does, but for bars, which here stay when the work is done."""
    drawn(page)
    expect(page.get_by_test_id("stSpinner")).to_have_count(0)


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
