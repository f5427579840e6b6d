"""Folders of embedding models with random weights, written by transformers and sentence-transformers."""

import json

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", *(f"##{c}" for c in "abcdefghij")]
TEXTS = ["a", "abc def", "j i h g f e d c b a " * 3, "unknown?", "", "Ab Cd", "bead " * 40]
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
}


def wordpiece(**normalizer):
    tokenizer = Tokenizer(
        models.WordPiece({token: i for i, token in enumerate(WORDPIECES)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(**normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def save_tokenizer(tokenizer, folder, max_tokens=None, **special):
    """Write tokenizer.json as it is, whatever class transformers would make of it."""
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_tokens, **special)
    wrapped.save_pretrained(folder)


def random_model(model_class, config, seed=0):
    """A model whose parameters are all random, norms and biases too."""
    torch.manual_seed(seed)
    model = model_class(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def save_bert(folder, max_tokens=20, **sizes):
    """Write a BERT model, a folder of transformers alone."""
    folder.mkdir(parents=True, exist_ok=True)
    random_model(BertModel, BertConfig(vocab_size=len(WORDPIECES), **{**SIZES, **sizes})).save_pretrained(
        folder
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    save_tokenizer(wordpiece(), folder, max_tokens, **special)
    return folder


def save_reranker(folder, n_labels=1):
    """Write a BERT cross-encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = BertConfig(vocab_size=len(WORDPIECES), num_labels=n_labels, **SIZES)
    random_model(BertForSequenceClassification, config).save_pretrained(folder)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    save_tokenizer(wordpiece(), folder, **special)
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    return folder


def save_modules(folder, base, *behind, transformer=None, **options):
    """Write a folder of sentence-transformers: the model in ``base``, and the modules behind it."""
    transformer = modules.Transformer(str(base), **(transformer or {}))
    SentenceTransformer(modules=[transformer, *behind], device="cpu", **options).save(str(folder))
    return folder


def library(folder, dtype=np.float32):
    """The library's model of a folder."""
    model = SentenceTransformer(str(folder), device="cpu")
    return model.double() if dtype == np.float64 else model


def library_vectors(model, texts=TEXTS, **options):
    return model.encode(list(texts), show_progress_bar=False, **options)


def edit_json(path, **changes):
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**content, **changes}))
