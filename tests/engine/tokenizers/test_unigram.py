"""SentencePiece Unigram: the best split of a word, its normaliser, and what is refused."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from engine.errors import ModelFileError
from engine.tokenizers.charsmap import CharsMap
from engine.tokenizers.normalized import unchanged
from engine.tokenizers.tokenizer_file import read_tokenizer
from engine.tokenizers.unigram import UnigramTokenizer
from tests.sentence_transformer_folders import charsmap, unigram_tokenizer

PIECES = [("<unk>", 0.0), ("▁", -2.0), ("a", -3.0), ("b", -3.5), ("ab", -5.0), ("▁ab", -8.0), ("abab", -9.0)]


def small(path, pieces=PIECES, **options):
    """A tokenizer without special tokens, and the library's."""
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, **options))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.save(str(path))
    return read_tokenizer(path), tokenizer


def test_a_word_is_split_into_the_most_probable_pieces(tmp_path):
    tokenizer, _ = small(tmp_path / "tokenizer.json")
    assert isinstance(tokenizer, UnigramTokenizer)
    [word] = tokenizer.stages("ab")
    # ▁ + ab: -2 - 5; ▁ab: -8; ▁ + a + b: -2 - 3 - 3.5
    assert (word.normalized, word.tokens, word.ids) == ("▁ab", ["▁", "ab"], [1, 4])
    weighed = {(one.piece, one.start): (one.total, one.kept) for one in word.candidates}
    assert weighed == {
        ("▁", 0): (-2.0, True),
        ("▁ab", 0): (-8.0, True),
        ("a", 1): (-5.0, True),
        ("ab", 1): (-7.0, True),
        ("b", 2): (-8.5, False),
    }


@pytest.mark.parametrize("falls_back", [False, True])
@given(text=st.text("abéx東🙂 ▁", max_size=30))
def test_splits_equal_the_library(tmp_path_factory, falls_back, text):
    pieces = [*PIECES, *((f"<0x{byte:02X}>", -12.0) for byte in range(256))] if falls_back else PIECES
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    ours, theirs = small(path, pieces, byte_fallback=falls_back)
    found, expected = ours.encode(text), theirs.encode(text)
    assert (found.ids, found.tokens, found.offsets) == (expected.ids, expected.tokens, expected.offsets)


# Strings that begin with others, deletions, and replacements of any length, as a whole and within graphemes.
TABLE = {
    "a": "xyz",
    "ab": "Q",
    "e\u0301": "é",
    "\u0301": "",
    "b": "",
    "c": "cc",
    "👩": "w",
    "\r\n": " ",
    "½": "1/2",
}


@given(
    text=st.lists(
        st.sampled_from([*TABLE, "d", "e", " ", "🙂", "\u0323", "c\u0301", "👩‍👧"]), max_size=12
    ).map("".join)
)
def test_replacements_equal_the_library(text):
    encoded = charsmap(TABLE)
    ours = CharsMap(encoded)(unchanged(text))
    theirs = Tokenizer(models.Unigram([("<unk>", 0.0)], unk_id=0))
    theirs.normalizer = normalizers.Precompiled(base64.b64decode(encoded))
    assert ours.text == theirs.normalizer.normalize_str(text)


def edited(path, change):
    """Write a tokenizer with a change of its content."""
    unigram_tokenizer().save(str(path))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("encoded", ["", "!", "AAAA", "//////////8="])
def test_a_damaged_table_is_refused(tmp_path, encoded):
    def change(content):
        content["normalizer"]["normalizers"][0]["precompiled_charsmap"] = encoded

    with pytest.raises(ModelFileError, match="precompiled_charsmap"):
        read_tokenizer(edited(tmp_path / "tokenizer.json", change))


def test_a_table_that_points_outside_itself_is_refused():
    damaged = base64.b64decode(charsmap({"a": "b"}))[:-2]  # without the replacement
    with pytest.raises(ModelFileError, match="precompiled_charsmap is damaged"):
        CharsMap(base64.b64encode(damaged).decode())(unchanged("a"))


@pytest.mark.parametrize(
    ("part", "changes", "reason"),
    [
        ("model", {"unk_id": None}, "None stands where int"),
        ("model", {"unk_id": 10_000}, "out of range"),
        ("model", {"vocab": [["a"]]}, "not a readable tokenizer"),
        ("normalizer", {"type": "Nmt"}, "cannot be read: use another model"),
        ("pre_tokenizer", {"type": "Punctuation"}, "cannot be read: use another model"),
    ],
)
def test_what_is_damaged_or_not_read_is_refused(tmp_path, part, changes, reason):
    path = edited(tmp_path / "tokenizer.json", lambda content: content[part].update(changes))
    with pytest.raises(ModelFileError, match=reason):
        read_tokenizer(path)
