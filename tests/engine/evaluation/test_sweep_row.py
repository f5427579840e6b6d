import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engine.evaluation.sweep_row import QuestionValues

NAMES = ("mrr", "recall@k", "span_iou@k")
SHAPE = st.tuples(st.integers(0, 20), st.just(3))
VALUE = st.sampled_from([0.0, -0.0, 1 / 3, np.nextafter(1 / 3, 1), np.nan]) | st.floats()


@given(arrays.arrays(np.float64, SHAPE, elements=VALUE))
def test_values_come_out_bit_by_bit_as_they_went_in(table):
    values = QuestionValues.of(NAMES, table)
    assert list(values) == list(NAMES)
    for kept in (values, pickle.loads(pickle.dumps(values))):
        for name, column in zip(NAMES, table.T, strict=True):
            assert all(type(value) is float for value in kept[name])
            assert np.array(kept[name], np.float64).tobytes() == column.tobytes()


def test_values_are_equal_to_those_of_any_mapping():
    table = np.array([[1.0, 0.5, 0.0], [0.25, 0.5, 1.0]])
    values = QuestionValues.of(NAMES, table)
    assert values == {"mrr": (1.0, 0.25), "recall@k": (0.5, 0.5), "span_iou@k": (0.0, 1.0)}
    assert values == QuestionValues.of(NAMES, table.copy())
    assert values != QuestionValues.of(NAMES, table + 1)
    assert "ndcg@k" not in values
    with pytest.raises(KeyError, match="ndcg@k"):
        values["ndcg@k"]
