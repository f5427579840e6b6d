"""Byte-level BPE as several families have it, in tokenizer.json and in GGUF."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from engine.errors import ModelFileError
from engine.tokenizers.bpe import BPETokenizer
from tests.tokenizer_files import BYTE_LEVEL, TEXTS, added, byte_level, gguf_metadata, save, write_gguf

BYTES = {"type": "ByteLevel", "add_prefix_space": False}


def nfc(text):
    return unicodedata.normalize("NFC", text)


@pytest.fixture(scope="module", params=BYTE_LEVEL)
def family(request, tmp_path_factory):
    """The library's tokenizer of a family, and ours from both kinds of file."""
    folder, library = tmp_path_factory.mktemp(request.param), byte_level(request.param)
    metadata = gguf_metadata(library, "gpt2", request.param)
    return (
        library,
        BPETokenizer.from_json(save(library, folder / "tokenizer.json")),
        BPETokenizer.from_gguf(write_gguf(folder / "model.gguf", metadata)),
    )


@given(text=TEXTS)
def test_a_family_is_read_as_by_the_library(family, text):
    library, *ours = family
    expected = library.encode(text, add_special_tokens=False)
    for tokenizer in ours:
        encoding = tokenizer.encode(text)
        assert (encoding.ids, encoding.tokens) == (expected.ids, expected.tokens)
        assert tokenizer.decode(encoding.ids) == library.decode(expected.ids)
        if text == nfc(text):
            assert encoding.offsets == expected.offsets


@given(text=TEXTS)
def test_offsets_cover_the_whole_text_in_order(family, text):
    offsets = family[1].encode(text).offsets
    assert offsets == sorted(offsets)
    assert {place for span in offsets for place in range(*span)} == set(range(len(text)))


def test_the_template_tells_what_goes_before_a_text(tmp_path):
    library = byte_level("llama-bpe")
    tokenizer = BPETokenizer.from_json(save(library, tmp_path / "tokenizer.json"))
    assert tokenizer.start_ids == (1,)
    assert [*tokenizer.start_ids, *tokenizer.encode("a b").ids] == library.encode("a b").ids
    without = save(library, tmp_path / "tokenizer.json", post_processor=None)
    assert BPETokenizer.from_json(without).start_ids == ()


@pytest.mark.parametrize(
    ("pre", "settings", "expected"),
    [
        ("llama-bpe", {"bos_token_id": 1}, (1,)),
        ("llama-bpe", {"bos_token_id": 1, "add_bos_token": False}, ()),
        ("smollm", {"bos_token_id": 1}, ()),
        ("smollm", {"bos_token_id": 1, "add_bos_token": True}, (1,)),
        ("smollm", {"add_bos_token": True}, ()),
    ],
)
def test_gguf_metadata_tells_what_goes_before_a_text(tmp_path, pre, settings, expected):
    metadata = {**gguf_metadata(byte_level("smollm"), "gpt2", pre), **settings}
    assert BPETokenizer.from_gguf(write_gguf(tmp_path / "model.gguf", metadata)).start_ids == expected


@given(text=TEXTS, data=st.data())
def test_control_tokens_in_a_literal_span_are_text_and_user_defined_ones_stay(family, text, data):
    place = data.draw(st.integers(0, len(text)))
    text = f"{text[:place]}<|end|><tool>{text[place:]}"
    for tokenizer in family[1:]:
        encoding = tokenizer.encode(text, literal=[(0, len(text))])
        assert not tokenizer.control & set(encoding.ids)
        assert tokenizer.special["<tool>"] in encoding.ids
        assert nfc(tokenizer.decode(encoding.ids)) == nfc(text)


def read_json(folder, pre_tokenizer=None, added_tokens=(), normalizer=None, post_processor=None, **changes):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], **changes}
    content = {
        "model": {key: value for key, value in model.items() if value is not None},
        "pre_tokenizer": pre_tokenizer or BYTES,
        "normalizer": normalizer,
        "post_processor": post_processor,
        "added_tokens": added_tokens,
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return BPETokenizer.from_json(folder / "tokenizer.json")


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_a_word_that_spells_a_control_token_is_not_one(tmp_path, ignore_merges):
    vocabulary, merges = {"<": 0, ">": 1, "<>": 2}, ["< >"]
    tokenizer = read_json(
        tmp_path, vocab=vocabulary, merges=merges, ignore_merges=ignore_merges, added_tokens=[added("<>", 2)]
    )
    assert tokenizer.encode("<>").ids == [2]
    assert tokenizer.encode("<>", literal=[(0, 2)]).ids == [0, 1]


@given(text=TEXTS)
def test_added_tokens_may_take_blanks_along_and_be_looked_for_after_normalisation(strict, text):
    library, ours = strict
    for old, new in (("e", "e"), ("e", "W"), ("the", "<strip>"), ("n", "E\u0301a")):
        spelled = text.replace(old, new)
        assert ours.encode(spelled).ids == library.encode(spelled).ids


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    library = byte_level("qwen2")
    library.add_tokens(
        [
            AddedToken("W", single_word=True, normalized=False),
            AddedToken("<strip>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("Éa", normalized=True),
        ]
    )
    path = save(library, tmp_path_factory.mktemp("strict") / "tokenizer.json")
    return library, BPETokenizer.from_json(path)


@given(text=TEXTS)
def test_a_blank_may_be_put_before_a_text(prefixed, text):
    library, ours = prefixed
    expected, encoding = library.encode(text), ours.encode(text)
    assert (encoding.ids, encoding.tokens) == (expected.ids, expected.tokens)
    assert encoding.offsets == expected.offsets


@pytest.fixture(scope="module", params=["smollm", "gpt-2"])
def prefixed(request, tmp_path_factory):
    library = byte_level(request.param)
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    path = save(library, tmp_path_factory.mktemp("prefixed") / "tokenizer.json")
    return library, BPETokenizer.from_json(path)


@given(text=st.text("abc!", max_size=12))
def test_bytes_without_a_token_are_left_out_or_unknown(lacking, text):
    for library, ours in lacking:
        expected, encoding = library.encode(text), ours.encode(text)
        assert (encoding.ids, encoding.tokens) == (expected.ids, expected.tokens)
        assert all(text[start:end] for start, end in encoding.offsets)


@pytest.fixture(scope="module")
def lacking(tmp_path_factory):
    path, vocabulary = tmp_path_factory.mktemp("lacking"), {"a": 0, "b": 1, "ab": 2, "<unk>": 3}
    pairs = []
    for unknown in (None, "<unk>"):
        library = Tokenizer(models.BPE(vocabulary, [("a", "b")], unk_token=unknown))
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        pairs.append((library, BPETokenizer.from_json(save(library, path / f"{unknown}.json"))))
    return pairs


def test_merges_are_read_in_both_spellings(tmp_path):
    for spelling in (["a b"], [["a", "b"]]):
        assert read_json(tmp_path, merges=spelling).encode("abb").ids == [2, 1]


def test_a_word_with_a_token_may_be_taken_without_merging(tmp_path):
    for ignore, tokens in ((True, ["aab"]), (False, ["a", "ab"])):
        vocabulary = {"a": 0, "b": 1, "ab": 2, "aab": 3}
        [word] = read_json(tmp_path, vocab=vocabulary, ignore_merges=ignore).stages("aab")
        assert (word.tokens, bool(word.merges)) == (tokens, not ignore)


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": "a"}}
DIGITS = {"type": "Digits", "individual_digits": True}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"vocab": None}, "vocab"),
        ({"vocab": {"a": 0, "b": -1, "ab": 2}}, "whole numbers from 0 on"),
        ({"merges": None}, "merges"),
        ({"merges": ["a b c"]}, "'a b c', which is not two tokens"),
        ({"merges": ["b a"]}, "'b a', which is not two tokens that make a third"),
        ({"merges": [5]}, "not a readable tokenizer"),
        ({"type": "Unigram"}, "Unigram tokenizer"),
        ({"end_of_word_suffix": "</w>"}, "end_of_word_suffix"),
        ({"unk_token": "a", "fuse_unk": True}, "fuse_unk"),
        ({"normalizer": {"type": "Nmt"}}, "normalizer .*Nmt.* cannot be read"),
        ({"post_processor": {"type": "BertProcessing"}}, "post_processor is BertProcessing"),
        ({"added_tokens": [{"content": "<s>", "id": 3}]}, "single_word"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "only byte-level BPE, and SentencePiece"),
        ({"pre_tokenizer": sequence({"type": "Whitespace"}, BYTES)}, "Whitespace.* cannot be read"),
        ({"pre_tokenizer": sequence({**SPLIT, "invert": True}, BYTES)}, "invert.* cannot be read"),
        ({"pre_tokenizer": sequence({**SPLIT, "behavior": "Removed"}, BYTES)}, "cannot be read"),
        (
            {"pre_tokenizer": sequence(DIGITS, {**BYTES, "add_prefix_space": True})},
            "add_prefix_space.* cannot be read",
        ),
        (
            {"pre_tokenizer": sequence({**SPLIT, "pattern": {"Regex": "("}}, BYTES)},
            "pattern that cannot be read",
        ),
    ],
    ids=str,
)
def test_a_damaged_tokenizer_or_words_cut_another_way_are_refused(tmp_path, changes, reason):
    with pytest.raises(ModelFileError, match=reason):
        read_json(tmp_path, **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "bert"}, "'bert' tokenizer: only byte-level BPE"),
        ({"pre": "chatglm4"}, "'chatglm4': known are gpt-2, smollm"),
        ({"token_type": [1] * 3}, "3 values in 'tokenizer.ggml.token_type' for 2001 tokens"),
        ({"tokens": ["a"]}, "2001 values in 'tokenizer.ggml.token_type' for 1 tokens"),
        ({"tokens": "a"}, "no texts in 'tokenizer.ggml.tokens'"),
        ({"merges": ["Ġ t", "a qqq"]}, "'a qqq', which is not two tokens"),
        ({"merges": 3}, "no texts in 'tokenizer.ggml.merges'"),
        *(
            ({key: None}, f"no metadata 'tokenizer.ggml.{key}'")
            for key in ("model", "tokens", "token_type", "merges")
        ),
    ],
    ids=str,
)
def test_a_damaged_gguf_tokenizer_is_refused(tmp_path, metadata, changes, reason):
    changed = {key: value for key, value in {**metadata, **changes}.items() if value is not None}
    with pytest.raises(ModelFileError, match=reason):
        BPETokenizer.from_gguf(write_gguf(tmp_path / "model.gguf", changed))


@pytest.fixture(scope="module")
def metadata():
    return gguf_metadata(byte_level("smollm"), "gpt2", "smollm")
