"""Small tokenizers of each model family, trained on the bundled corpus, as tokenizer.json and as GGUF."""

import json
import unicodedata
from functools import cache, wraps

import gguf
import numpy as np
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import ByteLevel, Sequence, TemplateProcessing

from engine.documents.loaders import load_corpus
from engine.weights.gguf_file import GGUF
from tests.model_files import finish_gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
CAPITAL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = rf"{CASED}{SUFFIX}|{CAPITAL}{SUFFIX}|\p{{N}}{{1,3}}|{SLASHES}"
TEKKEN = rf"{CASED}|{CAPITAL}|\p{{N}}|{SLASHES}"
BYTE_LEVEL = ["gpt-2", "smollm", "qwen2", "llama-bpe", "gpt-4o", "tekken"]
SENTENCEPIECE = ["prepend", "first", "always", "split", "gemma"]
# The library knows the letters of the Unicode version it was built with, and the marks of an older one.
ASSIGNED = st.characters(exclude_categories=["Cs", "Cn"]).filter(
    lambda c: not unicodedata.combining(c) or unicodedata.ucd_3_2_0.category(c) != "Cn"
)
# Blanks, marks that are put together with what they follow or not, contractions, digits, special tokens and
# near misses, words of the corpus.
ODD = [
    *"aeIÉñ \t\n\r\x00\x0b\x1c\x7f\x85\xa0.,-_$'東한각ﬁςſ▁12³½🙂",
    *"\u0301\u0316\u0344\u0f73\u09be\u200b\u2028\u3000\u180e\ufeff\ufffd\u212b\u1100\u1161\u11a8\uf900",
    *("the", " president", "'s", "'LL", "'ſ", "\r\n", "   ", " \n", "1234", "naïve café", "e\u0301\u0316"),
    *("👩‍👩‍👧", "<s>", "</s>", "<unk>", "<tool>", "<|end|>", "<|begin|>", "<0x41>", "<s", "of the people"),
]
TEXTS = st.one_of(st.text(ASSIGNED, max_size=60), st.lists(st.sampled_from(ODD), max_size=30).map("".join))


def trained_once(train):
    """Have each tokenizer trained once; every call gives a copy that may be changed."""
    trained = cache(lambda name: train(name).to_str())
    return wraps(train)(lambda name: Tokenizer.from_str(trained(name)))


SENTENCES = ("the cat sat on the mat", "a feline rests on 12 rugs")


def small_byte_level(texts=SENTENCES, n_tokens=300, special=("<end>",)):
    """Train GPT-2's kind of tokenizer on a few texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(texts) * 4, trainer)
    return tokenizer


def corpus():
    return [line for document in load_corpus() for line in document.text.splitlines(True)]


@trained_once
def byte_level(family):
    """Train a tokenizer that is set up as a family's tokenizer.json, by the name of its rules in GGUF."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=family in ("llama-bpe", "tekken")))
    before, after = {
        "gpt-2": ([], True),
        "smollm": ([pre_tokenizers.Digits(individual_digits=True)], True),
        "qwen2": ([pre_tokenizers.Split(Regex(rf"{WORD}|\p{{N}}|{REST}"), "isolated")], False),
        "gpt-4o": ([pre_tokenizers.Split(Regex(GPT4O), "isolated")], False),
        "tekken": ([pre_tokenizers.Split(Regex(TEKKEN), "isolated")], False),
        "llama-bpe": ([pre_tokenizers.Split(Regex(rf"{WORD}|\p{{N}}{{1,3}}|{REST}"), "isolated")], False),
    }[family]
    steps = [*before, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=after)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if before else steps[0]
    tokenizer.normalizer = normalizers.NFC() if family == "qwen2" else None
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|begin|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    if family == "llama-bpe":
        begin = TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 1)])
        tokenizer.post_processor = Sequence([ByteLevel(trim_offsets=False), begin])
    return tokenizer


@trained_once
def sentencepiece(style):
    """Train a tokenizer that is set up as Gemma's tokenizer.json, or Llama 2's, the older or a newer way."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    trained.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=2000))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [tuple(pair) for pair in model["merges"]]
    options = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, **options))
    if style == "prepend":
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        tokenizer.normalizer = normalizers.Sequence(steps)
    elif style == "gemma":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        scheme = "always" if style == "split" else style
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=style == "split")
    last = [] if style == "gemma" else [decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *last]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in tokens[:3]])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def added(content, number, special=True, **flags):
    """An added token as tokenizer.json has it."""
    names = ("single_word", "lstrip", "rstrip", "normalized")
    return {"content": content, "id": number, "special": special, **dict.fromkeys(names, False), **flags}


def save(tokenizer, path, **changes):
    """Write a tokenizer.json file, with changes to its parts."""
    path.write_text(json.dumps({**json.loads(tokenizer.to_str()), **changes}))
    return path


def save_as_filed(tokenizer, folder):
    """Write a tokenizer.json, of a class that transformers does not make anew."""
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


def gguf_metadata(tokenizer, kind, pre="default"):
    """Return what a GGUF file says of a tokenizer; scores are minus the ranks of the merges."""
    content = json.loads(tokenizer.to_str())
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    merges = [" ".join(pair) for pair in content["model"]["merges"]]
    ranks = {line.replace(" ", ""): rank for rank, line in enumerate(merges)}
    types = {
        entry["content"]: CONTROL if entry["special"] else USER_DEFINED for entry in content["added_tokens"]
    }
    if kind == "llama":
        types |= {token: BYTE for token in tokens if token.startswith("<0x")} | {"<unk>": UNKNOWN}
    return {
        "model": kind,
        "pre": pre,
        "tokens": tokens,
        "token_type": [types.get(token, NORMAL) for token in tokens],
        **({"merges": merges} if kind == "gpt2" else {}),
        **({"scores": [-float(ranks.get(token, 1e6)) for token in tokens]} if kind == "llama" else {}),
    }


def write_gguf(path, metadata):
    """Write a GGUF file with a tokenizer and one tensor."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        writer.add_key_value(f"tokenizer.ggml.{key}", value, gguf.GGUFValueType.get_type(value))
    finish_gguf(writer, {"x": np.zeros((2, 32), np.float32)})
    return GGUF(path)
