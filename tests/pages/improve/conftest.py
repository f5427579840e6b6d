import pytest

from engine.evaluation import sweep_cost


@pytest.fixture(scope="module", autouse=True)
def _sweeps_estimated_without_an_answer():
    """Have the page “Settings” take a time for each answer, which it would measure each time it is drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_cost, "answer_seconds", lambda *_: (0.1, 1e-4))
        yield
