import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
# Threads that wait for each other wait very long where another process holds a core, and the tests
# themselves run in several.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
from hypothesis import settings

from engine import Decoder, Encoder
from engine.verify import official_model

# How long an example takes says more about what else the machine does.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    for item in items:
        in_browser = "browser" in Path(item.path).parts
        item.add_marker(pytest.mark.browser if in_browser else pytest.mark.unit)


@pytest.fixture(scope="session")
def encoder():
    return Encoder.load()


@pytest.fixture(scope="session")
def decoder():
    return Decoder.load()


@pytest.fixture(scope="session")
def readable_decoder():
    """The same decoder in float32, all by NumPy."""
    return Decoder.load(compiled=False)


@pytest.fixture(scope="session")
def official(encoder):
    """The same weights in sentence-transformers."""
    return official_model(encoder)


@pytest.fixture(scope="session")
def official_greedy():
    """A function giving the tokens with which a transformers model goes on, most probable first."""
    import torch

    def continue_ids(model, ids, n_new, end_ids):
        tokens = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=n_new,
            do_sample=False,
            eos_token_id=end_ids,
            pad_token_id=0,
        )
        return tokens[0, len(ids) :].tolist()

    return continue_ids
