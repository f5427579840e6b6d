import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from engine import Encoder
from engine.errors import InputError
from engine.training.backward.encoder import layer_parameters, with_parameters
from engine.training.search.contrastive import ContrastiveBatch, TrainingTexts, draw_batch, loss_and_gradients
from engine.training.search.fine_tune import FineTuning, fine_tune
from engine.training.search.folds import Fold, LabelledTexts
from engine.training.search.frozen_layers import run_frozen_layers, vectors_from_frozen
from engine.training.search.tuned_model import tuned_zip
from engine.training.search.tuning import TuningData, tune
from tests.pytorch import sentence_transformers

# Made-up words, so that only the labels say what belongs together.
PAIRS = [("zorblat", "The glass mountain."), ("quimmel", "Bread of rye."), ("vestrio", "A red canal.")]
PAIRS += [("plonket", "Seven winters."), ("drumble", "The bank's ledger."), ("fexory", "Wind in reeds.")]
QUESTIONS = tuple(f"What of the {word}?" for word, _ in PAIRS)
CHUNKS = tuple(text for _, text in PAIRS)
RELEVANT = np.eye(len(PAIRS), dtype=bool)
NEGATIVES = [np.setdiff1d(np.arange(len(PAIRS)), [i]) for i in range(len(PAIRS))]
ALL = Fold(np.arange(6), np.arange(0), np.arange(6))


@pytest.fixture(scope="module")
def frozen(encoder):
    asked, chunks = (run_frozen_layers(encoder, texts, 1) for texts in (QUESTIONS, CHUNKS))
    return TrainingTexts(asked, chunks, RELEVANT, NEGATIVES)


@pytest.fixture(scope="module")
def tuned(encoder, frozen):
    settings = FineTuning(n_epochs=4, batch_size=3, learning_rate=3e-4, patience=9)
    return fine_tune(encoder, frozen, ALL, settings)


def test_texts_go_on_from_where_they_were_frozen(encoder, frozen):
    ours = vectors_from_frozen(frozen.chunks, encoder, encoder.weights, 1)
    np.testing.assert_allclose(ours, encoder.encode(CHUNKS), atol=1e-3)  # float16 in between


def test_gradients_of_a_batch_are_those_of_differences():
    exact = Encoder.load(dtype=np.float64)
    asked, chunks = run_frozen_layers(exact, QUESTIONS[:3], 1), run_frozen_layers(exact, CHUNKS, 1)
    texts = TrainingTexts(asked, chunks, RELEVANT[:3], NEGATIVES[:3])
    batch = ContrastiveBatch(np.arange(3), np.arange(6), RELEVANT[:3])
    params = layer_parameters(exact.weights, 1)
    loss, grads = loss_and_gradients(texts, batch, params, exact.config)
    rng = np.random.default_rng(0)
    direction = {name: rng.normal(size=array.shape) for name, array in params.items()}

    def moved(step):
        there = {name: array + step * direction[name] for name, array in params.items()}
        return loss_and_gradients(texts, batch, there, exact.config)[0]

    slope = (moved(1e-6) - moved(-1e-6)) / 2e-6
    assert sum(np.vdot(grads[name], direction[name]) for name in grads) == pytest.approx(slope, rel=1e-4)
    assert loss == pytest.approx(moved(0))


def test_labels_are_learnt_but_not_kept_where_they_do_not_help_on_held_out_questions(encoder, tuned):
    """Made-up words teach nothing about other made-up words."""
    assert tuned.losses[-1][1] < tuned.losses[0][1]
    assert [epoch for epoch, _ in tuned.losses] == [1, 2, 3, 4]
    assert [epoch for epoch, _ in tuned.validation_losses] == [0, 1, 2, 3, 4]
    validated = [loss for _, loss in tuned.validation_losses]
    assert validated[0] == min(validated)
    assert tuned.n_epochs == 0
    original = layer_parameters(encoder.weights, 1)
    assert all(np.array_equal(tuned.params[name], original[name]) for name in original)


def test_training_ends_when_patience_does_and_the_best_epoch_is_kept(encoder, frozen):
    settings = FineTuning(n_epochs=5, batch_size=6, learning_rate=0.5, patience=1)
    first, again = (fine_tune(encoder, frozen, ALL, settings) for _ in range(2))
    validated = [loss for _, loss in first.validation_losses]
    assert first.n_epochs == int(np.argmin(validated))
    assert len(validated) - 1 in (first.n_epochs + 1, 5)
    assert all(np.array_equal(first.params[name], again.params[name]) for name in first.params)


def test_batches_hold_what_may_be_seen_and_every_right_chunk_counts_as_right():
    relevant = np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 1]], bool)
    seen, negatives = np.array([1, 2, 3]), [np.array([2, 4]), np.array([0, 3])]
    texts = TrainingTexts(None, None, relevant, negatives)
    batch = draw_batch(np.array([0, 1]), texts, seen, 2, np.random.default_rng(0))
    assert batch.chunks.tolist() == [1, 2, 3]
    assert batch.relevant.tolist() == [[True, False, False], [True, False, False]]


def test_layers_that_there_are_not_are_told(encoder):
    for n_last in (0, 7):
        with pytest.raises(InputError, match="take 1 to 6"):
            run_frozen_layers(encoder, CHUNKS, n_last)
    before = replace(encoder, config=replace(encoder.config, norm_first=True))
    with pytest.raises(InputError, match="cannot be trained"):
        run_frozen_layers(before, CHUNKS, 1)


def test_a_tuned_model_is_saved_as_sentence_transformers_loads_it(encoder, tmp_path):
    rng = np.random.default_rng(0)
    noisy = {
        name: array + 0.01 * rng.normal(size=array.shape).astype(np.float32)
        for name, array in layer_parameters(encoder.weights, 2).items()
    }
    better = replace(encoder, weights=with_parameters(encoder.weights, noisy))
    zipfile.ZipFile(io.BytesIO(tuned_zip(better))).extractall(tmp_path)
    expected = better.encode(CHUNKS)
    assert np.abs(expected - encoder.encode(CHUNKS)).max() > 1e-3
    official = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu")
    assert official.max_seq_length == encoder.max_tokens
    np.testing.assert_allclose(official.encode(list(CHUNKS)), expected, atol=2e-6)
    np.testing.assert_allclose(Encoder.load(tmp_path).encode(CHUNKS), expected, atol=1e-6)


def test_tuning_ends_with_a_model_and_a_verdict(encoder):
    labelled = LabelledTexts(QUESTIONS, CHUNKS, ("a", "a", "b", "b", "c", "c"), RELEVANT)
    task = TuningData(labelled, encoder, encoder.encode(QUESTIONS), encoder.encode(CHUNKS))
    seen = []
    found = tune(task, FineTuning(n_epochs=1), 3, lambda *progress: seen.append(progress))
    assert {what for what, _, _ in seen} >= {"Testing on new questions", "Testing on new documents"}
    assert all(done <= total for _, done, total in seen)
    np.testing.assert_allclose(found.by_question.before, task.question_vectors @ task.chunk_vectors.T)
    assert [one.metric for one in found.document_metrics] == ["nDCG@10", "Recall@10", "MRR@10"]
    one_document = replace(task, labelled=replace(labelled, documents=("a",) * 6))
    assert tune(one_document, FineTuning(n_epochs=1), 2).document_metrics == ()

    def stop(*progress):
        raise InputError("enough")

    with pytest.raises(InputError, match="enough"):
        tune(task, FineTuning(n_epochs=1), 2, stop)
