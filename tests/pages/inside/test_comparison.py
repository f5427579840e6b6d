import numpy as np

from engine.verify import StageCheck
from pages.inside.verify.comparison import LAYER_STAGES, difference_figure


def test_stages_that_differ_without_end_are_drawn_as_failures():
    differences = dict.fromkeys(LAYER_STAGES, 3.1e-7) | {"ffn.output": np.inf, "output": 0.0}
    checks = [StageCheck(f"layers.0.{stage}", d, d, 1e-5, d) for stage, d in differences.items()]
    [drawn] = difference_figure(checks, 1, "float32").data
    assert [text for [text] in drawn.text] == [*["3e-7"] * 10, "✗ inf", "0"]
    assert np.isfinite(np.array(drawn.z, float)).all()
