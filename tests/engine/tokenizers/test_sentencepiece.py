"""SentencePiece BPE as Llama 2 has it, in tokenizer.json and in GGUF."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.errors import ModelFileError
from engine.generation.stream import TextStream
from engine.tokenizers.bpe import BPETokenizer
from tests import tokenizer_files as files

SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}


@pytest.fixture(scope="module", params=files.SENTENCEPIECE)
def style(request, tmp_path_factory):
    """The library's tokenizer, set up in one of the ways of Llama 2's tokenizer.json, and ours."""
    library = files.sentencepiece(request.param)
    path = files.save(library, tmp_path_factory.mktemp(request.param) / "tokenizer.json")
    return library, BPETokenizer.from_json(path)


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """The library's tokenizer, and ours from a GGUF file with scores."""
    library = files.sentencepiece("prepend")
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    return library, BPETokenizer.from_gguf(files.write_gguf(path, files.gguf_metadata(library, "llama")))


def check_equal(library, ours, text):
    expected, encoding = library.encode(text, add_special_tokens=False), ours.encode(text)
    assert (encoding.ids, encoding.tokens) == (expected.ids, expected.tokens)
    assert ours.decode(encoding.ids) == library.decode(expected.ids)
    for token, span, theirs in zip(encoding.tokens, encoding.offsets, expected.offsets, strict=True):
        # Of the blank that is put before a text the library says that it stands for the first character.
        put_before = token == "▁" and span[0] == span[1]
        assert theirs == ((span[0], span[0] + 1) if put_before else span)


@given(text=files.TEXTS)
def test_tokenizer_json_is_read_as_by_the_library(style, text):
    check_equal(*style, text)


@given(text=files.TEXTS)
def test_scores_merge_as_the_merges_they_come_from(older, text):
    check_equal(*older, text)


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Every letter, worst, then pieces of words, of several words, and of blanks, in no order of their making.
SCORES = dict(zip("▁abctheofé", range(-20, -30, -1), strict=True)) | {
    **{"ab": -1, "bc": -0.5, "abc": -3, "▁a": -2, "aa": -4, "▁the": -6, "th": -7, "he": -5, "▁t": -8},
    **{"of": -9, "▁of": -10, "▁of▁the": -11, "▁▁": -12, "c▁": -0.25},
}
METADATA = {
    "model": "llama",
    "tokens": ["<unk>", "<s>", "</s>", *BYTES, *SCORES, "<tool>"],
    "token_type": [
        files.UNKNOWN,
        files.CONTROL,
        files.CONTROL,
        *[files.BYTE] * 256,
        *[files.NORMAL] * len(SCORES),
        files.USER_DEFINED,
    ],
    "scores": [0.0] * 259 + [float(score) for score in SCORES.values()] + [0.0],
}
# What llama.cpp makes of these texts with that vocabulary, a blank put before them or not.
LLAMA_CPP = [
    ("abc", "▁a bc", "abc"),
    ("aabcaa", "▁a abc aa", "a abc aa"),
    ("aaa", "▁a aa", "aa a"),
    ("the of the", "▁the ▁of▁the", "t he ▁of▁the"),
    ("abc the", "▁ ab c▁ t he", "ab c▁ t he"),
    ("  a", "▁▁ ▁a", "▁ ▁a"),
    ("a  b", "▁a ▁▁ b", "a ▁▁ b"),
    (" the", "▁ ▁the", "▁the"),
    ("the<s>the<tool>a", "▁the <s> ▁the <tool> ▁a", "t he <s> t he <tool> a"),
    ("éa世", "▁ é a <0xE4> <0xB8> <0x96>", "é a <0xE4> <0xB8> <0x96>"),
    ("of the\n", "▁of▁the <0x0A>", "of ▁the <0x0A>"),
    ("", "", ""),
]


def from_gguf(folder, **changes):
    metadata = {key: value for key, value in {**METADATA, **changes}.items() if value is not None}
    return BPETokenizer.from_gguf(files.write_gguf(folder / "model.gguf", metadata))


def test_scores_merge_as_in_llama_cpp(tmp_path):
    prefixed, plain = from_gguf(tmp_path), from_gguf(tmp_path, add_space_prefix=False)
    for text, with_prefix, without in LLAMA_CPP:
        assert prefixed.encode(text).tokens == with_prefix.split()
        assert plain.encode(text).tokens == without.split()


def merged_by_score(symbols):
    """Merge the best pair, the leftmost of equals, as long as there is one."""
    scores = [SCORES.get(left + right) for left, right in pairwise(symbols)]
    best = max((score for score in scores if score is not None), default=None)
    if best is None:
        return symbols
    left = scores.index(best)
    return merged_by_score([*symbols[:left], symbols[left] + symbols[left + 1], *symbols[left + 2 :]])


@given(text=st.text("abcthe of", max_size=30))
def test_the_pair_with_the_best_score_is_merged_first(beyond_words, text):
    symbols = [*text.replace(" ", "▁")]
    assert beyond_words.encode(text).tokens == merged_by_score(["▁", *symbols] if symbols else [])


@pytest.fixture(scope="module")
def beyond_words(tmp_path_factory):
    return from_gguf(tmp_path_factory.mktemp("beyond"))


@given(text=files.TEXTS)
def test_tokens_one_by_one_give_the_text_and_the_blank_before_it(older, text):
    tokenizer, stream = older[1], TextStream()
    ids = tokenizer.encode(text, literal=[(0, len(text))]).ids
    pieces = [stream.push(tokenizer.token_bytes(number)) for number in ids]
    streamed = "".join([*pieces, stream.finish()])
    assert streamed.removeprefix(" ") == tokenizer.decode(ids)
    if "<tool>" not in text:
        assert tokenizer.decode(ids) == text.replace("▁", " ")


@given(text=files.TEXTS)
def test_steps_tell_what_encode_does(style, older, text):
    for tokenizer in (style[1], older[1]):
        steps, encoding = tokenizer.stages(text), tokenizer.encode(text)
        assert [number for word in steps for number in word.ids] == encoding.ids
        assert [span for word in steps for span in word.offsets] == encoding.offsets
        assert "".join(word.original for word in steps) == text
        for word in steps:
            assert word.tokens == (word.merges[-1].symbols if word.merges else word.symbols)


def test_what_goes_before_a_text(tmp_path, style):
    library, tokenizer = style
    assert [*tokenizer.start_ids, *tokenizer.encode("a b").ids] == library.encode("a b").ids
    assert from_gguf(tmp_path).start_ids == (1,)
    assert from_gguf(tmp_path, bos_token_id=2).start_ids == (2,)
    assert from_gguf(tmp_path, add_bos_token=False).start_ids == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scores": None}, "no metadata 'tokenizer.ggml.scores'"),
        ({"scores": [0.0]}, "1 values in 'tokenizer.ggml.scores' for 284 tokens"),
        ({"token_type": METADATA["token_type"][1:]}, "283 values in 'tokenizer.ggml.token_type' for 284"),
        (
            {"tokens": [token.replace("<0xA", "<a") for token in METADATA["tokens"]]},
            "no token <0xA0> and 16 of the 256 byte tokens are missing",
        ),
        ({"scores": "x" * 284}, "no complete tokenizer"),
    ],
    ids=["no scores", "few scores", "few types", "no bytes", "scores that are no numbers"],
)
def test_a_damaged_gguf_tokenizer_is_refused(tmp_path, changes, reason):
    with pytest.raises(ModelFileError, match=reason):
        from_gguf(tmp_path, **changes)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"pre_tokenizer": {"type": "Metaspace", "replacement": "_"}}, "pre-tokenizer .* cannot be read"),
        ({"normalizer": {"type": "Nmt"}}, "normalizer .* cannot be read"),
        ({"pre_tokenizer": SPLIT, "normalizer": None}, "pre-tokenizer .* cannot be read"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}}, "byte fallback, are read"),
    ],
    ids=str,
)
def test_a_tokenizer_that_is_set_up_another_way_is_refused(tmp_path, part, reason):
    path = files.save(files.sentencepiece("first"), tmp_path / "tokenizer.json", **part)
    with pytest.raises(ModelFileError, match=reason):
        BPETokenizer.from_json(path)


@pytest.mark.parametrize(
    ("decoder", "text"),
    [
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}, "a b"),
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}, " a b"),
        ({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, " a b"),
    ],
    ids=str,
)
def test_the_decoder_tells_whether_the_first_blank_is_shown(tmp_path, decoder, text):
    path = files.save(files.sentencepiece("first"), tmp_path / "tokenizer.json", decoder=decoder)
    ids = BPETokenizer.from_json(path).encode("a b").ids
    assert BPETokenizer.from_json(path).decode(ids) == Tokenizer.from_file(str(path)).decode(ids) == text
