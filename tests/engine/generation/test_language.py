"""Whether a text is English, as far as its commonest words tell."""

import pytest

from engine.generation.reading import is_english


@pytest.mark.parametrize(
    "text",
    [
        "When was the tower of Vardholm finished?",
        "price of insulin",
        "Who is Müller?",
        "Curaçao population",
        "Where is Los Angeles?",
        "Who wrote 论语?",
        "| Years | Days |\n|---|---|\n| 0 to 5 | 25 |",
        "1, 2, 3",
        "",
        "The café of Île de la Cité was opened in 1931, and it is still there.",
    ],
)
def test_english_names_numbers_and_tables_pass(text):
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wann wurde der Turm gebaut?",
        "Quand la tour a-t-elle été construite ?",
        "¿Cuándo se construyó la torre?",
        "Hvornår blev tårnet bygget?",
        "Kule ne zaman yapıldı?",
        "Когда построили башню?",
        "タワーはいつ完成しましたか",
        "متى بني البرج؟",
        "Der Turm wurde 1891 gebaut. Er steht am Hafen und war lange das höchste Haus in der Stadt.",
        "De toren van de stad werd in 1891 gebouwd, en het was een van de eerste.",
    ],
)
def test_other_languages_and_letters_do_not(text):
    assert not is_english(text)
