import json
import random
from itertools import pairwise

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError, ModelFileError
from engine.tokenizers.bpe import BPETokenizer, byte_symbols, merge, merges
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


def test_every_merge_is_told_with_its_rank():
    ranks = {("a", "b"): 1, ("b", "c"): 0, ("a", "bc"): 2}
    symbols = list("abc")
    assert list(merges(symbols, ranks)) == [(("b", "c"), 0), (("a", "bc"), 2)]
    assert symbols == ["abc", "", ""]
    assert list(merges(list("cab"), {})) == []


@given(word=st.text("abc", max_size=12), pairs=st.permutations(["ab", "bc", "ca", "aa", "abc", "bcab"]))
def test_each_merge_is_the_earliest_learnt_of_those_there_are(word, pairs):
    ranks = {(pair[: len(pair) // 2], pair[len(pair) // 2 :]): rank for rank, pair in enumerate(pairs)}
    working, before = list(word), list(word)
    for pair, rank in merges(working, ranks):
        after = [symbol for symbol in working if symbol]
        assert rank == ranks[pair] == min(ranks.get(other, 99) for other in pairwise(before))
        assert "".join(after) == word
        assert len(after) == len(before) - 1
        before = after
    assert before == merge(word, ranks)
    assert not any(pair in ranks for pair in pairwise(before))


def test_a_very_long_word_is_read_in_seconds_and_as_the_official_tokenizer_does(decoder, official):
    word = "".join(random.Random(0).choices("abcdefgh", k=100_000))
    assert decoder.tokenizer.encode(word).ids == official.encode(word, add_special_tokens=False)


@given(text=st.one_of(UNICODE, st.sampled_from([*TEXTS, "a<|im_end|>b<|im_start|>"])))
def test_steps_tell_what_encode_does(decoder, text):
    steps, encoding = decoder.tokenizer.steps(text), decoder.tokenizer.encode(text)
    kept = [
        (number, token, span)
        for word in steps
        for number, token, span in zip(word.ids, word.tokens, word.offsets, strict=True)
        if number is not None
    ]
    assert kept == list(zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True))
    assert "".join(word.original for word in steps) == text
    for word in steps:
        assert text[word.start : word.end] == word.original
        assert (word.merges[-1].symbols if word.merges else word.symbols) == word.tokens
        if not word.special:
            assert "".join(word.symbols) == byte_symbols(word.original)


def test_steps_show_the_bytes_and_every_merge(decoder):
    hello, accent = decoder.tokenizer.steps("the é")
    assert hello.symbols == ["t", "h", "e"]
    assert [step.symbols for step in hello.merges] == [["t", "he"], ["the"]]
    assert accent.symbols == ["Ġ", "Ã", "©"]
    assert decoder.tokenizer.token_bytes(hello.ids[0]) == b"the"


def test_steps_keep_special_tokens_whole_unless_the_text_is_literal(decoder):
    text = "a<|im_end|>"
    plain, special = decoder.tokenizer.steps(text)
    assert (plain.special, special.special) == (False, True)
    assert (special.symbols, special.merges, special.offsets) == (["<|im_end|>"], [], [(1, 11)])
    literal = decoder.tokenizer.steps(text, literal=[(0, len(text))])
    assert not any(word.special for word in literal)


def test_segment_ids_are_0_throughout(decoder):
    encoding = decoder.tokenizer.encode("Hello world")
    assert encoding.type_ids == [0] * len(encoding)


@pytest.mark.parametrize(("text", "reason"), [(None, "NoneType"), (b"x", "bytes"), ("\udc80", "surrogate")])
def test_what_is_not_text_is_refused(decoder, text, reason):
    for method in (decoder.tokenizer.encode, decoder.tokenizer.steps):
        with pytest.raises(InputError, match=reason):
            method(text)


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
    for spelling in (["a b"], [["a", "b"]]):
        assert read_tokenizer_json(tmp_path, merges=spelling).encode("abb").ids == [2, 1]


def test_a_word_with_a_token_may_be_taken_without_merging(tmp_path):
    for ignore, tokens in ((True, ["aab"]), (False, ["a", "ab"])):
        tokenizer = read_tokenizer_json(
            tmp_path, vocab={"a": 0, "b": 1, "ab": 2, "aab": 3}, ignore_merges=ignore
        )
        [word] = tokenizer.steps("aab")
        assert (word.tokens, bool(word.merges)) == (tokens, not ignore)


def test_bytes_without_a_token_have_no_id(tmp_path):
    tokenizer = read_tokenizer_json(tmp_path)
    [word] = tokenizer.steps("acb")
    assert (word.tokens, word.ids) == (["a", "c", "b"], [0, None, 1])
    assert tokenizer.encode("acb").ids == [0, 1]


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
