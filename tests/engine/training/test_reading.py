"""Training of a span reader: the examples, the gradients, and a run that is stopped and goes on."""

import gzip
import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from engine import Encoder
from engine.documents.splitters import Splitting
from engine.errors import InputError
from engine.training.reading import examples, negatives
from engine.training.reading.articles import Asked, read_squad, with_headings
from engine.training.reading.loop import ReadingSettings, ReadingState, quality, train
from engine.training.reading.passes import init_head, loss_and_gradients
from engine.training.reading.records import of_questions, records
from engine.training.reading.rewording import in_other_words, near_tokens
from engine.weights.fetch import model_path
from tests.pytorch import torch, transformers

CONTEXTS = (
    "The harbour of Orland opened in 1891. Its pilot was Mara Lind, who came from Tessel.",
    "The mill of Orland burned down in 1932. A bell from 1715 was saved by Jon Arde.",
)
ASKED = (
    (0, "When did the harbour of Orland open?", "1891"),
    (0, "Who was the pilot of Orland in 1891?", "Mara Lind"),
    (1, "Who saved the bell from 1715?", "Jon Arde"),
    (1, "What colour is the bell?", None),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of questions about one article, packed by gzip."""
    path = tmp_path_factory.mktemp("squad") / "orland.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"data": [article()]}).encode()))
    return path


def article():
    def asked(number):
        for paragraph, question, answer in ASKED:
            if paragraph == number:
                at = CONTEXTS[number].find(answer or "")
                answers = [{"text": answer, "answer_start": at}] if answer else []
                yield {"question": question, "answers": answers, "is_impossible": not answer}

    paragraphs = [{"context": text, "qas": list(asked(n))} for n, text in enumerate(CONTEXTS)]
    return {"title": "Orland", "paragraphs": paragraphs}


@pytest.fixture(scope="module")
def found(path, encoder):
    """Every question once, and again about each kind of passage that does not answer it."""
    shares = examples.Shares(1, 0, 0, 1, 0, 0, records=0, people=1)
    return examples.reading_set(read_squad(path), encoder.tokenizer, Splitting(chunk_tokens=32), shares)


def test_an_answer_is_found_again_in_the_tokens_of_its_passage(found, encoder):
    tokens = encoder.tokenizer
    answers = [
        " ".join(tokens.token(i) for i in found.passages[passage][first : last + 1])
        for _, passage, first, last, *_ in found.examples.tolist()
        if first != examples.NO_ANSWER
    ]
    assert answers == ["1891", "mara lin ##d", "jon ar ##de"]
    assert (found.examples[:, 2] == examples.NO_ANSWER).sum() >= 3
    assert examples.kind_counts(found)["answered"] == 3


@pytest.fixture(scope="module")
def read(path, encoder):
    """The article with its one chunk of both paragraphs, and its first question with that as its passage."""
    [whole] = read_squad(path)
    _, [chunk] = examples.cut_article(whole, encoder.tokenizer, Splitting(), examples.Shares(), [0])
    text = negatives.ArticleText.of(whole.document.text, [chunk])
    question = whole.questions[0]
    span = question.span[0] - chunk.start, question.span[1] - chunk.start
    return text, Asked(question.text, chunk.text, span, None, "answered")


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("It had 12 bells.", "twelve", True),
        ("It had 1,200 bells.", "1200", True),
        ("Then Lind left.", "Mara Lind", True),
        ("The harbour opened late.", "the harbour", True),
        ("Queen Anne came.", "Anne", True),
        ("the great war of two kings in the north", "a war of kings in the far north", True),
        ("It had 112 bells.", "12", False),
        ("The mill burned.", "Mara Lind", False),
    ],
)
def test_other_forms_of_an_answer_are_found(text, answer, expected):
    assert negatives.holds(negatives.normal(text), answer) == expected


def test_a_passage_without_the_sentence_of_the_answer_lacks_it(read):
    text, asked = read
    made = negatives.without_sentence(asked, text.chunks[0])
    first = "The harbour of Orland opened in 1891. "
    assert first in asked.passage
    assert made.passage == asked.passage.replace(first, "")
    assert (made.question, made.span, made.kind) == (asked.question, None, "sentence out")


def test_a_question_with_another_word_differs_in_one_place(read):
    text, asked = read
    for seed in range(20):
        made = negatives.other_words(asked, text, text.chunks[0], np.random.default_rng(seed))
        assert made is None or (made.question != asked.question and made.span is None)
    who = replace(asked, question="Who was the pilot of Orland in 1891?")
    swapped = {
        negatives.other_words(who, text, text.chunks[0], np.random.default_rng(seed)).question
        for seed in range(20)
    }
    assert len(swapped) > 1
    assert who.question not in swapped


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did the first ship come?", "When did the last ship come?"),
        ("Who was king before 1700?", "Who was king after 1700?"),
        ("How long was the last ship?", "How long was the first ship?"),
        ("When did most people come by the end of 1700?", None),
    ],
)
def test_an_opposite_asks_for_something_else(read, question, expected):
    text, asked = read
    made = negatives.opposite(replace(asked, question=question), text.chunks[0], np.random.default_rng(0))
    assert (made and made.question) == expected


def test_a_question_is_negated_where_the_passage_denies_nothing(read):
    (text, asked), rng = read, np.random.default_rng(0)
    made = negatives.negated(replace(asked, question="Who did Mara Lind meet?"), text.chunks[0], rng)
    assert made.question == "Who didn't Mara Lind meet?"
    assert negatives.negated(asked, text.chunks[0], rng) is None  # it asks when


def test_headings_move_the_answers_with_their_text(path):
    [whole] = read_squad(path)
    headed = with_headings(whole, np.random.default_rng(0), share=1)
    assert headed.document.text.count("\n## ") == len(CONTEXTS)
    for before, after in zip(whole.questions, headed.questions, strict=True):
        if before.span:
            assert headed.document.text[slice(*after.span)] == whole.document.text[slice(*before.span)]
        assert headed.document.text[after.paragraph :].startswith(CONTEXTS[before.paragraph > 20])


@pytest.fixture(scope="module")
def made(path):
    """Questions about tables, lists and steps with names of the article."""
    return list(records(read_squad(path), [["Mara Lind", "Jon Arde", "Orland"]], 3000, seed=0))


def test_records_are_asked_for_whole_cells(made):
    wanted = [each for each in made if each.span]
    assert 0.55 < len(wanted) / len(made) < 0.8
    for each in wanted:
        start, end = each.span
        answer = each.passage[start:end]
        assert answer == answer.strip() != ""
        assert "\n" not in answer
        around = each.passage[start - 1 : start] + each.passage[end : end + 1]
        assert not any(sign.isalnum() or sign in "$€£%" for sign in around), (answer, each)
        assert each.question.rstrip("?").lower() not in answer.lower()


def test_records_without_an_answer_lack_what_is_asked(made):
    for each in made:
        assert (each.span is None) == (each.kind == "record without")
        if each.near:
            assert each.passage[slice(*each.near)].strip()
    answered = {(each.question, each.passage) for each in made if each.span}
    assert not answered & {(each.question, each.passage) for each in made if not each.span}


def test_questions_of_a_list_are_answered_below_them(path):
    [whole] = read_squad(path)
    answered = [question for question in whole.questions if question.span]
    answers = {question.text: whole.document.text[slice(*question.span)] for question in answered}
    twice = replace(whole, questions=(*whole.questions, *whole.questions))
    for seed in range(40):
        for each in of_questions(twice, np.random.default_rng(seed)):
            assert each.question in each.passage
            if each.span:
                assert each.passage[slice(*each.span)] == answers[each.question]
                assert each.passage.index(each.question) < each.span[0]
            else:
                assert answers[each.question] not in each.passage
                assert each.passage[slice(*each.near)] == each.question


@pytest.mark.parametrize("crop", [6, 12, 200])
def test_a_crop_holds_the_answer(found, encoder, crop):
    for batch in examples.batches(found, encoder.tokenizer, 2, crop, 0, 0):
        for ids, types, (first, last) in zip(batch.sequences, batch.types, batch.targets, strict=True):
            assert len(ids) == len(types) <= types.index(1) + crop + 1
            if first:
                assert types.index(1) <= first <= last < len(ids) - 1
            else:
                assert last == 0


def test_an_answer_that_is_not_at_its_place_is_refused(tmp_path):
    wrong = article()
    wrong["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] += 1
    (tmp_path / "wrong.json").write_text(json.dumps({"data": [wrong]}))
    with pytest.raises(InputError, match=r"'1891' to .* does not stand at character"):
        read_squad(tmp_path / "wrong.json")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"data": [1]}', b'{"data": [{"paragraphs": 3}]}'])
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "other.json").write_bytes(content)
    with pytest.raises(InputError, match=r"other.json is not a file of questions in SQuAD's format"):
        read_squad(tmp_path / "other.json")


def test_gradients_are_those_of_autograd_on_the_official_model(found):
    exact = Encoder.load(dtype=np.float64)
    batch = next(examples.batches(found, exact.tokenizer, 4, 20, 0, 0))
    state = ReadingState.fresh(exact, ReadingSettings())
    params = state.params | {name: a.astype(np.float64) for name, a in init_head(384, 1).items()}
    loss, grads = loss_and_gradients(batch, exact.weights, params, exact.config)

    model = transformers.BertModel.from_pretrained(
        str(model_path(exact.name)), dtype=torch.float64, attn_implementation="eager"
    ).eval()
    head = torch.nn.Linear(384, 2, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.tensor(params["head.weight"]))
        head.bias.copy_(torch.tensor(params["head.bias"]))
    total = torch.zeros((), dtype=torch.float64)
    for ids, types, target in zip(batch.sequences, batch.types, batch.targets, strict=True):
        states = model(torch.tensor([ids]), token_type_ids=torch.tensor([types])).last_hidden_state[0]
        logits = head(states)
        allowed = [0, *range(types.index(1), len(ids) - 1)]
        masked = torch.full_like(logits, -torch.inf)
        masked[allowed] = logits[allowed]
        total = total + torch.nn.functional.cross_entropy(masked.T, torch.tensor(target))
    total = total / len(batch.sequences)
    total.backward()
    assert loss == pytest.approx(total.item(), abs=1e-12)
    np.testing.assert_allclose(grads["head.weight"], head.weight.grad, atol=1e-8)
    official = dict(model.named_parameters())
    for ours, theirs in (
        ("layers.0.attention.query.weight", "encoder.layer.0.attention.self.query.weight"),
        ("layers.0.ffn.hidden.bias", "encoder.layer.0.intermediate.dense.bias"),
        ("layers.5.norm.weight", "encoder.layer.5.output.LayerNorm.weight"),
    ):
        np.testing.assert_allclose(grads[ours], official[theirs].grad, atol=1e-8)


SETTINGS = ReadingSettings(crops=(24, 40), batch_size=2, n_warmup=2, n_last=1)


def test_a_stopped_run_goes_on_to_the_same_weights(found, encoder, tmp_path):
    whole = ReadingState.fresh(encoder, SETTINGS)
    reports = list(train(whole, found, encoder, SETTINGS))
    assert [report.update for report in reports] == list(range(1, reports[-1].n_updates + 1))
    first = ReadingState.fresh(encoder, SETTINGS)
    list(islice(train(first, found, encoder, SETTINGS), 3))
    first.save(tmp_path / "checkpoint")
    second = ReadingState.fresh(encoder, SETTINGS)
    second.load(tmp_path / "checkpoint")
    list(train(second, found, encoder, SETTINGS))
    for name, array in whole.params.items():
        np.testing.assert_array_equal(second.params[name], array)


def test_training_learns_the_answers(found, encoder):
    settings = replace(SETTINGS, crops=(64,) * 12, batch_size=4, learning_rate=5e-4, n_last=2, dropout=0)
    state = ReadingState.fresh(encoder, settings)
    before = quality(state, found, encoder)
    for _ in train(state, found, encoder, settings):
        pass
    after = quality(state, found, encoder)
    assert after.f1 > max(0.6, before.f1)
    assert after.auc > 0.6
    answers = replace(found, examples=found.examples[found.examples[:, 2] != examples.NO_ANSWER])
    alone = quality(state, answers, encoder)
    assert (alone.f1, alone.refused, alone.auc, alone.n_without) == (after.f1, None, None, 0)


def test_common_words_of_a_question_are_replaced_by_words_of_one_meaning(encoder):
    tokens = encoder.tokenizer
    text = (
        "Lima has published rules, and the prices will increase or decrease. People make the regulations, "
        "and everyone must follow the laws."
    )
    near = near_tokens([text] * 6, tokens, encoder.weights.token_table)

    def meaning(word):
        return {tokens.token(other) for other in near.get(tokens.id_of(word), [])}

    assert meaning("rules") == {"regulations", "laws"}
    assert meaning("increase") == meaning("lima") == set()  # its opposite is near; a name
    question = tokens.encode("Which rules has Lima published?").ids
    passage = tokens.encode(text).ids[1:]
    ids, types = question + passage, [0] * len(question) + [1] * len(passage)
    batch = examples.ReadingBatch([ids] * 40, [types] * 40, np.zeros((40, 2)))
    changed = in_other_words(batch, near, tokens, np.random.default_rng(0))
    assert {tokens.token(each[2]) for each in changed.sequences} == {"rules", "regulations", "laws"}
    assert all(each[len(question) :] == passage and len(each) == len(ids) for each in changed.sequences)
    assert batch.sequences == [ids] * 40  # unchanged
