"""The pages about the decoder, opened on models of every family, which have random weights."""

import json
import shutil

import numpy as np
import pytest
import streamlit as st

from engine import Decoder
from engine.documents.document import Document
from engine.generation.generated_token import GeneratedToken
from engine.inspection.model.positions import decoder_score_by_distance
from pages.inside.chunk.decoder_stages import decoder_stages
from tests.apps import app_page, own_documents, said
from tests.engine.models.test_decoder_families import save_folder
from tests.tokenizer_files import small_byte_level

BEES = Document("bees.md", "The bee gave a bad cafe a deed, and he hid a big cab.\n\n" * 4)
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "
LONG = {"num_hidden_layers": 2, "max_position_embeddings": 4096}
# The sizes of a model of each family, and a sentence of its own on the attention of the last layer.
FAMILIES = {
    "llama": ("llama", LONG, "the rest is masked."),
    "qwen2": ("qwen2", LONG, "the rest is masked."),
    "gpt2": ("gpt2", {"n_layer": 2, "n_positions": 4096}, "the rest is masked."),
    "qwen3": ("qwen3", LONG | {"head_dim": 8}, "The queries and keys of each head are normed"),
    "mistral": ("mistral", LONG | {"sliding_window": 7}, "a token sees the last 7 tokens at most"),
    "smollm3": ("smollm3", LONG | {"no_rope_layers": [1, 0]}, "it does not know positions"),
    "phi3": ("phi3", LONG | {"rope_parameters": {"partial_rotary_factor": 0.5}}, "the first 4 are rotated"),
    "gemma3": (
        "gemma3_text",
        LONG | {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7},
        "Layer 1 attends to the whole text",
    ),
}
ON_DECODER = {
    "inside-model": "decoder",
    "source-decoder": "Take a chunk of the documents",
    "layer-decoder": 1,
}


DAILY = ("gemma3", "gpt2")  # all others differ from these in what is computed, not in what pages draw


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in DAILY else [pytest.mark.nightly]) for name in FAMILIES],
)
def family(request, tmp_path_factory):
    """The name of a family, and the folder of a random model."""
    kind, sizes, _ = FAMILIES[request.param]
    folder = tmp_path_factory.mktemp("models") / f"*{request.param}*"
    save_folder(folder, small_byte_level(), kind, **sizes)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    st.cache_data.clear()  # results are kept by the model's name
    yield request.param, folder
    st.cache_data.clear()


def page_on(folder, page, **state):
    return app_page(page, **own_documents(BEES), decoder=str(folder), **state)


def opened(page, folder, **state):
    """A page on the model, which has no error."""
    app = page_on(folder, page, **state).run()
    assert not app.error
    return app


@pytest.mark.parametrize("family", list(FAMILIES), indirect=True)
def test_the_stages_and_positions_are_those_of_the_family(family):
    name, folder = family
    decoder = Decoder.load(folder)
    for layer in (0, 1):
        stages = decoder_stages(decoder.config, layer)
        shown = [tensor.in_layer(layer) for stage in stages for tensor in stage.tensors]
        traced = [
            name
            for name in decoder.trace_shapes(3)
            if not name.startswith("layers.") or name.startswith(f"layers.{layer}.")
        ]
        assert sorted([*shown, "logits"]) == sorted(traced)
    assert FAMILIES[name][2] in said(opened("inside/chunk", folder, **ON_DECODER))
    words = said(opened("inside/positions", folder))
    assert f"\\({'learned' if name == 'gpt2' else 'RoPE'}\\) lower the score" in words


def test_every_stage_and_a_tokens_way_are_drawn(family):
    for stage in (0, 1, 3, 4, 5):
        opened("inside/chunk", family[1], **ON_DECODER, **{"stage-decoder": stage})
    for tab in ("Attention", "Across layers", "A token's way"):
        opened("inside/chunk", family[1], **ON_DECODER, **{"inside-tab": tab})


@pytest.mark.parametrize("family", ["gemma3"], indirect=True)
def test_a_window_ends_the_score_by_distance(family):
    lines = decoder_score_by_distance(Decoder.load(family[1]), 10)
    np.testing.assert_array_equal(lines.change[:, 0], 0)
    assert lines.lines == ("layers that see all tokens", "layers with a window")
    assert np.isnan(lines.change).tolist() == [[False] * 10, [False] * 7 + [True] * 3]


def test_an_answer_is_looked_into(family):
    state = {"queued_question": "Who gave a deed?", "queued_write": True, "max_new_tokens": 16}
    app = opened("inside/answer", family[1], **state, **{"inside-answer-tab": "Tokens"})
    answer = app.session_state["answer"]
    assert len(answer.written.ids) > 0
    assert "The branch at token" in said(app.button(key="branch").click().run())
    kept = {key: app.session_state[key] for key in ("answer", "answer_job", "asked", "max_new_tokens")}
    opened("inside/answer", family[1], **kept, **{"inside-answer-tab": "What it rests on"})
    words = said(opened("inside/cache", family[1], answer=answer))
    assert "one more token takes" in words


THOUGHT = "<think>Who had a deed?</think>\n\nThe bee gave a bad cafe a deed."


@pytest.mark.parametrize("family", ["qwen3"], indirect=True)
def test_an_answer_behind_a_thought_is_looked_into(family, monkeypatch):
    def generate(self, prompt, max_new_tokens=256, *arguments, **settings):
        for number in self.tokenizer.encode(THOUGHT).ids:
            yield GeneratedToken(number, self.tokenizer.token_bytes(number).decode(), -1.0, None)
        yield GeneratedToken(min(self.end_ids, default=0), "", -1.0, "stop")

    monkeypatch.setattr(Decoder, "generate", generate)
    state = {"queued_question": "Who gave a deed?", "queued_write": True}
    state |= {"max_new_tokens": 64, "think": True}
    app = opened("inside/answer", family[1], **state)
    answer = app.session_state["answer"]
    written = answer.written
    assert (written.thought, written.text) == ("Who had a deed?", "The bee gave a bad cafe a deed.")
    assert f"behind a thought of {len(written.thought_ids)}." in said(app)
    kept = {key: app.session_state[key] for key in ("answer", "answer_job", "asked", "max_new_tokens")}
    rests = opened("inside/answer", family[1], **kept, **{"inside-answer-tab": "What it rests on"})
    assert "It is read without its thought" in said(rests)
    n_tokens = len(written.read_ids) + len(written.ids)
    cache = opened("inside/cache", family[1], answer=answer)
    assert cache.metric[0].value == f"{n_tokens:,}"


@pytest.mark.parametrize("family", ["qwen3"], indirect=True)
def test_a_thought_without_an_answer_is_said_and_the_quotes_stand(family, monkeypatch):
    monkeypatch.setattr("engine.generation.settings.MAX_THOUGHT_TOKENS", 8)
    folder = family[1]
    template = TEMPLATE + "{% if enable_thinking %}<think>{% endif %}"
    (folder / "chat_template.jinja").write_text(template)
    st.cache_resource.clear()
    state = {"queued_question": "Who gave a deed?", "queued_write": True}
    state |= {"max_new_tokens": 16, "think": True}
    app = opened("inside/answer", folder, **state)
    answer = app.session_state["answer"]
    words = said(app)
    assert answer.written.thought
    assert (answer.written.text, answer.written.ids) == ("", ())
    assert answer.quotes
    assert "wrote a thought and no answer" in words


@pytest.mark.parametrize("family", ["llama"], indirect=True)
def test_a_text_longer_than_the_models_context_is_cut_there(family, tmp_path):
    folder = shutil.copytree(family[1], tmp_path / "short")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 20}))
    app = page_on(folder, "inside/chunk", **ON_DECODER).run()
    assert "Only the first 20 of " in said(app)
