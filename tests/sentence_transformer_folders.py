"""Folders of embedding models with random weights, written by transformers and sentence-transformers."""

import json

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
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


def roberta_processing(tokenizer, trim=True):
    """Put RoBERTa's special tokens around texts."""
    ids = tokenizer.token_to_id("</s>"), tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", ids[0]), ("<s>", ids[1]), trim, False)
    return tokenizer


def roberta_like_wordpiece():
    """MPNet's tokenizer: BERT's word pieces in RoBERTa's special tokens."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *WORDPIECES[1:], "<mask>"]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "[UNK]", AddedToken("<mask>", lstrip=True)])
    return roberta_processing(tokenizer)


def byte_pairs(special, n_tokens=400):
    """Byte-level BPE trained on a few words of many scripts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=n_tokens, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([WORDS] * 3, trainer)
    return tokenizer


WORDS = (
    "the cat sat on the mat, naïve café Ärger straße; кошка сидит на ковре; η γάτα κάθεται στο χαλί Σίσυφος; "
    "बिल्ली चटाई पर बैठी है; القطة على السجادة; החתול יושב על השטיח; 東京は日本の首都です。 猫坐在垫子上。 "
    "고양이가 매트 위에 앉았다; แมวนั่งบนเสื่อ; পানি খাই; კატა ზის; կատուն նստած է; 1234 12,5 🙂👩‍👩‍👧 ﬁn ½ e\u0301"
)
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def roberta_tokenizer():
    tokenizer = byte_pairs(ROBERTA_SPECIAL)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return roberta_processing(tokenizer)
