from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from engine import Decoder, Encoder
from engine.official_program import official_trace
from engine.verify import official_model
from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch, request, encoder, decoder):
    """Have the default models loaded once for all commands."""
    load_encoder, load_decoder = Encoder.load, Decoder.load

    def default_or_encoder(source=DEFAULT_ENCODER, dtype=np.float32, **settings):
        is_default = (source, dtype) == (DEFAULT_ENCODER, np.float32)
        return encoder if is_default else load_encoder(source, dtype, **settings)

    def default_or_decoder(source=DEFAULT_DECODER, **settings):
        return decoder if source == DEFAULT_DECODER else load_decoder(source, **settings)

    def default_or_official(model):
        if model is not encoder:
            return official_model(model)
        return nullcontext(partial(official_trace, request.getfixturevalue("official"), n_kv_heads=12))

    monkeypatch.setattr("engine.verify.official_model", default_or_official)
    monkeypatch.setattr(Encoder, "load", default_or_encoder)
    monkeypatch.setattr(Decoder, "load", default_or_decoder)
