"""Words of languages other than English, as BM25 compares them."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.documents.language import LANGUAGES
from engine.retrieval.words import words


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "die Häuser", "eines Hauses"),
        ("german", "STRASSE", "Straßen"),
        ("french", "les bibliothèques", "bibliothèque"),
        ("english", "cafe\u0301", "café"),
        ("english", "ｆｕｌｌ ﬁle", "full file"),
        ("english", "co\u00adoperate", "cooperate"),
        ("russian", "библиотеки", "библиотека"),
        ("turkish", "KIRMIZI İğneler", "kırmızı iğne"),
        ("greek", "βιβλιοθήκες", "ΒΙΒΛΙΟΘΗΚΗ"),
        ("arabic", "المكتبة", "مكتبة"),
        ("hindi", "चाबियाँ", "चाबी"),
        ("hebrew", "מפתח\u200d", "מפתח"),
        ("korean", "도서관에서는", "도서관을"),
        ("persian", "می\u200cروم", "میروم"),
    ],
)
def test_forms_of_one_word_are_one_word(language, one, other):
    first, second = words([one, other], [language] * 2)
    assert first == second != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("पुस्तकालय सोमवार", ["पुस्तकालय", "सोमवार"]),  # vowel signs are part of their word
        ("图书馆", ["图书", "书馆", "图", "书", "馆"]),
        ("鍵はドア 2024年", ["鍵", "ドア", "2024", "年"]),
        ("กุญแจ", ["กุญ", "ญแ", "แจ"]),
        ("도서관은", ["도서", "서관"]),
        ("회의", ["회의", "회"]),
        ("회의는 2024년에", ["회의", "2024년"]),
        ("x² 7 café_1", ["x²", "café_1"]),
    ],
)
def test_words_without_blanks_between_them_are_pairs(text, expected):
    assert words([text], ["urdu"]) == [expected]


@settings(max_examples=30)
@given(st.text(max_size=20), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_has_words_alike_composed_and_decomposed(text, language):
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert words([composed], [language]) == words([decomposed], [language])
