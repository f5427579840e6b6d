"""The stages of every encoder family name the arrays that its passes record, and no others."""

import pytest

from engine import Encoder
from pages.inside.chunk.encoder_stages import encoder_stages
from pages.inside.chunk.word_rows import word_rows
from tests.engine.models.test_encoder_families import FAMILY_CASES, save
from tests.engine.models.test_remote_code_families import save_jina
from tests.pytorch import modules
from tests.sentence_transformer_folders import save_bert, save_modules


def random_encoder(folder, family):
    if family == "jina":
        save_jina(folder, newer=True)
    else:
        save_bert(folder) if family == "bert" else save(folder, family)
    return Encoder.load(folder)


@pytest.mark.parametrize("family", ["bert", "jina", *FAMILY_CASES])
def test_every_recorded_array_is_in_a_stage(tmp_path, family):
    encoder = random_encoder(tmp_path, family)
    shown = {
        tensor.in_layer(layer)
        for layer in range(encoder.config.n_layers)
        for stage in encoder_stages(encoder, layer)
        for tensor in stage.tensors
    }
    assert shown == set(encoder.trace("a bad dad")) - {"tokens", "ids"}


@pytest.mark.parametrize(
    ("family", "steps"),
    [
        ("distilbert", ("looked for (longest first)", "cad")),
        ("roberta", ("merges, first learnt first (rank)", "+")),
        ("xlm-roberta", ("candidates (log-probability)", "(-")),
    ],
)
def test_words_are_explained_by_the_kind_of_tokenizer(tmp_path, family, steps):
    encoder = random_encoder(tmp_path, family)
    rows = word_rows(encoder.tokenizer, "a bad cad")
    name, part = steps
    assert any(part in row[name] for row in rows)
    ids = [int(number) for row in rows for number in row["ids"].split()]
    assert ids == encoder.tokenizer.around(encoder.tokenizer.encode("a bad cad").ids)[1]


def stage_of(encoder, label, layer=0):
    return next(stage for stage in encoder_stages(encoder, layer) if stage.label == label)


def test_the_models_own_pooling_comes_first(tmp_path):
    save_bert(tmp_path / "base")
    head = modules.Pooling(24, ("cls", "mean")), modules.Dense(48, 8), modules.Normalize()
    encoder = Encoder.load(save_modules(tmp_path / "own", tmp_path / "base", *head))
    stage = stage_of(encoder, "Pooling")
    assert stage.tensors[0].name == "pooled.own"
    assert stage.tensors[0].equation == r"v = \tanh\left(W_1 [v_{\text{[CLS]}}; v_{\text{mean}}] + b_1\right)"
    assert "a dense layer from 48 to 8 numbers" in stage.description

    encoder = Encoder.load(save_modules(tmp_path / "cls", tmp_path / "base", modules.Pooling(24, "cls")))
    assert stage_of(encoder, "Pooling").tensors[0].name == "pooled.cls"


def test_local_layers_of_modernbert_are_named(tmp_path):
    encoder = random_encoder(tmp_path, "modernbert")
    whole, local = (stage_of(encoder, "Attention", layer) for layer in (0, 1))
    assert "Layer 0 attends to the whole text" in whole.description
    assert "Layer 1 is local: a token sees at most 4 tokens to each side" in local.description
