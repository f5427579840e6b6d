from dataclasses import replace

import pytest

from engine.retrieval.language_fit import MANY_LANGUAGES, is_for_english, language_note


@pytest.mark.parametrize(
    ("name", "vocab_size", "expected"),
    [
        ("all-MiniLM-L6-v2", 30_522, True),
        ("ModernBERT-base", 50_368, True),
        ("bge-small-zh-v1.5", 21_128, False),
        ("gbert-base-german", 31_102, False),
        ("bge-m3", 250_002, False),
        ("paraphrase-multilingual-MiniLM-L12-v2", 250_037, False),
    ],
)
def test_vocabulary_and_name_tell_models_of_english(encoder, name, vocab_size, expected):
    model = replace(encoder, name=name, config=replace(encoder.config, vocab_size=vocab_size))
    assert is_for_english(model) is expected


def test_languages_are_said_once_with_models_that_read_them(encoder):
    note = language_note(["german", "english", "german", "hebrew"], encoder, "Où est la clé de la porte ?")
    assert "trained on English, and documents or the question are in German, Hebrew, French:" in note
    assert all(name.partition("/")[2] in note for name in MANY_LANGUAGES)
    assert "and the reader were" in language_note(["german"], encoder, with_reader=True)
    many = replace(encoder, config=replace(encoder.config, vocab_size=250_002))
    for documents, model, question in (
        (["english"], encoder, "Where is it?"),
        (["german"], many, "Wo ist es?"),
    ):
        assert language_note(documents, model, question) == ""
