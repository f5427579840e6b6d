import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.loaders import load_corpus
from engine.errors import InputError
from engine.tokenizers.bpe_training import bpe_tokenizer, learn_merges
from engine.tokenizers.characters import UNKNOWN, CharacterTokenizer
from tests.tokenizer_files import small_byte_level

CORPUS = "\n\n".join(document.text for document in load_corpus())


def test_merges_of_the_bundled_corpus_are_those_the_library_learns():
    merges = learn_merges(CORPUS, 512)
    assert len(merges) == 256
    assert merges[:3] == [("Ġ", "t"), ("h", "e"), ("Ġ", "a")]
    ours, official = bpe_tokenizer(merges), small_byte_level([CORPUS], 512, special=())
    numbers = {"".join(pair): number for number, pair in enumerate(merges, 256)}
    assert numbers.items() <= official.get_vocab().items()
    ids = ours.encode(CORPUS[:20_000]).ids
    assert ids == official.encode(CORPUS[:20_000]).ids
    assert ours.decode(ids) == CORPUS[:20_000]


@given(st.text(alphabet="aab \nčb'", min_size=1, max_size=200), st.integers(256, 280))
def test_every_text_teaches_what_it_teaches_the_library(text, vocab_size):
    merges = learn_merges(text, vocab_size)
    official = small_byte_level([text], vocab_size, special=())
    assert len(official.get_vocab()) == 256 + len(merges)
    assert bpe_tokenizer(merges).encode(text).ids == official.encode(text).ids


@given(st.text(max_size=50))
def test_any_text_comes_back(text):
    tokenizer = bpe_tokenizer(learn_merges("the cat sat on the mat", 270))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_what_no_vocabulary_can_be_learnt_from_is_told():
    with pytest.raises(InputError, match="no room for the 256 bytes"):
        learn_merges("text", 255)
    with pytest.raises(InputError, match="no text"):
        learn_merges("", 300)


@given(st.text(min_size=1, max_size=50))
def test_characters_come_back(text):
    tokenizer = CharacterTokenizer.of([text])
    encoding = tokenizer.encode(text)
    assert tokenizer.vocab_size == len(set(text))
    assert tokenizer.decode(encoding.ids) == text
    assert [text[start:end] for start, end in encoding.offsets] == encoding.tokens


def test_a_character_outside_the_alphabet_is_told_or_kept_as_unknown():
    with pytest.raises(InputError, match="character 'z' at place 2 is none of the 2"):
        CharacterTokenizer.of(["abab"]).encode("abz")
    tokenizer = CharacterTokenizer.of(["abab"], keep_unknown=True)
    assert tokenizer.decode(tokenizer.encode("abz").ids) == "ab" + UNKNOWN


@pytest.mark.parametrize("alphabet", [[], ["a", "a"], ["ab"], [1]])
def test_an_alphabet_is_of_different_characters(alphabet):
    with pytest.raises(InputError, match="alphabet"):
        CharacterTokenizer(alphabet)
