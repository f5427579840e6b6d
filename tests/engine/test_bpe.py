import json

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError, ModelFileError
from engine.tokenizers.bpe import BPETokenizer, merge
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from engine.weights.tensors import GGUF

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
TEXTS = [
    "",
    "Hello world",
    "  two  spaces\n\n\tand tabs ",
    "don't can't we'll I'd",
    "1234567 and 3.14",
    "東京は日本の首都です。",
    "👩‍👩‍👧 family 🙂",
    "naïve Ärger e\u0301",
    "def f(x):\n    return x**2  # comment",
    "\x00\x01 control",
]


@pytest.fixture(scope="module")
def official():
    from transformers import AutoTokenizer

    path = model_path(DEFAULT_DECODER)
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_the_official_tokenizer(decoder, official, text):
    assert decoder.tokenizer.encode(text).ids == official.encode(text, add_special_tokens=False)


@given(text=UNICODE)
def test_ids_equal_the_official_tokenizer_on_any_text(decoder, official, text):
    assert decoder.tokenizer.encode(text).ids == official.encode(text, add_special_tokens=False)


@given(text=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=60))
def test_offsets_cover_the_text_in_order(decoder, text):
    encoding = decoder.tokenizer.encode(text)
    end = 0
    for start, stop in encoding.offsets:
        assert start <= end <= stop > start
        end = stop
    if decoder.tokenizer.decode(encoding.ids) == text:  # no byte without a token
        assert end == len(text)


@pytest.mark.parametrize("text", TEXTS[:-1])
def test_decoding_gives_the_text_back(decoder, text):
    assert decoder.tokenizer.decode(decoder.tokenizer.encode(text).ids) == text


def test_special_tokens_are_one_id_unless_the_text_is_literal(decoder):
    tokenizer, text = decoder.tokenizer, "a<|im_end|>b"
    assert tokenizer.special["<|im_end|>"] in tokenizer.encode(text).ids
    literal = tokenizer.encode(text, literal=[(0, len(text))])
    assert tokenizer.special["<|im_end|>"] not in literal.ids
    assert tokenizer.decode(literal.ids) == text


def test_control_tokens_are_not_shown_as_text(decoder):
    assert decoder.tokenizer.decode(decoder.tokenizer.encode("a<|im_end|>b").ids) == "ab"


def test_the_earliest_merge_goes_first():
    ranks = {("a", "b"): 1, ("b", "c"): 0, ("a", "bc"): 2}
    assert merge("abc", ranks) == ["abc"]
    assert merge("abab", ranks) == ["ab", "ab"]
    assert merge("", ranks) == []


@pytest.mark.parametrize(("text", "reason"), [(None, "NoneType"), (b"x", "bytes"), ("\udc80", "surrogate")])
def test_what_is_not_text_is_refused(decoder, text, reason):
    with pytest.raises(InputError, match=reason):
        decoder.tokenizer.encode(text)


def test_the_vocabulary_has_the_size_of_the_model(decoder):
    assert isinstance(decoder.tokenizer, BPETokenizer)
    assert decoder.tokenizer.vocab_size == decoder.config.vocab_size == 49152


@given(text=UNICODE)
def test_any_text_whose_bytes_have_tokens_comes_back(decoder, text):
    tokenizer = decoder.tokenizer
    known = {tokenizer.token_bytes(number) for number in range(tokenizer.vocab_size)}
    text = "".join(c for c in text if all(bytes([byte]) in known for byte in c.encode()))
    everything = [(0, len(text))]
    assert tokenizer.decode(tokenizer.encode(text, literal=everything).ids) == text


def test_special_tokens_count_outside_the_literal_span_alone(decoder):
    tokenizer, text = decoder.tokenizer, "<|im_end|>a<|im_end|>"
    encoding = tokenizer.encode(text, literal=[(0, 11)])
    assert encoding.ids.count(tokenizer.special["<|im_end|>"]) == 1
    assert encoding.offsets[-1] == (11, 21)


def gguf_tokenizer(path, model="gpt2", pre="smollm"):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(["a", "b"])
    writer.add_token_types([1, 1])
    writer.add_token_merges(["a b"])
    writer.add_tensor("x", np.zeros((2, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return BPETokenizer.from_gguf(GGUF(path))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "llama"}, "'llama' tokenizer: only byte-level BPE"),
        ({"pre": "tekken"}, "'tekken': known are gpt-2, smollm"),
    ],
)
def test_a_gguf_tokenizer_of_another_kind_is_refused(tmp_path, settings, reason):
    with pytest.raises(ModelFileError, match=reason):
        gguf_tokenizer(tmp_path / "t.gguf", **settings)


def read_tokenizer_json(folder, pre_tokenizer=None, **changes):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], **changes}
    content = {
        "model": {key: value for key, value in model.items() if value is not None},
        "pre_tokenizer": pre_tokenizer or {"type": "ByteLevel", "add_prefix_space": False},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return BPETokenizer.from_json(folder / "tokenizer.json")


def test_merges_are_read_in_both_spellings(tmp_path):
    for merges in (["a b"], [["a", "b"]]):
        assert read_tokenizer_json(tmp_path, merges=merges).encode("abb").ids == [2, 1]


@pytest.mark.parametrize("kind", ["Whitespace", "Metaspace"])
def test_an_unknown_pre_tokenizer_is_named(tmp_path, kind):
    with pytest.raises(ModelFileError, match=f"{kind}.* is not one that can be read"):
        read_tokenizer_json(tmp_path, {"type": kind})


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab": None},
        {"merges": None},
        {"merges": ["a b c"]},
        {"merges": [["a"]]},
        {"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "("}}},
    ],
    ids=str,
)
def test_a_damaged_tokenizer_file_is_refused(tmp_path, changes):
    with pytest.raises(ModelFileError):
        read_tokenizer_json(tmp_path, **changes)
