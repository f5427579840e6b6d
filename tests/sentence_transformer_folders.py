"""Folders of embedding models with random weights, written by transformers and sentence-transformers."""

import base64
import unicodedata

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tests.model_files import edit_json
from tests.pytorch import modules, sentence_transformers, torch, transformers
from tests.tokenizer_files import WORD, small_byte_level

WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", *(f"##{c}" for c in "abcdefghij")]
TEXTS = ["a", "abc def", "j i h g f e d c b a " * 3, "unknown?", "", "Ab Cd", "bead " * 40]
BERT = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
}


def wordpiece(**normalizer):
    vocabulary = {token: i for i, token in enumerate(WORDPIECES)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def save_tokenizer(tokenizer, folder, max_tokens=None, **special):
    """Write tokenizer.json as it is, whatever class transformers would make of it."""
    wrapped = {"tokenizer_object": tokenizer, "model_max_length": max_tokens}
    transformers.PreTrainedTokenizerFast(**wrapped, **special).save_pretrained(folder)


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
    config = transformers.BertConfig(vocab_size=len(WORDPIECES), **{**SIZES, **sizes})
    random_model(transformers.BertModel, config).save_pretrained(folder)
    save_tokenizer(wordpiece(), folder, max_tokens, **BERT)
    return folder


def save_reranker(folder, n_labels=1):
    """Write a BERT cross-encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.BertConfig(vocab_size=len(WORDPIECES), num_labels=n_labels, **SIZES)
    random_model(transformers.BertForSequenceClassification, config).save_pretrained(folder)
    save_tokenizer(wordpiece(), folder, **BERT)
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    return folder


def save_modules(folder, base, *behind, transformer=None, **options):
    """Write a folder of sentence-transformers: the model in ``base``, and the modules behind it."""
    transformer = modules.Transformer(str(base), **(transformer or {}))
    sentence_transformers.SentenceTransformer(modules=[transformer, *behind], device="cpu", **options).save(
        str(folder)
    )
    return folder


def library(folder, dtype=np.float32):
    """The library's model of a folder."""
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    return model.double() if dtype == np.float64 else model


def library_vectors(model, texts=TEXTS, **options):
    return model.encode(list(texts), show_progress_bar=False, **options)


def roberta_processing(tokenizer, trim=True, prefix=False):
    """Put RoBERTa's special tokens around texts."""
    ids = tokenizer.token_to_id("</s>"), tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", ids[0]), ("<s>", ids[1]), trim, prefix)
    return tokenizer


def roberta_like_wordpiece():
    """MPNet's tokenizer: BERT's word pieces in RoBERTa's special tokens."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *WORDPIECES[1:], "<mask>"]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "[UNK]", AddedToken("<mask>", lstrip=True)])
    return roberta_processing(tokenizer)


WORDS = (
    "the cat sat on the mat, naïve café Ärger straße; кошка сидит на ковре; η γάτα κάθεται στο χαλί Σίσυφος; "
    "बिल्ली चटाई पर बैठी है; القطة على السجادة; החתול יושב על השטיח; 東京は日本の首都です。 猫坐在垫子上。 "
    "고양이가 매트 위에 앉았다; แมวนั่งบนเสื่อ; পানি খাই; კატა ზის; կատուն նստած է; 1234 12,5 🙂👩‍👩‍👧 ﬁn ½ e\u0301"
)
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def roberta_tokenizer():
    tokenizer = small_byte_level([WORDS], 400, ROBERTA_SPECIAL)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return roberta_processing(tokenizer)


def charsmap(table):
    """SentencePiece's compiled table of replacements, in base64: a double array of the strings in UTF-8."""
    replacements, values, trie = b"", {}, {}
    for old, new in table.items():
        values[old.encode()] = len(replacements)
        replacements += new.encode() + b"\0"
    for key, value in values.items():
        node = trie
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = value
    units, bases, free = {0: 0}, set(), 1

    def place(number, node):
        nonlocal free
        base = free
        while base in bases or any(base ^ byte in units for byte in node):
            base += 1
        free = base if len(node) > 1 else free
        bases.add(base)
        units[number] |= (number ^ base) << 10 | (0x100 if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = child | 1 << 31 if byte == 0 else byte
        for byte, child in node.items():
            if byte:
                place(base ^ byte, child)

    place(0, trie)
    array = np.zeros(max(units) + 256, "<u4")
    array[list(units)] = list(units.values())
    head = array.nbytes.to_bytes(4, "little")
    return base64.b64encode(head + array.tobytes() + replacements).decode()


def nfkc_table():
    """A table like that of XLM-R: some of NFKC, blanks as spaces, control characters removed."""
    ranges = [
        (0xA0, 0x180),
        (0x3A0, 0x3F8),
        (0x2100, 0x2190),
        (0x2460, 0x2480),
        (0x3000, 0x3002),
        (0xFB00, 0xFB20),
    ]
    ranges += [(0xFF01, 0xFFC0), (0xFE70, 0xFE90), (0x1E00, 0x1E40), (0x2000, 0x200C)]
    characters = [chr(code) for first, last in ranges for code in range(first, last)]
    table = {c: unicodedata.normalize("NFKC", c) for c in characters}
    table = {old: new for old, new in table.items() if old != new}
    marked = [c + mark for c in "aeiouAEbg" for mark in "\u0301\u0308\u0323"]
    table |= {letter: unicodedata.normalize("NFC", letter) for letter in marked}
    return (
        table
        | dict.fromkeys("\t\n\r\x0b\u00a0\u2028", " ")
        | dict.fromkeys("\x01\x7f\u200b\u200e\ufeff\u00ad", "")
    )


def unigram_tokenizer(squeezed=True, split=True, **options):
    """XLM-R's tokenizer, trained on a few words of many scripts."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    steps = [pre_tokenizers.WhitespaceSplit()] if split else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.Metaspace(**options)])
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([*WORDS.split("; "), WORDS] * 2, trainer)
    normalizer = [normalizers.Precompiled(base64.b64decode(charsmap(nfkc_table())))]
    normalizer += [normalizers.Replace(Regex(" {2,}"), " ")] if squeezed else []
    tokenizer.normalizer = normalizers.Sequence(normalizer)
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def modern_bert_tokenizer():
    tokenizer = small_byte_level([WORDS], 400, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (8, 4, 3, 2)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def qwen3_tokenizer():
    tokenizer = small_byte_level([WORDS], 400, ["<|endoftext|>", "<|im_end|>"])
    tokenizer.normalizer = normalizers.NFC()
    rest = r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"{WORD}|{rest}"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    end = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A $B:1 <|endoftext|>:1", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), end])
    return tokenizer
