import re

from playwright.sync_api import expect

from tests.browser.accessibility import assert_usable
from tests.browser.conftest import assert_fits, fill_in, settled

ADDRESS = "broken"
QUESTION = "What is the price of insulin for seniors on Medicare?"
FAULTS = (
    "Skip the scaling by √d_head",
    "Drop the residual",
    "Forget the position embedding",
    "Layer norm before instead of after",
    "Average over the padding",
)


def fault(page, name):
    return page.get_by_test_id("stButtonGroup").get_by_role("button", name=name, exact=True)


def switch(page, name):
    fault(page, name).click()
    settled(page)


def test_faults_are_drawn_alone_and_together_beside_the_intact_model_and_can_be_mended(narrow):
    expect(narrow.get_by_text("The model is intact. Choose a fault to break it.")).to_be_visible()
    for name in FAULTS:
        expect(fault(narrow, name)).to_be_visible()
    expect(narrow.get_by_role("heading", name="What is left of the search")).to_have_count(0)
    fill_in(narrow, "Question", QUESTION)
    switch(narrow, "Forget the position embedding")
    expect(narrow.get_by_text("Left of the top 10")).to_be_visible()
    for title in ("Intact: the first 5", "Broken: the first 5"):
        expect(narrow.get_by_text(title)).to_be_visible()
    expect(narrow.get_by_test_id("stMain").get_by_role("listitem").filter(has_text="score")).to_have_count(10)
    place = re.compile(r"^1\. state_of_the_union\.md · score 0\.\d{3} · now \d+")
    expect(narrow.get_by_text(place).first).to_be_visible()
    expect(narrow.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    assert_fits(narrow)
    assert_usable(narrow)
    switch(narrow, "Drop the residual")
    expect(narrow.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(3)
    expect(narrow.get_by_text("Left of the top 10")).to_be_visible()
    for name in ("Drop the residual", "Forget the position embedding"):  # the first alone is embedded already
        switch(narrow, name)
    expect(narrow.get_by_text("The model is intact. Choose a fault to break it.")).to_be_visible()
