import random
from itertools import pairwise

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.tokenizers.bpe import merge, merges
from engine.tokenizers.bpe_vocabulary import byte_symbols, character_bytes
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from tests.pytorch import transformers
from tests.tokenizer_files import ASSIGNED

UNICODE = st.text(ASSIGNED, max_size=60)
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
    "!\x04! a byte without a token between two that make one",
]


@pytest.fixture(scope="module")
def official(gguf_reader):
    path = model_path(DEFAULT_DECODER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "GGUFReader", lambda path: gguf_reader)
        return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


@pytest.fixture(scope="module")
def known_bytes(decoder):
    """The bytes that have a token of their own."""
    tokens = map(decoder.tokenizer.token_bytes, range(decoder.tokenizer.vocab_size))
    return {token[0] for token in tokens if len(token) == 1}


@given(text=UNICODE | st.sampled_from(TEXTS))
def test_ids_equal_the_official_tokenizer(decoder, official, text):
    assert decoder.tokenizer.encode(text).ids == official.encode(text, add_special_tokens=False)


def test_special_tokens_are_one_id_unless_the_text_is_literal(decoder):
    tokenizer, text = decoder.tokenizer, "<|im_end|>a<|im_end|>"
    number = tokenizer.special["<|im_end|>"]
    assert tokenizer.decode(tokenizer.encode(text).ids) == "a"  # control tokens are no text
    encoding = tokenizer.encode(text, literal=[(0, 11)])
    assert encoding.ids.count(number) == 1
    assert encoding.offsets[-1] == (11, 21)
    literal = tokenizer.encode(text, literal=[(0, len(text))])
    assert number not in literal.ids
    assert tokenizer.decode(literal.ids) == text


def rank_of(*pairs):
    """Rank pairs, each written ``left right``, in the order given."""
    ranks = {tuple(pair.split()): rank for rank, pair in enumerate(pairs)}
    return lambda left, right: ranks.get((left, right))


@given(word=st.text("abc", max_size=12), pairs=st.permutations(["a b", "b c", "c a", "a a", "a bc", "bc ab"]))
def test_each_merge_is_the_best_of_those_there_are(word, pairs):
    rank = rank_of(*pairs)
    working, before = list(word), list(word)
    for pair, number in merges(working, rank):
        after = [symbol for symbol in working if symbol]
        ranks = [rank(*other) for other in pairwise(before)]
        assert number == rank(*pair) == min(other for other in ranks if other is not None)
        assert "".join(after) == word
        assert len(after) == len(before) - 1
        before = after
    assert before == [symbol for symbol in merge(word, rank) if symbol]
    assert all(rank(*pair) is None for pair in pairwise(before))


def test_a_very_long_word_is_read_in_seconds_and_as_the_official_tokenizer_does(decoder, official):
    word = "".join(random.Random(0).choices("abcdefgh", k=100_000))
    assert decoder.tokenizer.encode(word).ids == official.encode(word, add_special_tokens=False)


@given(text=st.one_of(UNICODE, st.sampled_from([*TEXTS, "a<|im_end|>b<|im_start|>"])))
def test_steps_tell_what_encode_does(decoder, known_bytes, text):
    steps, encoding = decoder.tokenizer.stages(text), decoder.tokenizer.encode(text)
    assert [number for word in steps for number in word.ids] == encoding.ids
    assert [token for word in steps for token in word.tokens] == encoding.tokens
    assert [span for word in steps for span in word.offsets] == encoding.offsets
    assert "".join(word.original for word in steps) == text
    for word in steps:
        assert text[word.start : word.end] == word.original
        if not word.special:
            assert word.symbols == byte_symbols(word.original)
            known = [symbol for symbol in word.symbols if character_bytes()[symbol] in known_bytes]
            assert (word.merges[-1].symbols if word.merges else known) == word.tokens


@pytest.mark.parametrize(("text", "reason"), [(None, "NoneType"), (b"x", "bytes"), ("\udc80", "surrogate")])
def test_what_is_not_text_is_refused(decoder, text, reason):
    for method in (decoder.tokenizer.encode, decoder.tokenizer.stages):
        with pytest.raises(InputError, match=reason):
            method(text)
