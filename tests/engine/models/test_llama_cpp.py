import json

import numpy as np
import pytest

from engine import Decoder
from tests.engine.models.test_decoder_families import TEXT
from tests.llama_cpp_answers import ANSWERS, KINDS, N_NEW, write_file
from tests.tokenizer_files import small_byte_level

# llama.cpp looks GELU up in a table of float16; with such a table ours differ by less than 0.001, too.
TOLERANCE = {"gelu": 0.02, "silu": 0.0001}


@pytest.mark.parametrize("name", KINDS)
def test_a_gguf_file_equals_llama_cpp(tmp_path, name):
    tokenizer, expected = small_byte_level(), json.loads(ANSWERS.read_text())[name]
    write_file(tmp_path / "model.gguf", name, tokenizer)
    decoder, ids = Decoder.load(tmp_path / "model.gguf"), tokenizer.encode(TEXT).ids
    activation = "gelu" if name.startswith(("gemma3", "gpt2")) else "silu"
    np.testing.assert_allclose(decoder.logits(ids)[-1], expected["logits"], atol=TOLERANCE[activation])
    tokens = [step.token_id for step in decoder.generate(ids, max_new_tokens=N_NEW)]
    assert tokens == expected["tokens"][: len(tokens)]
