import re

from playwright.sync_api import expect

from tests.browser.conftest import assert_fits, fill_in, settled

ADDRESS = "broken"
QUESTION = "What is the price of insulin for seniors on Medicare?"
SWITCHES = (
    "Skip the scaling by √d_head",
    "Drop the residual",
    "Forget the position embedding",
    "Layer norm before instead of after",
    "Average over the padding",
)


def switch(page, name):
    page.get_by_test_id("stCheckbox").filter(has_text=name).locator("label").click()
    settled(page)


def test_a_broken_model_is_shown_beside_the_intact_one(narrow):
    switch(narrow, "Average over the padding")
    expect(narrow.get_by_text("Left of the top 10")).to_be_visible()
    for title in ("Intact: the first 5", "Broken: the first 5"):
        expect(narrow.get_by_text(title)).to_be_visible()
    expect(narrow.get_by_test_id("stMain").get_by_role("listitem").filter(has_text="score")).to_have_count(10)
    expect(
        narrow.get_by_text(re.compile(r"^1\. chatlogs\.md · score 0\.\d{3} · now \d+")).first
    ).to_be_visible()
    expect(narrow.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    assert_fits(narrow)


def test_several_faults_are_drawn_alone_and_together_and_can_be_mended(wide):
    expect(wide.get_by_text("The model is intact. Turn on a switch to break it.")).to_be_visible()
    for name in SWITCHES:
        expect(wide.get_by_test_id("stCheckbox").filter(has_text=name)).to_be_visible()
    expect(wide.get_by_role("heading", name="What is left of the search")).to_have_count(0)
    fill_in(wide, "Question", QUESTION)
    switch(wide, "Forget the position embedding")
    expect(wide.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    switch(wide, "Drop the residual")
    expect(wide.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(3)
    expect(wide.get_by_text("Left of the top 10")).to_be_visible()
    for name in ("Drop the residual", "Forget the position embedding"):  # the first alone is embedded already
        switch(wide, name)
    expect(wide.get_by_text("The model is intact. Turn on a switch to break it.")).to_be_visible()
