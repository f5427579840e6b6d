"""A decoder of each family and kind, with random weights."""

import pytest

from engine import Decoder
from tests.engine.models.test_decoder_families import FAMILIES, save_folder
from tests.tokenizer_files import small_byte_level


@pytest.fixture(scope="session", params=FAMILIES, ids=str)
def family(request, tmp_path_factory):
    kind, sizes = request.param
    folder = tmp_path_factory.mktemp("model")
    save_folder(folder, small_byte_level(), kind, **sizes)
    return Decoder.load(folder)
