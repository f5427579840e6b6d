"""Models that visitors choose: shared by those who chose the same, and kept for as long as any uses them."""

from weakref import WeakValueDictionary

from ui.models import shared


class Model:
    """A model; unlike `object` it can be referred to weakly."""


def test_a_choice_takes_no_model_away_from_another_session_and_none_is_kept_without_use():
    models = WeakValueDictionary()
    first, second = shared(models, "a", Model), shared(models, "b", Model)
    assert shared(models, "a", Model) is first
    assert shared(models, "b", Model) is second
    del first
    assert list(models) == ["b"]
