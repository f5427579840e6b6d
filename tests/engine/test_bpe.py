import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.tokenizers.bpe import BPETokenizer, merge
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path

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
