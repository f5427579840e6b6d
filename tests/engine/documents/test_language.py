"""The language of a text."""

import pytest

from engine.documents.document import Document, document_languages
from engine.documents.language import LANGUAGES, detected, is_english, stop_words

SENTENCES = {
    "german": "Der Schlüssel liegt hinter der Tür, und die Bücherei ist am Montag geschlossen.",
    "french": "La clé est derrière la porte et la bibliothèque ouvre le lundi.",
    "spanish": "La llave está detrás de la puerta y la biblioteca abre los lunes.",
    "portuguese": "A chave está atrás da porta e a biblioteca não abre às segundas.",
    "italian": "La chiave è dietro la porta e la biblioteca non apre il lunedì.",
    "dutch": "De sleutel ligt achter de deur en de bibliotheek is op maandag niet open.",
    "danish": "Nøglen ligger bag døren, og biblioteket er ikke åbent om mandagen.",
    "swedish": "Nyckeln ligger bakom dörren och biblioteket är inte öppet på måndagar.",
    "turkish": "Anahtar kapının arkasında ve kütüphane pazartesi günü için açık değil.",
    "finnish": "Avain on oven takana, ja kirjasto ei ole auki, kun se on suljettu.",
    "polish": "Klucz jest za drzwiami, a biblioteka nie jest czynna w poniedziałek.",
    "czech": "Klíč je za dveřmi a knihovna není v pondělí otevřená, ale byla.",
    "hungarian": "A kulcs az ajtó mögött van, és a könyvtár hétfőn nem nyitott.",
    "romanian": "Cheia este în spatele ușii și biblioteca nu este deschisă.",
    "indonesian": "Kunci itu ada di belakang pintu dan perpustakaan tidak buka pada hari Senin.",
    "vietnamese": "Chìa khóa ở sau cửa và thư viện không mở cửa vào thứ hai.",
    "russian": "Ключ лежит за дверью, а библиотека в понедельник не работает.",
    "ukrainian": "Ключ лежить за дверима, а бібліотека в понеділок не працює, бо це вихідний.",
    "arabic": "المفتاح خلف الباب، والمكتبة لا تفتح في يوم الاثنين.",
    "persian": "کلید پشت در است و کتابخانه در دوشنبه باز نیست.",
    "urdu": "چابی دروازے کے پیچھے ہے اور کتب خانہ پیر کو بند ہے۔",
    "hebrew": "המפתח מאחורי הדלת.",
    "hindi": "चाबी दरवाज़े के पीछे है और पुस्तकालय बंद है।",
    "greek": "Το κλειδί είναι πίσω από την πόρτα.",
    "chinese": "钥匙在门后面。",
    "japanese": "鍵はドアの後ろにあります。",
    "korean": "열쇠는 문 뒤에 있다.",
    "thai": "กุญแจอยู่หลังประตู",
    "telugu": "తాళం తలుపు వెనుక ఉంది.",
    "other": "ལྡེ་མིག་སྒོའི་རྒྱབ་ན་ཡོད།",  # Tibetan
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language):
    assert detected(SENTENCES[language]) == language
    assert is_english(SENTENCES[language]) is False


def test_each_language_can_be_told_from_others_of_its_script():
    for name, language in LANGUAGES.items():
        alone = [each.script for each in LANGUAGES.values()].count(language.script) == 1
        assert alone or len(stop_words(name)) > 15, name


def test_a_document_without_words_of_a_language_has_that_of_most_others():
    texts = {"a": SENTENCES["german"], "b": SENTENCES["chinese"], "c": "Vardholm 1891", "d": "Ada | 42"}
    documents = [Document(name, text) for name, text in texts.items()]
    assert document_languages(documents) == {"a": "german", "b": "chinese", "c": "german", "d": "german"}
    assert document_languages(documents[2:]) == {"c": "english", "d": "english"}
    chosen = Document("e", SENTENCES["german"], language="dutch")
    assert document_languages([chosen]) == {"e": "dutch"}
    assert document_languages([]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When was the tower finished?", True),
        ("Vardholm 1891", True),
        ("name: Ada Holm | Oslo | 42", True),
        ("SKU: LI-2155\nName: White lamp\nPrice in EUR: 168.90\nIn stock: 308", True),
        ("Plan for May\nLength (min): 9\n" + "Teacher: Ann Day\nRoom: Tall Hall\n" * 9, True),
        ("The German word der, die or das is an article, and le is one of French.", True),
        ("", True),
        ("Curaçao population", True),
        ("Who wrote 论语?", True),
        ("The café of Île de la Cité was opened in 1931, and it is still there.", True),
        ("Wann wurde der Turm von Vardholm fertig?", False),
        ("Der Turm wurde 1891 gebaut. Er steht am Hafen und war lange das höchste Haus in der Stadt.", False),
    ],
)
def test_other_languages_than_english_are_told(text, expected):
    assert is_english(text) is expected
