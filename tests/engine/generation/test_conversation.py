import pytest

from engine.generation.conversation import Turn, follow_up, has_new_name, phrases, topic_of
from engine.retrieval.relevance import null_scores_of
from tests.indexes import index_of_texts

TEXTS = (
    "The Vardholm lighthouse was finished in 1891 by forty masons from the coast.",
    "Its lamp was electric from 1924 on, and the lighthouse keeper left in 1977.",
    "The harbour of Sandvik freezes from December to March, and ferries stop.",
    "Bread in Sandvik is made of rye, and baked for two hours in a stone oven.",
)
BUILT = Turn("When was the Vardholm lighthouse finished?", "It was finished in 1891.")


@pytest.fixture(scope="module")
def searched(encoder):
    index = index_of_texts(TEXTS, encoder)
    return index, encoder, null_scores_of(index, encoder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When was the Vardholm lighthouse finished?", ["Vardholm lighthouse finished"]),
        ("What were the company’s revenues in 2015, and why?", ["company’s revenues", "2015"]),
        ("How much does it cost, and how long is it?", ["cost"]),
        ("And then?", []),
        ("", []),
    ],
)
def test_phrases_stand_between_stop_words_and_marks(text, expected):
    assert phrases(text) == expected


def test_the_topic_is_what_the_question_lacks_of_the_first_and_the_last():
    turns = [BUILT, Turn("Who left?", "The keeper."), Turn("And the lamp of 1924?", "Electric.")]
    assert topic_of(turns, "Why?") == ["Vardholm lighthouse finished", "lamp", "1924"]
    assert topic_of(turns, "And the lamp in 1950?") == ["Vardholm lighthouse finished"]
    assert topic_of([], "Why?") == []


@pytest.mark.parametrize(
    "question", ["And of bread?", "And by whom?", "who was it built by", "By how many people?"]
)
def test_a_follow_up_is_read_with_the_topic_of_the_conversation(searched, question):
    own, turns = follow_up(question, [BUILT], *searched)
    assert own == f"{question} (Vardholm lighthouse finished)"
    assert turns == (BUILT,)


@pytest.mark.parametrize(
    "question",
    [
        "How is the bread in Sandvik baked?",
        "When does the harbour of Sandvik freeze?",
        "How do I mend a flat tyre?",
        "Can dogs eat grapes?",
        "What is the speed of a cheetah?",
    ],
)
def test_a_question_of_its_own_opens_a_new_topic(searched, question):
    assert follow_up(question, [BUILT], *searched) == (question, ())


@pytest.mark.parametrize(
    ("question", "is_new"),
    [
        ("Who is Mira Okafor and what is her extension?", True),
        ("How old is the Vardholm lighthouse?", False),  # the name of the question before
        ("What did Ada Lovelace say about it?", False),
        ("What about the one in Copenhagen?", False),
        ("And in what year was Nebraska Highway 88 first designated?", False),
        ("Wann wurde dort der Turm gebaut?", False),  # a noun
        ("how many people built it", False),
    ],
)
def test_a_name_in_an_english_question_is_new_unless_it_refers_back(question, is_new):
    assert has_new_name(question, [BUILT]) == is_new


def test_a_question_with_a_new_name_is_read_as_it_is_however_near_the_topic(searched):
    question = "By whom was the tower of Brunnby finished?"
    assert follow_up(question, [BUILT], *searched)[1] == (BUILT,)  # no question word at its beginning
    question = "When was the tower of Brunnby finished?"
    assert follow_up(question, [BUILT], *searched) == (question, ())


@pytest.mark.parametrize("question", ["When?", "", "  "])
def test_the_first_question_follows_on_nothing(searched, question):
    assert follow_up(question, [], *searched) == (question, ())
    assert follow_up("", [BUILT], *searched) == ("", ())
