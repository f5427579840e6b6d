import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.checks import check_questions, measurable
from engine.evaluation.drafts import MOST_DOCUMENTS, Drafter, draft_questions, in_english
from engine.evaluation.drafts_sentences import sentences_of, strips
from engine.evaluation.drafts_wording import Writer, fits, is_fit
from engine.evaluation.questions import DRAFTED, Question, parse_questions, to_jsonl

HARBOURS = (("Orland", 1891, "Mara Lind"), ("Vardholm", 1931, "Otto Brandt"), ("Tessel", 1874, "Ines Falk"))
NOTICE = "The pages of the harbour office are printed with care in the summer of every year."


def harbour(name, year, pilot):
    text = (
        f"# Harbour of {name}\n\nThe harbour of {name} was opened to large ships in {year} after a long "
        f"dispute. Its first pilot was {pilot}, who came from the islands and kept bees in the garden.\n\n"
        f"## Fees\n\nThe owners of the fishing boats in {name} pay a fee of {year % 90} crowns for every "
        f"berth. They pay it in spring. Boats of visitors in {name} are moored along the quay.\n\n{NOTICE}"
    )
    return Document(f"{name.lower()}.md", text)


@pytest.fixture(scope="module")
def harbours():
    return [harbour(*each) for each in HARBOURS]


@pytest.fixture(scope="module")
def drafts(harbours, decoder, reader):
    return list(draft_questions(harbours, 3, 0, decoder, reader))


def test_drafts_are_marked_seeded_and_stand_at_their_place(drafts, harbours):
    answered = [each for each in drafts if each.references]
    assert len(answered) == 3
    assert measurable(drafts, harbours) == answered
    assert not check_questions(drafts, harbours)
    assert {(each.status, each.seed) for each in drafts} == {(DRAFTED, 0)}
    assert len({each.text for each in drafts}) == len(drafts)
    assert len({each.corpus_id for each in answered}) == len(HARBOURS)
    for each in answered:
        (sentence,), answer = each.references, each.answer
        assert sentence.start <= answer.start < answer.end <= sentence.end
        assert sentence.content[answer.start - sentence.start : answer.end - sentence.start] == answer.content
        assert sentence.content != NOTICE, "the same in all files: boilerplate"
        assert "#" not in sentence.content
    assert parse_questions("drafts.jsonl", to_jsonl(drafts).encode()) == drafts


def test_what_the_documents_do_not_say_is_asked_of_another_thing(harbours, decoder, reader):
    every = [sentence for document in harbours for sentence in sentences_of(document)]
    text = harbours[0].text
    own = next(each for each in every if "Orland was opened" in each.text)
    asked = Question("When could ships first use the harbour of Orland?", "orland", (own.reference,))
    drafter = Drafter(every, decoder, reader, 5, lambda: False)
    assert drafter.about_another(asked) is None, "of every other harbour the same is said"
    text = harbours[1].text.replace("The harbour of Vardholm was opened to large ships", "Bees came")
    every = [*every[: len(every) // 3], *sentences_of(Document("vardholm.md", text))]
    found = Drafter(every, decoder, reader, 5, lambda: False).about_another(asked)
    assert found == Question(
        "When could ships first use the harbour of Vardholm?", "vardholm", (), None, DRAFTED, 5
    )
    assert found.is_unanswered


def test_a_stopped_drafting_goes_on(drafts, harbours, decoder, reader):
    reported = []
    rest = draft_questions(harbours, 3, 0, decoder, reader, drafts[:2], lambda *n: reported.append(n))
    assert list(rest) == drafts[2:]
    assert reported == [(3, 3)]
    assert not list(draft_questions(harbours, 3, 0, decoder, reader, is_stopped=lambda: True))


def test_the_question_is_kept_that_shares_least_words_and_is_answered_best_here(
    harbours, decoder, reader, monkeypatch
):
    every = [sentence for document in harbours for sentence in sentences_of(document)]
    sentence = next(each for each in every if "Orland was opened" in each.text)
    drafter = Drafter(every, decoder, reader, 0, lambda: False)

    def draft(*questions):
        monkeypatch.setattr(Writer, "questions", lambda *_: iter(questions))
        found = drafter.about(sentence)
        return found and (found.text, found.answer.content)

    copied = "When was the harbour of Orland opened to large ships after a dispute?"
    near = "When was the harbour of Orland opened?"
    assert draft(near, "When could ships first use the harbour of Orland?") == (
        "When could ships first use the harbour of Orland?",
        "1891",
    )
    assert draft(near) == (near, "1891")
    assert draft(copied) is None
    assert draft("Who was the first pilot of Orland?") is None, "answered by the next sentence"
    assert draft("When was the harbour of Vardholm opened?") is None, "answered better elsewhere"
    assert draft() is None


@pytest.mark.parametrize(
    ("question", "fits"),
    [
        ("When could cars first cross the bridge?", True),
        ("What did Marie Curie do with her share?", True),
        ("What is the purpose of this chamber?", False),
        ("What type of rifles were these?", False),
        ("What does the author say of bridges?", False),
        ("What did they build across the river?", False),
        ("Is the bridge open to cars?", False),
        ("What is it?", False),
        ("Who built the bridge? When was the bridge built?", False),
        ("When was the bridge across the river opened to the traffic of cars?", False),
        ("", False),
    ],
)
def test_a_question_needs_no_passage_and_copies_none(question, fits):
    sentence = "Marie Curie saw how the bridge across the river opened to the traffic of cars in 1932."
    assert is_fit(question, sentence) is fits


@pytest.mark.parametrize(
    ("question", "answer", "right"),
    [
        ("Who replaces the pads?", "A worn pad", False),
        ("Who keeps the pads?", " Ann", True),
        ("Where do the pads lie?", " eight weeks", False),
        ("How many inches has a pad?", " 8", False),
        ("How many pads are there?", " 8", True),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked_for(question, answer, right):
    assert fits(question, answer, "A worn pad of Ann is one of 8 pads for eight weeks.") is right


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6), n=st.integers(1, 12), seed=st.integers(0, 99)
)
def test_strips_hold_every_sentence_once_and_one_of_every_document(sizes, n, seed):
    """Sentences are told apart by a word in letters."""
    word = lambda number: "".join(chr(97 + int(digit)) * 2 for digit in str(number))  # noqa: E731
    documents = [
        Document(
            f"{place}.md",
            " ".join(f"The {word(100 * place + i)} of the old town was in the north." for i in range(size)),
        )
        for place, size in enumerate(sizes)
    ]
    every = [each for document in documents for each in sentences_of(document)]
    found = strips(every, n, np.random.default_rng(seed))
    assert sorted((each.document.name, each.start) for strip in found for each in strip) == sorted(
        (each.document.name, each.start) for each in every
    )
    assert len(every) < n or len(found) >= n
    n_filled = sum(map(bool, sizes))
    if n_filled < n:
        assert len({strip[0].document.name for strip in found}) == n_filled
    assert found == strips(every, n, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [Document("a.md", "# Bridges\n\n- steel\n- stone")],
        [
            Document(
                "a.md",
                "Die Brücke über den Fluss wurde im Jahr 1932 vom Bürgermeister der Stadt eröffnet. " * 9,
            )
        ],
    ],
)
def test_documents_without_an_english_sentence_are_told(documents, decoder, reader):
    with pytest.raises(InputError, match="English prose"):
        list(draft_questions(documents, 3, 0, decoder, reader))


def test_of_ten_thousand_files_some_are_drawn():
    text = "The bridge over the river was opened in 1932 by the mayor."
    documents = [Document(f"{number}.md", text) for number in range(10_000)]
    assert len(in_english(documents, np.random.default_rng(0))) == MOST_DOCUMENTS
