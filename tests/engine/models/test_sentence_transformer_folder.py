import json
import logging

import numpy as np
import pytest

from engine import Encoder
from engine.errors import InputError, ModelFileError, ModelUnavailableError
from engine.evaluation.library_model import load_model
from engine.models.embedding_head import similarity_note
from engine.models.sentence_transformer_folder import POOLING_KEYS, POOLING_MODES
from tests import sentence_transformer_folders as saved
from tests.pytorch import modules, torch

D_MODEL = saved.SIZES["hidden_size"]
BGE = "Represent this sentence for searching relevant passages: "
E5 = {"query": "query: ", "passage": "passage: "}
PROMPTS = {"query": "a b ", "document": "c d ", "other": "j "}
logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return saved.save_bert(tmp_path_factory.mktemp("models") / "bert")


def assert_equal(folder, dtype=np.float32, **options):
    ours = Encoder.load(folder, dtype).encode(saved.TEXTS, **options)
    theirs = saved.library_vectors(saved.library(folder, dtype))
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype == dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("mode", [*POOLING_MODES, ("cls", "mean"), tuple(reversed(POOLING_MODES))])
def test_every_pooling_equals_the_library(bert, tmp_path, mode):
    assert_equal(saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, mode)))


@pytest.mark.parametrize(
    "behind",
    [
        lambda: [modules.Normalize()],
        lambda: [modules.Dense(D_MODEL, 8), modules.Normalize()],
        lambda: [modules.Dense(D_MODEL, 32, bias=False, activation_function=torch.nn.GELU())],
        lambda: [
            modules.Dense(D_MODEL, 12, activation_function=None),
            modules.Dense(12, 6, activation_function=torch.nn.ReLU()),
        ],
        lambda: [
            modules.Normalize(),
            modules.Dense(D_MODEL, D_MODEL, activation_function=torch.nn.Sigmoid()),
        ],
        lambda: [
            modules.Dense(D_MODEL, 8, activation_function=torch.nn.Mish(), use_residual=True),
            modules.LayerNorm(8),
            modules.Dropout(0.2),
            modules.Dense(8, 8, activation_function=torch.nn.ELU(), use_residual=True),
        ],
        lambda: [
            modules.Dense(D_MODEL, 8, activation_function=torch.nn.SiLU()),
            modules.Normalize(),
            modules.Dense(8, 4),
            modules.Normalize(),
        ],
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_modules_behind_the_pooling_equal_the_library(bert, tmp_path, behind, dtype):
    assert_equal(saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), *behind()), dtype)


def test_files_of_older_versions_are_read(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, ("cls", "max")), modules.Normalize())
    legacy = {key: mode in ("cls", "max") for key, mode in POOLING_KEYS.items()}
    legacy["word_embedding_dimension"] = D_MODEL
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(legacy))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    (tmp_path / "2_Normalize" / "config.json").unlink()
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 12, "do_lower_case": false}')
    assert Encoder.load(tmp_path).max_tokens == 12
    assert_equal(tmp_path)


@pytest.mark.parametrize(
    ("measure", "normalized", "similarity"),
    [
        (None, False, "cosine"),
        ("dot", False, "dot"),
        ("dot", True, "cosine"),
        ("euclidean", True, "cosine"),
        ("manhattan", True, "manhattan"),
    ],
)
def test_vectors_are_compared_by_the_measure_of_the_model(bert, tmp_path, measure, normalized, similarity):
    behind = [modules.Normalize()] if normalized else []
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), *behind)
    saved.edit_json(tmp_path / "config_sentence_transformers.json", similarity_fn_name=measure)
    encoder = Encoder.load(tmp_path)
    assert encoder.similarity_fn_name == similarity
    assert bool(similarity_note("m", encoder.similarity_fn_name)) == (similarity != "cosine")
    vectors = encoder.encode(saved.TEXTS)
    theirs = saved.library(tmp_path)
    theirs.similarity_fn_name = similarity
    for second in (vectors, vectors[0]):
        expected = theirs.similarity(vectors, second).numpy()
        np.testing.assert_allclose(encoder.similarity(vectors, second), expected, rtol=1e-4, atol=1e-5)


def test_the_model_may_lie_in_a_subfolder(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "cls"))
    inner = tmp_path / "0_Transformer"
    inner.mkdir()
    for path in tmp_path.iterdir():
        if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
            path.rename(inner / path.name)
    listed = json.loads((tmp_path / "modules.json").read_text())
    (tmp_path / "modules.json").write_text(json.dumps([{**listed[0], "path": inner.name}, *listed[1:]]))
    assert_equal(tmp_path)


def test_a_folder_without_modules_is_the_mean_as_the_library_has_it(bert):
    assert_equal(bert)
    assert_equal(bert, np.float64)


def test_lower_case_comes_before_the_tokenizer(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"))
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["normalizer"]["lowercase"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    cased = Encoder.load(tmp_path)
    saved.edit_json(tmp_path / "sentence_bert_config.json", do_lower_case=True)
    encoder = Encoder.load(tmp_path)
    assert cased.tokenizer.encode("Ab").tokens == ["[CLS]", "[UNK]", "[SEP]"]
    for ids in (encoder.tokenizer.encode("Ab").ids, *encoder.tokenizer.ids_batch(["Ab"])):
        assert ids == cased.tokenizer.encode("ab").ids


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("mode", ["mean", "weightedmean", ("cls", "lasttoken")])
def test_prompts_equal_the_library(bert, tmp_path, mode, include_prompt):
    pooling = modules.Pooling(D_MODEL, mode, include_prompt=include_prompt)
    saved.save_modules(tmp_path, bert, pooling, modules.Normalize(), prompts=PROMPTS)
    encoder, official = Encoder.load(tmp_path), saved.library(tmp_path)
    for prompt in PROMPTS:
        theirs = saved.library_vectors(official, prompt_name=prompt)
        np.testing.assert_allclose(encoder.encode(saved.TEXTS, prompt_name=prompt), theirs, atol=1e-5)
    query, document = official.encode_query(saved.TEXTS), official.encode_document(saved.TEXTS)
    np.testing.assert_allclose(encoder.encode_query(saved.TEXTS), query, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_document(saved.TEXTS), document, atol=1e-5)
    np.testing.assert_allclose(
        encoder.encode(saved.TEXTS, prompt_name=""), saved.library_vectors(official), atol=1e-5
    )


def test_the_default_prompt_is_put_before_every_text_but_those_with_another(bert, tmp_path):
    saved.save_modules(
        tmp_path, bert, modules.Pooling(D_MODEL, "mean"), prompts={"other": "j "}, default_prompt_name="other"
    )
    encoder, official = Encoder.load(tmp_path), saved.library(tmp_path)
    np.testing.assert_allclose(encoder.encode(saved.TEXTS), saved.library_vectors(official), atol=1e-5)
    queries = official.encode_query(saved.TEXTS)
    np.testing.assert_allclose(encoder.encode_query(saved.TEXTS), queries, atol=1e-5)
    assert not np.allclose(encoder.encode(saved.TEXTS), encoder.encode(saved.TEXTS, prompt_name=""))


def test_an_unknown_prompt_is_refused_with_the_known_ones(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), prompts=PROMPTS)
    with pytest.raises(InputError, match="no prompt 'passage': the model has 'document', 'other', 'query'"):
        Encoder.load(tmp_path).encode(["a"], prompt_name="passage")
    encoder = Encoder.load(bert)
    with pytest.raises(InputError, match="no prompt 'other': the model has no prompts at all"):
        encoder.encode(["a"], prompt_name="other")
    np.testing.assert_array_equal(encoder.encode_query(["a"]), encoder.encode(["a"], prompt_name="query"))


def test_a_prompt_that_leaves_no_room_is_refused(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), prompts={"query": "a b c d e f g "})
    with pytest.raises(InputError, match=r"the prompt has 9 tokens, .* limit of 9: raise max_tokens"):
        Encoder.load(tmp_path).encode(["a"], prompt_name="query", max_tokens=9)


def test_vectors_are_cut_and_scaled_again_if_that_is_asked_for(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), modules.Normalize())
    encoder = Encoder.load(tmp_path)
    for given in ({"truncate_dim": 5}, {"truncate_dim": 5, "normalize_embeddings": True}):
        theirs = saved.library_vectors(saved.library(tmp_path), **given)
        np.testing.assert_allclose(encoder.encode(saved.TEXTS, **given), theirs, atol=1e-5)
    assert encoder.encode([], truncate_dim=5).shape == (0, 5)
    for dimensions in (0, D_MODEL + 1):
        with pytest.raises(InputError, match=f"truncate_dim is {dimensions}: .* 1 to {D_MODEL}"):
            encoder.encode(saved.TEXTS, truncate_dim=dimensions)


def test_a_named_pooling_is_of_length_1_whatever_the_model_does(bert, tmp_path):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "cls"), modules.Dense(D_MODEL, 8))
    encoder = Encoder.load(tmp_path)
    several = encoder.encode(saved.TEXTS, ["own", "cls", "mean"])
    assert {name: vectors.shape[1] for name, vectors in several.items()} == {"own": 8, "cls": 24, "mean": 24}
    for vectors in several.values():
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    own = encoder.encode(saved.TEXTS)
    np.testing.assert_allclose(own / np.linalg.norm(own, axis=1)[:, None], several["own"], atol=1e-6)
    raw = encoder.encode(saved.TEXTS, "cls", normalize_embeddings=False)
    theirs = saved.library_vectors(saved.library(bert), output_value="token_embeddings")
    np.testing.assert_allclose(raw, [tokens[0] for tokens in theirs], atol=1e-5)
    trace = encoder.trace(saved.TEXTS[1])
    np.testing.assert_allclose(trace["pooled.own"], own[1], atol=1e-6)
    assert {name: trace[name].shape for name in ("pooled.own", "pooled.cls", "normalized")} == {
        "pooled.own": (8,),
        "pooled.cls": (24,),
        "normalized": (8,),
    }


@pytest.mark.parametrize(
    ("folder_name", "sizes", "prompts"),
    [
        ("bge-small-en-v1.5", (384, 8), {"query": BGE}),
        ("intfloat--e5-small-v2", (384, 8), E5),
        ("models--intfloat--e5-small-v2/snapshots/1a2b", (384, 8), E5),
        ("e5-small-v2", (24, 3), {}),
        ("my-e5-small-v2", (384, 8), {}),
    ],
)
def test_prompts_of_well_known_models_come_from_their_cards(tmp_path, folder_name, sizes, prompts):
    folder = saved.save_bert(tmp_path / folder_name, hidden_size=sizes[0], num_attention_heads=sizes[1])
    encoder = Encoder.load(folder)
    assert encoder.prompts.named == prompts
    assert encoder.head.normalize == bool(prompts)
    assert encoder.pooling == ("cls" if "bge" in folder_name else "mean")


def with_module(folder, kind, place="2_More", base="sentence_transformers.models"):
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*listed, {"type": f"{base}.{kind}", "path": place}]))


def only_pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def only(*places):
    """Leave out the weights and the configuration, and write other files."""

    def change(folder):
        for name in ("model.safetensors", "config.json"):
            (folder / name).unlink()
        for place in places:
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_bytes(b"x")

    return change


def edited(file, **changes):
    return lambda folder: saved.edit_json(folder / file, **changes)


LIBRARY, BERT = "config_sentence_transformers.json", "sentence_bert_config.json"
POOLING, DENSE = "1_Pooling/config.json", "2_Dense/config.json"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: with_module(f, "LSTM"), "has the module LSTM: only Transformer, Pooling, Dense, LayerN"),
        (lambda f: with_module(f, "Pooling"), "has the modules Transformer, Pooling, Dense, Pooling: only"),
        (lambda f: with_module(f, "Custom", base="their_code"), "'their_code.Custom', code of its own"),
        (lambda f: with_module(f, "Dense", "../elsewhere"), "in '../elsewhere', outside the folder"),
        (lambda f: (f / "modules.json").write_text("[1]"), "is no list of modules"),
        (lambda f: (f / POOLING).unlink(), "has no config.json"),
        (edited(POOLING, pooling_mode="median"), r"pools by \['median'\]"),
        (edited(POOLING, pooling_mode=["cls", "max"]), "takes vectors of 24"),
        (edited(DENSE, activation_function="os.system"), "'os.system' is not"),
        (edited(DENSE, in_features=8), "has shape"),
        (edited(DENSE, use_residual=True), "no tensor 'residual.weight'"),
        (edited(DENSE, module_input_name="token_embeddings"), "works on 'token_embeddings'"),
        (edited(LIBRARY, truncate_dim=9), "vectors of 8 to 9"),
        (edited(LIBRARY, model_type="SparseEncoder"), "Sparse"),
        (edited(LIBRARY, prompts={"a": 1}), "prompts is"),
        (edited(LIBRARY, similarity_fn_name="maxsim"), "similarity_fn_name is 'maxsim'"),
        (edited(LIBRARY, default_prompt_name="x"), "default_prompt_name is 'x'"),
        (edited(BERT, transformer_task="fill-mask"), "sets transformer_task to 'fill-mask'"),
        (edited(BERT, modality_config={"text": {}, "image": {}}), "reads text, image"),
        (only("onnx/model.onnx"), "has its weights only as ONNX, which is not read: give a model with"),
        (only("adapter_config.json", "adapter_model.safetensors"), r"is an adapter \(LoRA\), .*merge"),
        (only("m-Q4_K_M.gguf"), "holds a GGUF file: give the path of that file"),
        (only("notes.txt"), "has no config.json: give a complete model folder"),
        (only_pickled, "only in pytorch_model.bin, a pickle, which may run any code"),
    ],
)
def test_what_is_not_read_is_refused_with_the_reason(bert, tmp_path, change, reason):
    saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), modules.Dense(D_MODEL, 8))
    change(tmp_path)
    with pytest.raises(ModelFileError, match=reason):
        Encoder.load(tmp_path)


@pytest.mark.usefixtures("library_in_this_process")
@pytest.mark.parametrize("part", [".", "2_Dense"])
def test_the_library_reads_no_pickle_either(bert, tmp_path, part):
    folder = saved.save_modules(tmp_path, bert, modules.Pooling(D_MODEL, "mean"), modules.Dense(D_MODEL, 8))
    only_pickled(folder / part)
    with pytest.raises(ModelUnavailableError, match="it has weights in a pickle, which is not opened"):
        load_model(str(folder))
