"""A newcomer with own documents comes to an applied recommendation, and finds it again after a reload."""

from time import monotonic

import pytest

from benchmarks.journey import DOCUMENTS, RECOMMENDATION, Journey, try_own_documents
from tests.browser.accessibility import assert_usable
from tests.browser.conftest import NARROW, WIDE, serve, window
from ui.server_settings import WORKSPACES

MOST_CLICKS = 15


@pytest.mark.parametrize(
    "viewport", [NARROW, pytest.param(WIDE, marks=pytest.mark.nightly)], ids=["390", "1440"]
)
def test_a_newcomer_applies_a_recommendation_in_a_few_clicks(viewport, app, browser, tmp_path):
    with (
        serve(tmp_path / "log.txt", **{WORKSPACES: str(tmp_path / "data")}) as url,
        window(browser, viewport) as context,
    ):
        journey = Journey(context.new_page(), monotonic())
        try_own_documents(journey, url, DOCUMENTS[:2])
        assert_usable(journey.page)
    [n_clicks] = [clicks for step, clicks, _ in journey.steps if step == RECOMMENDATION]
    assert n_clicks <= MOST_CLICKS
