"""The pages about the encoder, opened on models of other families than BERT, which have random weights."""

import pytest
import streamlit as st

from engine.documents.document import Document
from tests.apps import app_page, own_documents, said
from tests.engine.models.test_encoder_families import save
from tests.pytorch import modules
from tests.sentence_transformer_folders import SIZES, save_modules
from ui.models import shared_encoder
from ui.text import escape_markdown

TEXT = "# Bees\n\nA bad dad had a jade bee. The bee gave a bad cafe a deed, and he hid a big cab.\n\n" * 6
POOLING = {"modernbert": "cls", "xlm-roberta": "mean", "qwen3": "lasttoken"}
PROMPTS = {"xlm-roberta": {"query": "query: ", "document": "passage: "}}
WORDS = {
    "modernbert": "[CLS] pooling, 40 tokens, 24 dimensions",
    "xlm-roberta": "mean pooling, prompts before questions and documents, 40 tokens, 24 dimensions",
    "qwen3": "last token pooling, 40 tokens, 24 dimensions",
}
# Of each family, a sentence of its attention and one of its tokenizer.
OWN_WORDS = {
    "modernbert": ("Layer 1 is local", "Byte-level BPE"),
    "xlm-roberta": ("The query of each token is compared with the keys of all tokens", "log-probability"),
    "qwen3": ("the rest is masked, as in a decoder", "Byte-level BPE"),
}
CHUNK = {"source-encoder": "Take a chunk of the documents", "layer-encoder": 1}


@pytest.fixture(scope="module", params=list(POOLING))
def family(request, tmp_path_factory):
    """Start the app on a model of a family, whose folder has characters of Markdown in its name."""
    name, base = request.param, tmp_path_factory.mktemp("base")
    save(base, name)
    folder = tmp_path_factory.mktemp("models") / f"*{name}*"
    head = modules.Pooling(SIZES["hidden_size"], POOLING[name]), modules.Normalize()
    save_modules(folder, base, *head, prompts=PROMPTS.get(name, {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ui.models.ENCODER", str(folder))
        forget()
        yield name
    forget()


def forget():
    """Forget the encoder, and the results that are kept by the texts alone."""
    shared_encoder.clear()
    st.cache_data.clear()


def opened(folder, **state):
    """All sentences of a page, which has no error."""
    app = app_page(folder, **own_documents(Document("bees.md", TEXT)), chunk_tokens=32, **state).run()
    assert not app.error
    return said(app)


def test_the_stages_are_those_of_the_family(family):
    attention, tokens = OWN_WORDS[family]
    words = opened("inside/chunk", **CHUNK)
    assert attention in words
    assert ("reads its prompt “passage" in words) == (family == "xlm-roberta")
    assert tokens in opened("inside/chunk", **CHUNK, **{"stage-encoder": 0})
    for stage in (1, 3, 4, 5) if family == "xlm-roberta" else (1, 3, 4, 5, 6):
        opened("inside/chunk", **CHUNK, **{"stage-encoder": stage})
    for tab in ("Attention", "A token's way"):
        opened("inside/chunk", **CHUNK, **{"inside-tab": tab})
    special = {"modernbert": "[CLS] and [SEP]", "xlm-roberta": "<s> and </s>", "qwen3": "<|endoftext|>"}
    words = opened("inside/chunk", **CHUNK, **{"inside-tab": "Across layers"})
    assert f"Share of attention on {escape_markdown(special[family])}" in words


def test_the_settings_name_the_model_and_what_its_files_ask_for(family):
    assert escape_markdown(f"*{family}*: {WORDS[family]}") in opened("documents")


PAGES = [
    ("documents", {"documents-tab": "Files"}),
    ("documents", {"documents-tab": "Chunks"}),
    ("documents", {"documents-tab": "Never read"}),
    ("documents", {"documents-tab": "Health"}),
    ("improve/poolings", {"pooling-tab": "Tokens"}),
    ("inside/late", {}),
    ("inside/verify", {}),
    ("learn/decoder", {}),
]


def test_pages_open(family):
    for folder, state in PAGES:
        opened(folder, **state)


def test_what_is_written_for_bert_says_so(family):
    assert f"is written for BERT only, and {escape_markdown(f'*{family}*')} is" in opened("inside/broken")


def test_other_families_cannot_be_tuned(family):
    app = app_page("improve/tuning", searched=["chatlogs.md"]).run()
    assert f"Training is written for BERT only, and {escape_markdown(f'*{family}*')} is" in said(app)
    assert not app.error
