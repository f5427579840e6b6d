from hypothesis import given
from hypothesis import strategies as st


def test_known_texts_give_known_tokens(encoder):
    encoding = encoder.tokenizer.encode("Open-source LLMs rock.")
    assert encoding.tokens == ["[CLS]", "open", "-", "source", "ll", "##ms", "rock", ".", "[SEP]"]
    assert encoder.tokenizer.encode("The cat sat unhappily").ids[:5] == [101, 1996, 4937, 2938, 4895]


def test_offsets_point_into_the_text(encoder):
    text = "Naïve LLMs, 東京!"
    pieces = [text[start:end] for start, end in encoder.tokenizer.encode(text).offsets]
    assert pieces == ["", "Naïve", "LL", "Ms", ",", "東", "京", "!", ""]


def test_long_texts_are_neither_cut_nor_padded(encoder):
    assert len(encoder.tokenizer.encode("word " * 600)) == 602
    assert len(encoder.tokenizer.encode("")) == 2


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_begins_with_cls_and_ends_with_sep(encoder, text):
    ids = encoder.tokenizer.encode(text).ids
    assert (ids[0], ids[-1]) == (101, 102)


def test_a_batch_of_texts_of_different_lengths_is_not_padded(encoder):
    texts = ["one", "word " * 600, ""]
    together = encoder.tokenizer.encode_batch(texts)
    assert together == [encoder.tokenizer.encode(text) for text in texts]
    assert [len(encoding) for encoding in together] == [3, 602, 2]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_offsets_stay_within_the_text_and_never_go_back(encoder, text):
    spans = encoder.tokenizer.encode(text).offsets[1:-1]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
