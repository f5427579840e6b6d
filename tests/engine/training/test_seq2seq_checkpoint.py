import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from engine.errors import GlassboxError, InputError, ModelFileError
from engine.models.seq2seq import Seq2SeqConfig
from engine.training.language.seq2seq_checkpoint import read_training, training_bytes
from engine.training.language.seq2seq_loop import Recipe, Training, train
from engine.training.language.tasks import date_task, number_task

NUMBERS = number_task(999)
TINY = Recipe(
    d_model=8, n_heads=2, d_ff=8, n_layers=1, batch_size=4, n_steps=9, n_warmup=3, report_every=3, n_exam=4
)


@pytest.fixture(scope="module")
def training():
    found = Training(NUMBERS, TINY)
    list(islice(train(found), 2))
    return found


@pytest.fixture(scope="module")
def content(training):
    return training_bytes(training)


def told(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["glassbox"])


def rewritten(content, change):
    about, tensors = told(content), {name: array.copy() for name, array in load(content).items()}
    change(about, tensors)
    return save(tensors, {"glassbox": json.dumps(about)})


def test_a_training_goes_on_from_its_file_as_if_it_had_never_stopped(content):
    whole = Training(NUMBERS, TINY)
    list(train(whole))
    found = read_training(content, NUMBERS)
    assert [report.n_updates for report in found.reports] == [3, 6]
    list(train(found))
    for name, array in whole.params.items():
        np.testing.assert_array_equal(found.params[name], array)
    assert [replace(report, seconds=0) for report in found.reports] == [
        replace(report, seconds=0) for report in whole.reports
    ]


def test_other_programs_can_read_the_last_report_s_weights_and_what_they_mean(training, content):
    weights, about = load(content), told(content)
    for name, value in training.good.items():
        np.testing.assert_array_equal(weights[f"params.{name}"], value)
    assert Seq2SeqConfig(**about["config"]) == training.config
    assert tuple(about["words"]) == NUMBERS.words
    assert about["step"] == 6


def test_a_file_that_is_made_between_two_reports_is_that_of_the_report():
    between = Training(NUMBERS, TINY)
    reports = train(between)
    next(reports)
    first = training_bytes(between)
    between.params["embedding.weight"] += 1
    between.rng.random()
    assert training_bytes(between) == first


def test_a_training_that_ran_away_comes_back_as_it_ended():
    lost = Training(NUMBERS, replace(TINY, learning_rate=1e30, n_warmup=1000, n_steps=1001))
    list(train(lost))
    found = read_training(training_bytes(lost), NUMBERS)
    assert lost.failure is not None
    assert (found.failure, found.done, found.moments.n_updates) == (
        lost.failure,
        True,
        lost.moments.n_updates,
    )


def test_another_task_and_other_sizes_are_told(training, content):
    with pytest.raises(InputError, match=r"learnt “Numbers.*, not “Dates.*: choose that task, then load it"):
        read_training(content, date_task())
    assert read_training(content, NUMBERS, training.config).config == training.config
    with pytest.raises(InputError, match=r"another model \(d_ff 8 instead of 16\)"):
        read_training(content, NUMBERS, replace(training.config, d_ff=16))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about, tensors: tensors.pop("mean.embedding.weight"), "no tensor 'mean.embedding.weight'"),
        (lambda about, tensors: tensors["params.embedding.weight"].fill(np.nan), "no numbers"),
        (lambda about, tensors: about["recipe"].update(d_ff=16), r"float32 \(8, 8\).*ask for.*\(16, 8\)"),
        (lambda about, tensors: about["recipe"].update(d_model=8.0), "cannot be understood"),
        (lambda about, tensors: about["recipe"].update(colour="red"), "cannot be understood"),
        (lambda about, tensors: about["reports"][0]["outputs"].pop(), "cannot be understood"),
        (lambda about, tensors: about["reports"].pop(), "of step 6 of 9, and its reports end elsewhere"),
        (lambda about, tensors: about.update(draws={"bit_generator": "MT"}), "cannot be understood"),
        (lambda about, tensors: about["words"].pop(), "knows other words"),
        (lambda about, tensors: about.update(format="glassbox-small-decoder-1"), "no checkpoint of an enc"),
    ],
)
def test_damaged_files_are_told(content, change, said):
    with pytest.raises((ModelFileError, InputError), match=said):
        read_training(rewritten(content, change), NUMBERS)


@given(st.data())
def test_a_cut_file_is_told(content, data):
    with pytest.raises(GlassboxError):
        read_training(content[: data.draw(st.integers(0, len(content) - 1))], NUMBERS)
