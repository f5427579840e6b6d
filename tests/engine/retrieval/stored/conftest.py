import pytest


@pytest.fixture
def folder(tmp_path):
    """Where an index is written; there is nothing yet."""
    return tmp_path / "index"
