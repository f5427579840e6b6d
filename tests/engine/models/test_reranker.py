"""A cross-encoder scores pairs as sentence-transformers' `CrossEncoder` does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.errors import ModelFileError
from engine.models.reranker import Reranker
from tests import sentence_transformer_folders as folders
from tests.engine.models.test_encoder_families import FAMILY_CASES, LENGTH
from tests.model_files import edit_config, without
from tests.pytorch import sentence_transformers, torch, transformers

PASSAGES = ["a b c", "j i h g f e d c b a " * 3, "", "unknown?", "abc def"]
TEXTS = st.text("abcdefghij ?", max_size=60)
MEAN_HEAD = {"classifier_pooling": "mean", "classifier_activation": "silu", "classifier_bias": True}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("settings", "tokenizer"),
    [
        ({}, {}),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, {}),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, {}),
        ({}, {"tokenizer_class": "PreTrainedTokenizerFast"}),
        ({}, {"model_max_length": 9}),
    ],
)
def test_scores_equal_sentence_transformers(tmp_path, dtype, settings, tokenizer):
    folders.save_reranker(tmp_path)
    edit_config(tmp_path, **settings)
    folders.edit_json(tmp_path / "tokenizer_config.json", **tokenizer)
    official = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu")
    official.model.to(torch.float32 if dtype == np.float32 else torch.float64)
    reranker = Reranker.load(tmp_path, dtype=dtype)
    for question in ("d e", "j i h g f e d c b a " * 3):
        expected = official.predict([(question, passage) for passage in PASSAGES])
        scores = reranker.score(question, PASSAGES)
        assert scores.dtype == dtype
        np.testing.assert_allclose(scores, expected, atol=1e-5 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("roberta", {}),
        ("xlm-roberta", {}),
        ("mpnet", {}),
        ("distilbert", {}),
        ("modernbert", {}),
        ("modernbert", MEAN_HEAD),
        ("gte", {}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_family_scores_as_sentence_transformers(tmp_path, family, sizes, dtype):
    case = FAMILY_CASES[family]
    tokenizer = case.tokenizer()
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "num_labels": 1, **case.sizes, **sizes}
    config = transformers.AutoConfig.for_model(family, **sizes)
    make = transformers.AutoModelForSequenceClassification.from_config
    folders.random_model(make, config).save_pretrained(tmp_path)
    folders.save_tokenizer(tokenizer, tmp_path, LENGTH, **case.special)
    unchanged = torch.nn.Identity()
    official = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu", activation_fn=unchanged)
    edit_config(tmp_path, sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"})
    reranker = Reranker.load(tmp_path, dtype=dtype)
    expected = official.predict([("a bad dad", passage) for passage in PASSAGES])
    np.testing.assert_allclose(reranker.score("a bad dad", PASSAGES), expected, atol=2e-5)
    assert reranker.trace("a bad dad", "bead")["logit"] == pytest.approx(
        reranker.score("a bad dad", ["bead"]), abs=2e-5
    )


def official_yes_no(family, tokenizer, question, passage, limit):
    """The ids of a pair, and the answers, by the code of the models' cards."""

    def ids(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    if family == "qwen3":  # of Qwen/Qwen3-Reranker-0.6B
        prefix = (
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
            'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
            "<|im_start|>user\n"
        )
        suffix = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        instruction = "Given a web search query, retrieve relevant passages that answer the query"
        pair = f"<Instruct>: {instruction}\n<Query>: {question}\n<Document>: {passage}"
        room = limit - len(ids(prefix)) - len(ids(suffix))
        return [*ids(prefix), *ids(pair)[:room], *ids(suffix)], "yes", "no"
    prefix = (  # of mixedbread-ai/mxbai-rerank-base-v2
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n"
    )
    task = (
        "You are a search relevance expert who evaluates how well documents match search queries. For each "
        "query-document pair, carefully analyze the semantic relationship between them, then provide your "
        "binary relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:"
    )
    end = [*ids("\n"), *ids(task), *ids("<|im_end|>\n<|im_start|>assistant\n")]
    begin = [*ids(prefix), *ids(f"query: {question}"), *ids("\n")]
    room = limit - len(begin) - len(end)
    return [*begin, *ids(f"document: {passage}")[:room], *end], "1", "0"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("family", "tied"), [("qwen3", True), ("qwen3", False), ("qwen2", True)])
def test_language_models_are_asked_for_yes_or_no(tmp_path, family, tied, dtype):
    tokenizer = folders.qwen3_tokenizer()
    tokenizer.add_special_tokens(["<|im_start|>"])
    tokenizer.add_tokens(["yes", "no"])
    sizes = {**FAMILY_CASES["qwen3"].sizes, "max_position_embeddings": 700, "tie_word_embeddings": tied}
    config = transformers.AutoConfig.for_model(
        family, **sizes, vocab_size=tokenizer.get_vocab_size(), dtype="float32"
    )
    model = folders.random_model(transformers.AutoModelForCausalLM.from_config, config)
    model.save_pretrained(tmp_path)
    folders.save_tokenizer(tokenizer, tmp_path, 600, pad_token="<|endoftext|>")
    reranker, question = Reranker.load(tmp_path, dtype=dtype), "Who is at sea?"
    assert reranker.max_tokens == 600
    passages = ["the cat sat on the mat, naïve café", "", "no\nyes? 12,5", "東京は日本の首都です。 " * 90]
    expected = []
    for passage in passages:
        ids, yes, no = official_yes_no(family, tokenizer, question, passage, 600)
        assert reranker.read(question, passage).ids == ids
        with torch.no_grad():
            last = model(torch.tensor([ids])).logits[0, -1]
        expected.append(torch.sigmoid(last[tokenizer.token_to_id(yes)] - last[tokenizer.token_to_id(no)]))
    np.testing.assert_allclose(reranker.score(question, passages), np.array(expected), atol=1e-5)
    pair = reranker.read(question, passages[0])
    for side, text in ((0, question), (1, passages[0])):
        spans = [span for span, kind in zip(pair.offsets, pair.type_ids, strict=True) if kind == side]
        assert {place for start, end in spans for place in range(start, end)} == {*range(len(text))}


@given(TEXTS, TEXTS, st.integers(3, 40))
def test_pairs_are_cut_as_the_library_cuts_them(reranker_folder, question, passage, limit):
    library = Tokenizer.from_file(str(reranker_folder / "tokenizer.json"))
    library.enable_truncation(limit, strategy="longest_first")
    expected = library.encode(question, passage)
    ours = Reranker.load(reranker_folder).tokenizer.encode_pair(question, passage, limit)
    assert (ours.ids, ours.type_ids) == (expected.ids, expected.type_ids)
    assert ours.offsets == [tuple(span) for span in expected.offsets]


def test_the_limit_is_that_of_the_positions_without_one_of_the_tokenizer(reranker_folder):
    assert Reranker.load(reranker_folder).max_tokens == folders.SIZES["max_position_embeddings"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: folders.save_reranker(folder, n_labels=3), "classifies into 3 labels"),
        (without("classifier.weight"), "no classifier of the families"),
        (without("bert.pooler.dense.weight"), "no classifier of the families"),
        (
            lambda folder: edit_config(folder, sentence_transformers={"activation_fn": "own.code.Softmax"}),
            "own.code.Softmax",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors"),
    ],
)
def test_other_folders_are_refused(tmp_path, change, message):
    folders.save_reranker(tmp_path)
    change(tmp_path)
    with pytest.raises(ModelFileError, match=message):
        Reranker.load(tmp_path)
