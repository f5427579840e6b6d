import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from engine.errors import GlassboxError, InputError, ModelFileError
from engine.models.small_decoder import SmallDecoderConfig
from engine.training.language.small_decoder_checkpoint import Checkpoint, checkpoint_of, read_checkpoint
from engine.training.language.small_decoder_loop import TrainingSettings, TrainingState, train
from engine.training.language.text_stream import even_windows, random_windows
from engine.training.language.vocabulary import Vocabulary

CONFIG = SmallDecoderConfig(vocab_size=5, d_model=8, n_layers=1, n_heads=2, d_ff=8, context=4)
TOKENS = np.tile(np.arange(5), 20)
SETTINGS = TrainingSettings(n_steps=12)


def batches():
    return random_windows(TOKENS, 2, 4, np.random.default_rng(0))


def learn(state, stream, n_steps):
    reports = train(state, stream, even_windows(TOKENS, 2, 4), SETTINGS)
    return [report.loss for report in islice(reports, n_steps)]


@pytest.fixture
def checkpoint():
    state = TrainingState.fresh(CONFIG, 0)
    learn(state, batches(), 5)
    return Checkpoint(state, Vocabulary("characters", tuple("abcdé")))


def test_training_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(checkpoint):
    found = checkpoint_of(*read_checkpoint("a", checkpoint.to_bytes()), CONFIG)
    assert found.vocabulary == checkpoint.vocabulary
    assert (found.state.n_updates, found.state.lowest) == (5, checkpoint.state.lowest)
    assert learn(found.state, batches(), 7) == learn(checkpoint.state, batches(), 7)
    for name, array in checkpoint.state.params.items():
        np.testing.assert_array_equal(found.state.params[name], array)


def test_a_checkpoint_of_another_shape_is_told(checkpoint):
    content = checkpoint.to_bytes()
    with pytest.raises(
        InputError, match=r"another model \(d_ff 8 instead of 16, positions learned instead of rope\)"
    ):
        checkpoint_of(*read_checkpoint("a", content), replace(CONFIG, d_ff=16, positions="rope"))
    changed = rewritten(content, lambda about, tensors: about["config"].update(d_ff=16))
    refusal = r"ffn.hidden.weight' of the checkpoint is float32 \(8, 8\).*\(16, 8\)"
    with pytest.raises(ModelFileError, match=refusal):
        read_checkpoint("a", changed)


def rewritten(content, change):
    tensors = load(content)
    length = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["glassbox"])
    change(about, tensors)
    return save(tensors, {"glassbox": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about, tensors: tensors.pop("mean.embedding.weight"), "no tensor 'mean.embedding.weight'"),
        (lambda about, tensors: tensors["params.embedding.weight"].fill(np.nan), "no numbers"),
        (lambda about, tensors: about["config"].update(n_heads=3), "no checkpoint of a small decoder"),
        (lambda about, tensors: about["config"].update(d_model="8"), "no checkpoint of a small decoder"),
        (lambda about, tensors: about["vocabulary"].update(kind="syllables"), "no checkpoint of a small"),
        (lambda about, tensors: about["vocabulary"].update(tokens=["a"]), "1 tokens, its model 5"),
        (lambda about, tensors: about.update(step=-1), "at step -1"),
        (lambda about, tensors: about.update(format="other"), "no checkpoint of a small decoder"),
    ],
)
def test_damaged_checkpoints_are_told(checkpoint, change, said):
    def writable(about, tensors):
        tensors.update({name: array.copy() for name, array in tensors.items()})
        change(about, tensors)

    with pytest.raises(ModelFileError, match=said):
        read_checkpoint("a", rewritten(checkpoint.to_bytes(), writable))


@given(st.data())
def test_a_cut_checkpoint_is_told(data):
    vocabulary = Vocabulary("characters", tuple("abcde"))
    content = Checkpoint(TrainingState.fresh(CONFIG, 0), vocabulary).to_bytes()
    n_bytes = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(GlassboxError):
        read_checkpoint("a", content[:n_bytes])
