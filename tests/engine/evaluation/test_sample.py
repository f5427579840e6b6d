import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.evaluation.questions import Question, Reference
from engine.evaluation.sample import rank_by_words, sample_of, some_questions
from engine.retrieval.bm25 import Bm25


def question(about, n=0):
    return Question(f"Question {n} about {about}?", about, (Reference("word", 0, 4),))


@given(st.integers(0, 40), st.integers(1, 40))
def test_some_questions_are_the_same_each_time_in_their_order_and_all_where_they_are_few(n, most):
    questions = [question("a", number) for number in range(n)]
    some = some_questions(questions, most)
    assert some == some_questions(questions, most)
    assert some == [each for each in questions if each in some]
    assert len(some) == min(n, most)


def test_of_a_large_corpus_there_are_documents_with_questions_and_others_beside_them():
    documents = [Document(f"d{n}.txt", "word " * 20) for n in range(100)]  # 100 characters each
    questions = [question(f"d{n}", i) for n in range(0, 100, 2) for i in range(5)]
    sample = sample_of(documents, questions, most=25, most_characters=2_000)
    assert not sample.is_whole
    assert sum(len(document.text) for document in sample.documents) <= 2_000
    assert len(sample.questions) == 25
    asked = {each.corpus_id for each in sample.questions}
    names = {document.name.removesuffix(".txt") for document in sample.documents}
    assert asked <= names
    assert len(names - asked) >= 5
    assert sample.words == "25 of 250 questions, and 20 of 100 documents"
    assert sample == sample_of(documents, questions, most=25, most_characters=2_000)
    without_names = [*questions, question("")]
    assert len(sample_of(documents, without_names, 25, 2_000).documents) == 100


def test_the_rank_by_words_is_the_mean_of_reciprocal_ranks():
    texts = ["the tide turns at noon", "the tide turns at noon and the moon pulls", "a mill grinds"]
    chunks = [Chunk(f"{name}.txt", 0, len(text), text, 5) for name, text in zip("abc", texts, strict=True)]
    asked = [Question("When does the tide turn?", "b", (Reference("the", 0, 3),))]
    asked += [Question("What does a mill do?", "c", (Reference("mill", 2, 6),))]
    assert rank_by_words(asked, chunks, Bm25(texts)) == pytest.approx((1 / 2 + 1) / 2)
    assert rank_by_words([], chunks, Bm25(texts)) == 0
