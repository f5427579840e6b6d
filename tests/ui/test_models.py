"""Models that visitors choose: shared by those who chose the same, and kept for as long as any uses them."""

from time import monotonic, sleep
from weakref import WeakValueDictionary, ref

from engine.inspection.model.faults import Faults, broken
from ui.models import decoder_named, default_decoder, shared, timed_on, token_seconds_here
from ui.server_settings import DECODER, PUBLIC


class Model:
    """A model; unlike `object` it can be referred to weakly."""


def test_a_choice_takes_no_model_away_from_another_session_and_none_is_kept_without_use():
    models = WeakValueDictionary()
    first, second = shared(models, "a", Model), shared(models, "b", Model)
    assert shared(models, "a", Model) is first
    assert shared(models, "b", Model) is second
    del first
    assert list(models) == ["b"]


def test_a_public_server_lets_go_of_a_decoder_that_nobody_uses(monkeypatch):
    monkeypatch.setenv(PUBLIC, "1")
    monkeypatch.setattr("ui.models.read_decoder", lambda name: Model())
    monkeypatch.setattr("ui.models.IDLE_S", 0.05)
    default_decoder.clear()
    model, end = ref(decoder_named(DECODER)), monotonic() + 5
    while model() is not None and monotonic() < end:
        sleep(0.01)
    assert model() is None


def test_an_encoder_is_timed_once_in_each_precision(encoder, monkeypatch):
    timed = []

    def token_seconds(model, chunks, limit):
        timed.append(model)
        return float(len(timed))

    monkeypatch.setattr("ui.models.token_seconds", token_seconds)
    timed_on.clear()
    rounded = encoder.with_precision("int8")
    every = [encoder, rounded, broken(encoder, Faults(pad_mean=True))]  # which pads what it reads
    assert [token_seconds_here(each, ()) for each in every * 2] == [1, 2, 3, 1, 2, 3]
    assert timed == every
    timed_on.clear()
