import pytest

from engine.serving.served import Served
from tests.engine_server import engine_server


@pytest.fixture(scope="module")
def served(encoder):
    return Served(encoder)


@pytest.fixture(scope="module")
def server(served):
    with engine_server(served) as running:
        yield running
