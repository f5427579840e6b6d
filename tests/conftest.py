import os

os.environ["HF_HUB_OFFLINE"] = "1"
import pytest

from engine import Decoder, Encoder


@pytest.fixture(scope="session")
def encoder():
    return Encoder.load()


@pytest.fixture(scope="session")
def decoder():
    return Decoder.load()
