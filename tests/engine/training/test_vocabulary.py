import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.errors import InputError
from engine.tokenizers.characters import UNKNOWN, CharacterTokenizer
from engine.training.language.vocabulary import learn_vocabulary, tokenizer_of
from tests.tokenizer_files import small_byte_level

CORPUS = "\n\n".join(document.text for document in load_corpus(BUNDLED_CORPUS))


@given(st.text(alphabet="aab \nčb'", min_size=1, max_size=200), st.integers(256, 280))
@example(CORPUS, 512)
def test_learnt_merges_cut_a_text_as_the_library_does(text, size):
    vocabulary = learn_vocabulary("bpe", text, size)
    ours, official = tokenizer_of(vocabulary), small_byte_level([text], size, special=())
    assert len(official.get_vocab()) == vocabulary.size == ours.vocab_size
    ids = ours.encode(text[:20_000]).ids
    assert ids == official.encode(text[:20_000]).ids
    assert ours.decode(ids) == text[:20_000]


@given(st.text(max_size=50))
def test_any_text_comes_back(text):
    tokenizer = tokenizer_of(learn_vocabulary("bpe", "the cat sat on the mat", 270))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_what_no_vocabulary_can_be_learnt_from_is_told():
    with pytest.raises(InputError, match="no room for the 256 bytes"):
        learn_vocabulary("bpe", "text", 255)
    with pytest.raises(InputError, match="no text"):
        learn_vocabulary("bpe", "", 300)


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
