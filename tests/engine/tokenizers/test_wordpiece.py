import json
from itertools import accumulate
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.loaders import load_corpus
from engine.errors import InputError, ModelFileError
from engine.tokenizers.normalized import apply, unchanged
from engine.tokenizers.normalizers import read_normalizer
from engine.tokenizers.wordpiece import WordPieceTokenizer
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.tokenizer_files import added

UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
# Marks that are sorted, or stripped, or neither; what cleaning drops or makes a blank; what is Chinese or
# nearly; punctuation of one Unicode version or another; capitals of several; special tokens and near misses.
ODD = [
    *"aeIÉñÅ \t\n\r\x00\x0b\x0c\x1c\x7f\x85\xa0\xad.,-_$`'",
    *"\u0301\u0316\u0334\u0344\u0f73\u0f75\u302e\u1b44\u08d4\u1dfb\U0001d165\U0001d16d\U0001d15e\U0001e94a",
    *"\u200b\u2028\u3000\u180e\ufeff\ufffd\ue000\u0378\U0010ffff\U000e0001\u0890\u166d\U000111c9\u2e43",
    *"東豈\U0002f800\U0002b820\U0002b920한각ﬁΣςİǅ\u1c89\ua7cb\U00010d50\U00011938\U000105c9🙂",
    *("the", "unhappily", "Naïve", "x" * 101, "a" * 100, "##ing", "e\u0301\u0316"),
    *("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[sep]", "[SEP", " [MASK] "),
]
MIXED = st.lists(st.sampled_from(ODD), max_size=30).map("".join)
TEXTS = st.one_of(UNICODE, MIXED)
ADDED = ["Foo Bar", " foo bar", "[x]", " [x] ", "É!", "e\u0301! ", "[x]!  ", "w", "_w", "東foo"]


def library_tokenizer(path):
    library = tokenizers.Tokenizer.from_file(str(path))
    library.no_truncation()
    library.no_padding()
    return library


def parts(encoding):
    return encoding.ids, encoding.tokens, encoding.offsets, encoding.type_ids


@pytest.fixture(scope="module")
def path():
    return model_path(DEFAULT_ENCODER) / "tokenizer.json"


@pytest.fixture(scope="module")
def tokenizer(path):
    return WordPieceTokenizer(path)


@pytest.fixture(scope="module")
def library(path):
    return library_tokenizer(path)


@given(TEXTS, TEXTS)
def test_any_text_and_any_pair_is_what_the_library_makes_of_it(tokenizer, library, first, second):
    encoding = tokenizer.encode(first)
    assert parts(encoding) == parts(library.encode(first))
    spans = encoding.offsets[1:-1]
    assert all(0 <= start < end <= len(first) for start, end in spans)
    assert spans == sorted(spans)
    assert parts(tokenizer.encode_pair(first, second)) == parts(library.encode(first, second))


def test_every_document_of_the_corpus_is_what_the_library_makes_of_it(tokenizer, library):
    for document in load_corpus():
        assert parts(tokenizer.encode(document.text)) == parts(library.encode(document.text))


# All of the two planes of letters and signs, and some of those of ideographs, of none and of private use.
CHARACTERS = [chr(number) for number in range(0x20000) if not 0xD800 <= number < 0xE000]
CHARACTERS += [chr(number) for number in (*range(0x20000, 0x110000, 61), *range(0xE0000, 0xE0200))]


def test_every_character_is_normalised_as_by_the_library(tokenizer, library):
    theirs = library.normalizer.normalize_str
    changes = read_normalizer(json.loads(library.to_str()), Path())
    assert [c for c in CHARACTERS if apply(changes, unchanged(c)).text != theirs(c)] == []


def edited(path, folder, **changes):
    """Save a tokenizer.json with other values, ``section__key=value``, and give its path."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        section, _, key = name.partition("__")
        if key:
            content[section][key] = value
        else:
            content[section] = value
    target = folder / "tokenizer.json"
    target.write_text(json.dumps(content), encoding="utf-8")
    return target


CONFIGURATIONS = {
    "cased": {"normalizer__lowercase": False},
    "cased without accents": {"normalizer__lowercase": False, "normalizer__strip_accents": True},
    "accents": {"normalizer__strip_accents": False},
    "unclean": {"normalizer__clean_text": False},
    "no Chinese": {"normalizer__handle_chinese_chars": False},
    "short words": {"model__max_input_chars_per_word": 5},
    "long words": {"model__max_input_chars_per_word": 1000},
    "BertProcessing": {
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]}
    },
    "added tokens": {
        "added_tokens": [
            added("[SEP]", 102, special=True),
            added("Foo Bar", 30522, special=False, normalized=True, lstrip=True, rstrip=True),
            added("[x]", 30523, special=False, lstrip=True, single_word=True),
            added("É!", 30524, special=True, normalized=True, rstrip=True),
            added("[x]!", 30525, special=False, rstrip=True),
            added("w", 1059, special=False, normalized=True, single_word=True),
        ]
    },
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def both(request, path, tmp_path_factory):
    target = edited(path, tmp_path_factory.mktemp("folder"), **CONFIGURATIONS[request.param])
    return WordPieceTokenizer(target), library_tokenizer(target)


@given(st.one_of(UNICODE, st.lists(st.sampled_from(ODD + ADDED), max_size=30).map("".join)))
def test_other_configurations_are_what_the_library_makes_of_them(both, text):
    ours, library = both
    assert parts(ours.encode(text)) == parts(library.encode(text))
    assert parts(ours.encode_pair(text, "b")) == parts(library.encode(text, "b"))
    assert ours.vocab_size == library.get_vocab_size()


@given(TEXTS)
def test_steps_tell_what_encode_does(tokenizer, text):
    steps, encoding = tokenizer.stages(text), tokenizer.encode(text)
    assert [piece.id for word in steps for piece in word.pieces] == encoding.ids[1:-1]
    assert [piece.token for word in steps for piece in word.pieces] == encoding.tokens[1:-1]
    assert [span for word in steps for span in word.offsets] == encoding.offsets[1:-1]
    for word in steps:
        assert word.original == text[word.start : word.end]
        assert word.offsets[0][0] == word.start
        assert word.offsets[-1][1] == word.end
        ends = list(accumulate(piece.end - piece.start for piece in word.pieces))
        assert ends[-1] == len(word.normalized)  # the pieces are the word
        assert [piece.end for piece in word.pieces] == ends


def test_steps_show_every_candidate_from_the_longest_to_the_match(tokenizer):
    [word] = tokenizer.stages("Unhappily")
    assert (word.original, word.normalized, word.special) == ("Unhappily", "unhappily", False)
    assert [piece.token for piece in word.pieces] == ["un", "##ha", "##pp", "##ily"]
    assert word.pieces[0].tried == ["unhappily"[:length] for length in range(9, 1, -1)]
    assert word.pieces[2].tried == ["##ppily", "##ppil", "##ppi", "##pp"]
    for piece in word.pieces:
        assert piece.tried[-1] == piece.token == tokenizer.token(piece.id)


@pytest.mark.parametrize("character", ["a", "é", "한", "\u0301", "\0"])
def test_a_word_of_a_megabyte_is_read_in_linear_time(tokenizer, character):
    text = character * (1_000_000 // len(character.encode()))
    encoding = tokenizer.encode(text)  # in quadratic time this would not come back
    unknown = [("[UNK]", (0, len(text)))] if character in "aé한" else []
    assert list(zip(encoding.tokens, encoding.offsets, strict=True))[1:-1] == unknown


@pytest.mark.parametrize(
    ("text", "reason"), [(None, "NoneType"), (b"x", "bytes"), (["x"], "list"), ("a\udc80", "surrogate")]
)
def test_what_is_not_text_is_refused(tokenizer, text, reason):
    for method in (tokenizer.encode, tokenizer.stages):
        with pytest.raises(InputError, match=reason):
            method(text)
    for method in (tokenizer.encode_batch, tokenizer.ids_batch):
        with pytest.raises(InputError, match=f"text 1 .*{reason}"):
            method(["fine", text])
    for pair in ((text, "fine"), ("fine", text)):
        with pytest.raises(InputError, match=reason):
            tokenizer.encode_pair(*pair)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"normalizer": {"type": "Nmt"}}, "cannot be read: use another"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer is Whitespace"),
        ({"model": {"type": "WordPiece"}}, "vocab"),
        ({"model__unk_token": "[?]"}, r"\[\?\]"),
        ({"model__unk_token": None}, "None stands where str"),
        ({"model__vocab": {"[UNK]": "0"}}, "'0' stands where int"),
        ({"model__vocab": {"[UNK]": -1}}, "-1 stands where int"),
        ({"model__max_input_chars_per_word": True}, "True stands where int"),
        ({"normalizer__lowercase": "yes"}, "'yes' stands where bool"),
        ({"post_processor": {"type": "RobertaProcessing"}}, "post_processor is RobertaProcessing"),
        ({"post_processor__single": []}, "one text, and two"),
        ({"post_processor__pair": [{"Sequence": {"id": "C", "type_id": 0}}]}, "neither a text nor"),
        ({"post_processor__special_tokens": {}}, "CLS"),
        ({"added_tokens": [{"id": 0, "content": "[PAD]"}]}, "single_word"),
        ({"added_tokens": [3]}, "not a readable tokenizer"),
    ],
    ids=str,
)
def test_a_tokenizer_that_cannot_be_read_is_refused_with_the_reason(path, tmp_path, changes, reason):
    target = edited(path, tmp_path, **changes)
    with pytest.raises(ModelFileError, match=reason) as error:
        WordPieceTokenizer(target)
    assert str(target) in str(error.value)
    assert any(advice in str(error.value) for advice in ("download it again", "use a"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, r"has no tokenizer\.json"), ("", "JSON"), ("[]", "JSON"), ("{}", "pre_tokenizer is missing")],
)
def test_a_missing_or_damaged_file_is_refused(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelFileError, match=reason):
        WordPieceTokenizer(tmp_path / "tokenizer.json")


def test_what_only_the_library_cannot_read_is_refused_too(path, tmp_path):
    tokenizer = WordPieceTokenizer(edited(path, tmp_path, version="9"))
    assert len(tokenizer.encode("a")) == 3
    with pytest.raises(ModelFileError, match="not a readable tokenizer"):
        tokenizer.encode_batch(["a"])
