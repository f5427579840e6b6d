"""Words of languages other than English, as BM25 compares them."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.documents.language import LANGUAGES, document_languages
from engine.retrieval.bm25 import Bm25
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


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (["图书馆星期一九点开门。", "储藏室的钥匙挂在厨房门后。"], "钥匙放在哪里？"),
        (["पुस्तकालय सोमवार को बंद है।", "चाबी दरवाज़े के पीछे है।"], "चाबी कहाँ है?"),
        (["도서관은 월요일에 닫는다.", "열쇠는 문 뒤에 있다."], "열쇠가 어디에 있나요?"),
        (["Die Bücherei ist am Montag zu.", "Die Schlüssel hängen am Haken."], "Wo hängt der Schlüssel?"),
        (["The library is closed on Mondays.", "Die Schlüssel hängen am Haken."], "Wo hängt der Schlüssel?"),
    ],
)
def test_a_question_finds_words_in_each_language_of_the_texts(texts, question):
    languages = document_languages(Document(text, text) for text in texts)
    assert Bm25(texts, languages=[*languages.values()]).scores([question])[0].argmax() == 1


@settings(max_examples=30)
@given(st.text(max_size=20), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_has_words_alike_composed_and_decomposed(text, language):
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert words([composed], [language]) == words([decomposed], [language])
