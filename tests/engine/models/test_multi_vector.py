"""A late-interaction model gives the vectors of sentence-transformers' `MultiVectorEncoder`."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import AddedToken

from engine.errors import ModelFileError
from engine.models.multi_vector import MultiVectorEncoder
from tests.engine.models.test_encoder_families import FAMILY_CASES, LENGTH
from tests.model_files import edit_config, edit_tensors
from tests.pytorch import Library, modules, sentence_transformers, torch, transformers
from tests.sentence_transformer_folders import BERT, SIZES, edit_json, random_model, save_tokenizer, wordpiece

TEXTS = ["a", "abc, def!", "j i h g f e d c b a. " * 9, "(unknown?)", "Ab Cd", "a bad, dad; had a bee"]
QUERIES = ["a bad dad?", "j i h g f e d c b a " * 9, "a", "!"]
D_MODEL, WIDTH = SIZES["hidden_size"], 6
mask_modules = Library("sentence_transformers.multi_vector_encoder.modules")
MARKED = {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 9, "document_length": 16}


def marked_tokenizer(family):
    """The tokenizer of a family, that knows [MASK], punctuation and markers."""
    tokenizer = wordpiece() if family == "bert" else FAMILY_CASES[family].tokenizer()
    tokenizer.add_tokens(["!", "?", ",", "."])
    if not tokenizer.token_to_id("[MASK]"):
        tokenizer.add_special_tokens(["[MASK]"])
    own = ("[unused0]", "[unused1]", "[Q] ", "[D] ")
    tokenizer.add_tokens([AddedToken(each, normalized=False) for each in own])
    return tokenizer


def save_base(folder, family="bert"):
    """Write random layers and a tokenizer with markers."""
    tokenizer = marked_tokenizer(family)
    sizes = SIZES | {"max_position_embeddings": LENGTH} if family == "bert" else FAMILY_CASES[family].sizes
    config = transformers.AutoConfig.for_model(family, **{**sizes, "vocab_size": tokenizer.get_vocab_size()})
    random_model(transformers.AutoModel.from_config, config).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, LENGTH, mask_token="[MASK]", **BERT)
    return folder


def random_matrix():
    return np.random.default_rng(0).normal(size=(WIDTH, D_MODEL)).astype(np.float32)


def save_stanford(folder, **metadata):
    """Write a folder as ColBERT's own library does."""
    save_base(folder)
    edit_config(folder, architectures=["HF_ColBERT"])
    edit_tensors(folder, lambda tensors: tensors.update({"linear.weight": random_matrix()}))
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder


def save_pylate(folder, family="bert", **settings):
    """Write a folder as PyLate does."""
    save_base(folder, family)
    kinds = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
    entries = [{"idx": i, "name": str(i), "path": path, "type": kinds[path]} for i, path in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(entries))
    (folder / "1_Dense").mkdir()
    save_file({"linear.weight": random_matrix()}, folder / "1_Dense/model.safetensors")
    identity = "torch.nn.modules.linear.Identity"
    edit_json(
        folder / "1_Dense/config.json",
        in_features=D_MODEL,
        out_features=WIDTH,
        bias=False,
        activation_function=identity,
    )
    edit_json(
        folder / "config_sentence_transformers.json",
        **{"model_type": "ColBERT", "similarity_fn_name": "MaxSim", **MARKED, **settings},
    )
    return folder


def save_native(folder, masked=True, **transformer):
    """Write a folder of sentence-transformers itself."""
    options = {"module_input_name": "token_embeddings"}
    base = modules.Transformer(str(save_base(folder / "base")), **transformer)
    behind = [
        modules.Dense(D_MODEL, 9, activation_function=torch.nn.ReLU(), **options),
        modules.Dense(9, WIDTH, bias=False, activation_function=torch.nn.Identity(), **options),
        mask_modules.MultiVectorMask(skiplist_words=["!", "a"], skiplist_tasks=["query", "document"]),
        modules.Normalize(**options),
    ]
    behind = behind if masked else [behind[0], behind[1], behind[3]]
    prompts = {"query": "a bad ", "document": "b "}
    sentence_transformers.MultiVectorEncoder(modules=[base, *behind], device="cpu", prompts=prompts).save(
        str(folder / "model")
    )
    return folder / "model"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "save",
    [
        save_stanford,
        lambda folder: save_stanford(
            folder, query_maxlen=7, doc_maxlen=12, attend_to_mask_tokens=True, mask_punctuation=False
        ),
        save_pylate,
        lambda folder: save_pylate(folder, attend_to_expansion_tokens=True, skiplist_words=["a"]),
        lambda folder: save_pylate(folder, do_query_expansion=False, prompts={"query": "[Q] bad "}),
        lambda folder: save_pylate(folder, query_prefix="a: ", document_prefix=""),
        lambda folder: save_pylate(folder, query_prefix="[Q] ", document_prefix="b"),
        lambda folder: save_pylate(folder, "modernbert"),
        lambda folder: save_pylate(
            folder, attend_to_mask_tokens=True, query_expansion={"strategy": "min", "length": 8}
        ),
        lambda folder: save_native(folder, masked=False, query_expansion={"strategy": "fixed", "length": 8}),
        lambda folder: save_native(
            folder, query_expansion={"strategy": "min", "length": 8, "token": "[unused0]"}, document_length=11
        ),
    ],
)
def test_vectors_and_scores_equal_sentence_transformers(tmp_path, save, dtype):
    folder = save(tmp_path)
    library = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu")
    library = library.double() if dtype == np.float64 else library
    model = MultiVectorEncoder.load(folder, dtype=dtype)
    exact = 1e-5 if dtype == np.float32 or model.transformer.model_type == "modernbert" else 1e-9
    asked = library.encode_query(QUERIES, show_progress_bar=False)
    read = library.encode_document(TEXTS, show_progress_bar=False)
    for role, texts, expected in (("query", QUERIES, asked), ("document", TEXTS, read)):
        for own, text, official in zip(model.vectors(texts, role), texts, expected, strict=True):
            np.testing.assert_allclose(own, official.numpy(), atol=exact)
            assert len(model.placed_tokens(text, role)) == len(own)
    scores = library.similarity(asked[:1], read)[0].numpy()
    np.testing.assert_allclose(model.score(QUERIES[0], TEXTS), scores, atol=10 * exact)


def test_tokens_have_their_characters_and_added_ones_none(tmp_path):
    model = MultiVectorEncoder.load(save_pylate(tmp_path, query_prefix="a: "))
    asked, read = (model.placed_tokens("ab, c", role) for role in ("query", "document"))
    assert [token.token for token in read] == ["[CLS]", "[D] ", "a", "##b", "c", "[SEP]"]
    assert [(token.start, token.end) for token in read] == [(0, 0), (0, 0), (0, 1), (1, 2), (4, 5), (0, 0)]
    assert [token.token for token in asked[:4]] == ["[CLS]", "a", "[UNK]", "a"]
    assert [(token.start, token.end) for token in asked[1:4]] == [(0, 0), (0, 0), (0, 1)]
    assert [token.token for token in asked[-2:]] == ["[SEP]", "[MASK]"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: edit_tensors(save_stanford(folder), lambda tensors: tensors.pop("linear.weight")),
            "has no linear layer behind its token vectors: give a model that has one",
        ),
        (save_base, "is no late-interaction model: it has no modules.json"),
        (lambda folder: edit_config(save_stanford(folder), model_type="t5"), "'t5' model"),
        (
            lambda folder: save_file(
                {"linear.weight": np.ones((3, 5), np.float32)},
                edit_json(save_pylate(folder) / "1_Dense/config.json", in_features=5, out_features=3)
                or folder / "1_Dense/model.safetensors",
            ),
            "a layer takes vectors of 5, and gets 24",
        ),
        (
            lambda folder: (save_pylate(folder) / "modules.json").write_text(
                '[{"type": "sentence_transformers.models.Transformer", "path": ""}]'
            ),
            "has no linear layer",
        ),
    ],
)
def test_other_folders_are_refused_in_one_line(tmp_path, change, message):
    change(tmp_path)
    with pytest.raises(ModelFileError, match=message):
        MultiVectorEncoder.load(tmp_path)
