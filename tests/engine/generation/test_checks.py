import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.generation.attribution import DROP_WITHOUT_ANY
from engine.generation.checks import CheckedSentence, UnknownWord, check_sentences, is_rare

PASSAGES = (
    "The Orrin bridge cost 1,250,000 crowns; it carries 212 cars an hour.",
    "Ada Holm’s mayoralty began in 1932. The inventories were kept at 3.50 per page.",
)
QUESTION = "Who opened the Orrin bridge in Vardholm?"


def unknown(text, encoder, passages=PASSAGES, question=QUESTION):
    """The unknown words of each sentence of a text, as text and kind."""
    return [
        [(text[word.start : word.end], word.kind) for word in sentence.unknown]
        for sentence in check_sentences(text, passages, question, encoder.tokenizer)
    ]


def test_a_number_is_known_in_every_form(encoder):
    for number in ("1,250,000", "1250000", "1.25 million", "1\u202f250\u202f000", "212", "3.50", "3.5", "3½"):
        assert unknown(f"It was {number} then.", encoder) == [[]]
    for number in ("125", "1250", "21", "3.05", "1986", "Ⅳ"):
        assert unknown(f"It was {number} then.", encoder) == [[(number, "number")]]
    assert unknown("It began on 1 June 1932.", encoder) == [[("1", "number"), ("June", "name")]]
    assert unknown("It began on 1 June 1932.", encoder, passages=("It began 1932-06-01.",)) == [[]]
    assert unknown("It cost 1.25 billion.", encoder) == [[("1.25", "number")]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It was opened by Ada Holm.", []),
        ("It was opened by Holm's friends.", []),
        ("It stands in Vardholm.", []),  # the question names it
        ("It was opened by King Olaf of Norway.", ["King", "Olaf", "Norway"]),
        ("It was ORRIN.", []),
    ],
)
def test_a_name_is_known_from_passages_and_question(encoder, text, names):
    assert unknown(text, encoder) == [[(name, "name") for name in names]]


def test_the_first_word_of_a_sentence_is_no_name_and_may_be_rare(encoder):
    for text in ("Nobody came.", "“Nobody came.”", "- Nobody came.", "(Nobody came.)"):
        assert unknown(text, encoder) == [[]]
    assert unknown("Zymurgists came. People went.", encoder) == [[("Zymurgists", "rare word")], []]


@pytest.mark.parametrize(
    ("text", "source"), [("All U.S. sales rose.", "US sales"), ("All US sales.", "U.S. sales")]
)
def test_an_abbreviation_is_known_with_and_without_full_stops(encoder, text, source):
    assert not any(each.unknown for each in check_sentences(text, [source], "All rose.", encoder.tokenizer))


def test_words_are_compared_by_their_stems(encoder):
    for word in ("inventory", "inventories", "bridges", "carrying", "opening", "cars", "costs"):
        assert unknown(f"it {word}", encoder) == [[]]


def test_only_rare_words_are_reported(encoder):
    assert unknown("The people walked slowly over the zymurgical marquetry.", encoder) == [
        [("zymurgical", "rare word"), ("marquetry", "rare word")]
    ]
    assert is_rare("zymurgical", encoder.tokenizer)
    assert not is_rare("the", encoder.tokenizer)
    assert not is_rare("\u200b", encoder.tokenizer)  # of no tokens


def test_without_passages_only_the_question_is_known_and_a_text_of_nothing_has_no_sentences(encoder):
    assert unknown("It is the bridge in Vardholm of 1932.", encoder, passages=()) == [[("1932", "number")]]
    for text in ("", "  \n ", "\n\n"):
        assert check_sentences(text, PASSAGES, QUESTION, encoder.tokenizer) == ()


def test_other_scripts_are_read(encoder):
    assert unknown("塔は1891年に完成した。", encoder, passages=("塔は1891年に完成した。",)) == [[]]
    [words] = unknown("Мост открыт в 1932 году, сказал Иван.", encoder)
    assert ("Иван", "name") in words
    assert not any(kind == "number" for _, kind in words)
    [[(_, kind)]] = unknown("塔は高い。", encoder)
    assert kind == "rare word"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_is_known_from_itself_and_every_span_is_of_it(encoder, text):
    assert not any(unknown(text, encoder, passages=(text,)))
    for sentence in check_sentences(text, (), "", encoder.tokenizer):
        assert text[sentence.start : sentence.end].strip()
        for word in sentence.unknown:
            assert sentence.start <= word.start < word.end <= sentence.end


def sentence(*kinds, log_prob_drop=None):
    return CheckedSentence(0, 9, tuple(UnknownWord(0, 1, kind) for kind in kinds), log_prob_drop)


@pytest.mark.parametrize(
    ("checked", "reason"),
    [
        (sentence(), ""),
        (sentence("rare word"), ""),
        (sentence(log_prob_drop=DROP_WITHOUT_ANY), ""),
        (sentence("number"), "a number in it occurs in no source"),
        (sentence("name", "name", "rare word"), "a name in it occurs in no source"),
        (sentence("number", "name", log_prob_drop=9.0), "a name and a number in it occur in no source"),
        (sentence(log_prob_drop=DROP_WITHOUT_ANY - 0.01), "it would be as probable without the sources"),
        (sentence("rare word", log_prob_drop=-1.0), "it would be as probable without the sources"),
    ],
)
def test_a_sentence_is_supported_unless_something_in_it_is_made_up(checked, reason):
    assert checked.reason == reason
    assert checked.is_supported is (reason == "")
