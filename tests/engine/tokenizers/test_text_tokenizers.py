"""The tokenizers of encoders against the `tokenizers` library, on texts of many scripts."""

import json
import unicodedata
from itertools import chain

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from engine.errors import InputError, ModelFileError
from engine.tokenizers.bpe import BPETokenizer
from engine.tokenizers.tokenizer_file import BytePairEncoderTokenizer, read_tokenizer
from engine.tokenizers.wordpiece import WordPieceStages
from tests import sentence_transformer_folders as folders
from tests.pytorch import transformers
from tests.tokenizer_files import ASSIGNED, byte_level, sentencepiece

# Letters, marks and digits of 37 scripts.
NAMES = (
    "Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati Oriya "
    "Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian Hangul Ethiopic Cherokee Khmer "
    "Mongolian Hiragana Katakana Bopomofo Han Yi Gothic Tifinagh Balinese Common"
)
ALL = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x10400))))
SCRIPTS = [
    [c for c in regex.findall(rf"\p{{Script={name}}}", ALL) if unicodedata.category(c) != "Cn"][:400]
    for name in NAMES.split()
]
ODD = [
    *("<s>", "</s>", "<mask>", "  <mask> ", "<pad>", "[CLS]", "[UNK]", "<|im_end|>", "<s", "Ġ", "▁", "▁▁a"),
    *("   ", "\n\n", "\t", "\u00a0", "\u2028", "\u200b", "\u00ad", "\x00", "\x7f", "\ufeff", "\u3000"),
    *("e\u0301", "\u0301", "ﬁ", "½", "①", "Ａ", "①②", "🙂", "👩‍👩‍👧", "🇩🇪", "'s"),
    *("1234", "12,5", "...", "ẞ", "İ"),
]
TEXTS = st.one_of(
    st.text(ASSIGNED, max_size=40),
    st.lists(
        st.one_of(
            st.sampled_from(ODD),
            st.sampled_from(folders.WORDS.split(" ")),
            *[st.text(st.sampled_from(script), max_size=8) for script in SCRIPTS],
        ),
        max_size=12,
    ).map(" ".join),
    st.lists(st.sampled_from([*ODD, *chain(*SCRIPTS)]), max_size=30).map("".join),
)
TEXTS |= st.builds(unicodedata.normalize, st.sampled_from(["NFD", "NFKD"]), TEXTS)


def with_normalizer(tokenizer, *steps):
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    return tokenizer


def other_prefix():
    tokens = ["[UNK]", *folders.WORDPIECES[5:], *(f"@@{c}" for c in "abcdefghijé日한")]
    model = models.WordPiece(
        {token: n for n, token in enumerate(tokens)},
        unk_token="[UNK]",
        continuing_subword_prefix="@@",
        max_input_chars_per_word=5,
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return with_normalizer(tokenizer, normalizers.NFC(), normalizers.Lowercase())


def byte_fallback(style):
    tokenizer = sentencepiece(style)
    tokenizer.add_tokens([AddedToken("é", normalized=True), AddedToken("ab", single_word=True)])
    return tokenizer


def prefixed_roberta():
    tokenizer = folders.roberta_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return folders.roberta_processing(tokenizer, prefix=True)


MADE = {
    "mpnet": folders.roberta_like_wordpiece,
    "roberta": folders.roberta_tokenizer,
    "roberta, prefixed": prefixed_roberta,
    "roberta, untrimmed": lambda: folders.roberta_processing(folders.roberta_tokenizer(), trim=False),
    "modernbert": folders.modern_bert_tokenizer,
    "qwen3": folders.qwen3_tokenizer,
    "xlm-roberta": folders.unigram_tokenizer,
    "xlm-roberta, older": lambda: folders.unigram_tokenizer(squeezed=False),
    "unigram, first": lambda: folders.unigram_tokenizer(split=False, prepend_scheme="first"),
    "unigram, whole": lambda: folders.unigram_tokenizer(split=False, prepend_scheme="never"),
    "unigram, NFKC": lambda: with_normalizer(folders.unigram_tokenizer(split=False), normalizers.NFKC()),
    "unigram, without accents": lambda: with_normalizer(
        folders.unigram_tokenizer(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()
    ),
    "unigram, replaced": lambda: with_normalizer(
        folders.unigram_tokenizer(split=False),
        normalizers.Sequence([normalizers.NFD(), normalizers.Replace("e", "ab"), normalizers.Strip()]),
        normalizers.Replace(Regex(r"\p{M}+"), ""),
        normalizers.Prepend("▁a"),
    ),
    "wordpiece, other prefix": other_prefix,
    "bpe, byte fallback": lambda: byte_fallback("prepend"),
    "bpe, byte fallback of Gemma": lambda: byte_fallback("gemma"),
    "bpe, byte fallback, NFKC": lambda: with_normalizer(byte_fallback("first"), normalizers.NFKC()),
}


SOME = ("mpnet", "qwen3", "unigram, replaced", "bpe, byte fallback of Gemma")  # of every kind of model


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Ours and the library's tokenizer of every kind, made on first use."""
    made = {}

    def both(name):
        if name not in made:
            path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
            MADE[name]().save(str(path))
            made[name] = read_tokenizer(path), Tokenizer.from_file(str(path))
        return made[name]

    return both


def assert_same(ours, theirs):
    assert ours.ids == theirs.ids
    assert ours.tokens == theirs.tokens
    assert ours.type_ids == theirs.type_ids
    assert ours.offsets == theirs.offsets


@pytest.mark.parametrize("name", MADE)
@given(first=TEXTS, second=TEXTS)
def test_texts_and_pairs_equal_the_library(tokenizers, name, first, second):
    ours, theirs = tokenizers(name)
    assert_same(ours.encode(first), theirs.encode(first))
    assert_same(ours.encode_pair(first, second), theirs.encode(first, second))


@pytest.mark.parametrize("name", SOME)
@given(texts=st.lists(TEXTS, max_size=4))
def test_many_texts_are_tokenized_as_each_alone(tokenizers, name, texts):
    ours, _ = tokenizers(name)
    alone = [ours.encode(text) for text in texts]
    assert ours.encode_batch(texts) == alone
    assert ours.ids_batch(texts) == [encoding.ids for encoding in alone]


@pytest.mark.parametrize("name", MADE)
@given(text=TEXTS)
def test_the_stages_are_the_tokens_of_the_text(tokenizers, name, text):
    ours, _ = tokenizers(name)
    stages = ours.stages(text)
    ids = [number for stage in stages for number in stage_ids(stage)]
    plain = ours.encode(text).ids
    before = len(plain) - len(ids) - ours.n_after
    assert ids == plain[before : len(plain) - ours.n_after]
    assert all(text[stage.start : stage.end] == stage.original for stage in stages)


def stage_ids(stage):
    return [piece.id for piece in stage.pieces] if isinstance(stage, WordPieceStages) else stage.ids


@pytest.mark.parametrize("name", SOME)
@given(text=TEXTS)
def test_lower_case_comes_before_everything_else(tokenizers, name, text):
    ours, theirs = tokenizers(name)
    lowered = read_tokenizer(ours.path, lower_case=True)
    library = Tokenizer.from_str(theirs.to_str())
    steps = [normalizers.Lowercase(), *([library.normalizer] if library.normalizer else [])]
    library.normalizer = normalizers.Sequence(steps)
    expected = library.encode(text)
    assert_same(lowered.encode(text), expected)
    assert lowered.ids_batch([text]) == [expected.ids]


BESIDE = {"content": "zq", "normalized": True, **dict.fromkeys(("lstrip", "rstrip", "single_word"), False)}


@pytest.mark.parametrize(
    ("make", "model_type", "settings"),
    [
        (folders.wordpiece, "bert", {}),  # lower case, whatever tokenizer.json says
        (folders.wordpiece, "bert", {"do_lower_case": False, "tokenize_chinese_chars": False}),
        (folders.wordpiece, "nomic_bert", {"strip_accents": False, "tokenizer_class": "BertTokenizerFast"}),
        (folders.wordpiece, "bert", {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}),
        (folders.wordpiece, "distilbert", {"added_tokens_decoder": {"24": {**BESIDE, "special": False}}}),
        (folders.roberta_like_wordpiece, "mpnet", {"do_lower_case": False}),
        (folders.roberta_tokenizer, "roberta", {"add_prefix_space": True}),
        (lambda: folders.unigram_tokenizer(split=False), "xlm-roberta", {"mask_token": "<mask>"}),
        (folders.modern_bert_tokenizer, "modernbert", {"tokenizer_class": "BertTokenizer"}),
        (folders.qwen3_tokenizer, "qwen3", {"additional_special_tokens": ["<|new|>", "the"]}),
        (lambda: sentencepiece("first"), "gemma3_text", {"unk_token": "<unk>"}),
        (lambda: sentencepiece("gemma"), "mistral", {"tokenizer_class": "LlamaTokenizer"}),
        (lambda: sentencepiece("prepend"), "llama", {"tokenizer_class": "LlamaTokenizer"}),
        (folders.qwen3_tokenizer, "llama", {"tokenizer_class": "LlamaTokenizerFast"}),
        (lambda: byte_level("smollm"), "qwen2", {"tokenizer_class": "PreTrainedTokenizerFast"}),
        (folders.unigram_tokenizer, "camembert", {"add_prefix_space": False, "split_special_tokens": True}),
        (lambda: byte_level("smollm"), "llama", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|end|>"}),
    ],
)
def test_settings_of_other_files_are_those_of_transformers(tmp_path, make, model_type, settings):
    tokenizer = make()
    if make is folders.wordpiece:
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    ours, theirs = read_tokenizer(path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    library = Tokenizer.from_str(theirs.backend_tokenizer.to_str())
    library.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    library.encode_special_tokens = theirs.split_special_tokens
    for text in ["The Cat", "Ábc zq naïve 日本 abc", "the <|new|> é  <tool>", *folders.WORDS.split(";")]:
        assert ours.encode(text).ids == theirs(text)["input_ids"] == ours.ids_batch([text])[0]
        if isinstance(ours, BytePairEncoderTokenizer):  # a language model reads the same files
            found, expected = BPETokenizer.from_json(path).encode(text), library.encode(text)
            assert (found.ids, found.offsets) == (expected.ids, expected.offsets)


@pytest.mark.parametrize(
    ("name", "n_special", "n_after", "padding"),
    [
        ("mpnet", 2, 1, "<pad>"),
        ("roberta", 2, 1, "<pad>"),
        ("modernbert", 2, 1, "[PAD]"),
        ("qwen3", 1, 1, None),
    ],
)
def test_what_stands_around_a_text_is_known(tokenizers, name, n_special, n_after, padding):
    ours, theirs = tokenizers(name)
    before, inner, after = ours.around(ours.encode("a cat").tokens)
    assert (len(before) + len(after), len(after)) == (n_special, n_after)
    assert inner == theirs.encode("a cat", add_special_tokens=False).tokens
    assert (ours.n_special, ours.n_after) == (n_special, n_after)
    assert ours.pad_id == (theirs.token_to_id(padding) if padding else 0)
    assert ours.vocab_size == theirs.get_vocab_size()
    assert all(theirs.id_to_token(number) == ours.token(number) for number in range(ours.vocab_size))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"model": {"type": "WordLevel", "vocab": {}}},
            "is a WordLevel tokenizer: only WordPiece, BPE, Unigram",
        ),
        ({"model": None}, "it has no model"),
        ({"post_processor": {"type": "Unknown"}}, "post_processor is Unknown"),
        (
            {
                "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 2**31], "sep": ["</s>", 2]}
                | dict.fromkeys(("trim_offsets", "add_prefix_space"), True)
            },
            "adds the token 2147483648, which the vocabulary lacks",
        ),
        ({"normalizer": {"type": "Nmt"}}, "normalizer .* cannot be read"),
        ({"tokenizer_class": "T5TokenizerFast"}, "names .T5Tokenizer., whose tokenizer transformers makes"),
        ({"tokenizer_class": "BertTokenizer"}, r"token '\[UNK\]' \(unk_token\) is not in its vocabulary"),
        ({"tokenizer_class": "CamembertTokenizer"}, "is a BPE tokenizer, and its .* makes Unigram of it"),
    ],
)
def test_what_is_not_read_is_refused_with_the_reason(tmp_path, change, reason):
    path = tmp_path / "tokenizer.json"
    folders.roberta_tokenizer().save(str(path))
    folders.edit_json(tmp_path / "tokenizer_config.json" if "tokenizer_class" in change else path, **change)
    with pytest.raises(ModelFileError, match=reason):
        read_tokenizer(path)


def test_an_added_token_that_is_normalised_to_nothing_is_left_to_the_engine(tmp_path):
    tokenizer = with_normalizer(folders.unigram_tokenizer(), normalizers.StripAccents())
    tokenizer.add_tokens([AddedToken("\u0301", normalized=True)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ours = read_tokenizer(tmp_path / "tokenizer.json")
    assert ours.encode_batch(["a\u0301bÉ", "東"]) == [ours.encode("a\u0301bÉ"), ours.encode("東")]


def test_a_text_that_is_none_is_refused(tokenizers):
    ours, _ = tokenizers("roberta")
    for call in (ours.encode, lambda text: ours.encode_pair("a", text), lambda text: ours.ids_batch([text])):
        with pytest.raises(InputError, match="half of a surrogate pair"):
            call("\ud800")
        with pytest.raises(InputError, match="int, not a string"):
            call(3)
