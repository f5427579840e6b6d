"""The settings that change tokenizer.json, as transformers reads them.

transformers makes the tokenizers of some classes anew, of the vocabulary in tokenizer.json and the settings
in tokenizer_config.json, whatever else tokenizer.json says; tokens may be added by either file.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..weights.tensors import read_optional, shortened, unreadable_tokenizer
from .added_tokens import FLAGS, SPLIT
from .normalizers import parts_of
from .patterns import BLANK, QWEN2

Section = dict[str, Any]

# The class of a model's tokenizer where no file names one.
CLASSES = {
    "bert": "BertTokenizer",
    "distilbert": "BertTokenizer",
    "gpt2": "GPT2Tokenizer",
    "nomic_bert": "BertTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "qwen3": "Qwen2Tokenizer",
    "gemma3_text": "GemmaTokenizer",
}
# Of these tokenizer.json, or the class here, holds, whatever class is named.
AS_FILED = {"modernbert": "", "mistral": "", "phi3": "", "qwen2": "Qwen2Tokenizer"}
# The class of a tokenizer that is as filed, and other names of the classes that are made anew.
FILED = ("", "PreTrained", "TokenizersBackend", "PythonBackend", "Bloom")
ALIASES = {
    "BertTokenizer": "DistilBert ConvBert Electra LayoutLM Lxmert MobileBert SqueezeBert",
    "RobertaTokenizer": "Bart LED Longformer Mvp",
}
# The special tokens that tokenizer_config.json may name, with the names they have in classes made anew.
BERT_TOKENS = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
ROBERTA_TOKENS = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>"}
ROBERTA_TOKENS |= {"mask": "<mask>"}
GEMMA_TOKENS = {"unk": "<unk>", "bos": "<bos>", "eos": "<eos>", "pad": "<pad>", "mask": "<mask>"}
END_OF_TEXT = "<|endoftext|>"
PLAIN_BPE: Section = dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False)
PLAIN_BPE |= {"type": "BPE", "unk_token": None}
BYTES_BPE = {**PLAIN_BPE, "fuse_unk": True, "byte_fallback": True}
# Steps from the pieces of SentencePiece back to text.
PIECES_BACK: list[Section] = [
    {"type": "Replace", "pattern": {"String": BLANK}, "content": " "},
    *({"type": kind} for kind in ("ByteFallback", "Fuse")),
]
NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def kind_of(content: Mapping[str, Any], path: Path) -> str:
    """Return the type of the model in the content of a tokenizer.json."""
    model = content.get("model")
    if not isinstance(model, dict):
        raise ModelFileError(f"{path} is not a readable tokenizer, it has no model: download it again")
    return model.get("type") or ("BPE" if "merges" in model else "WordPiece")  # early files name no type


def read_changes(content: Mapping[str, Any], path: Path) -> Section:
    """Return the `changes_of` the content of a tokenizer.json, or raise where they are not read."""
    kind = kind_of(content, path)
    try:
        changes = changes_of(content, path.parent)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise unreadable_tokenizer(path, error) from error
    made = changes.get("model", {}).get("type", kind)
    if made != kind:
        raise ModelFileError(
            f"{path} is a {kind} tokenizer, and its tokenizer_class makes {made} of it: name "
            "PreTrainedTokenizerFast in tokenizer_config.json, or give another model"
        )
    return changes


def changed(content: Mapping[str, Any], changes: Mapping[str, Any]) -> Section:
    """Return a tokenizer.json with other sections in place of its own, of ``model`` only some keys."""
    model = {**content["model"], **changes["model"]} if "model" in changes else content.get("model")
    return {**content, **changes, "model": model}


def changes_of(content: Mapping[str, Any], folder: Path) -> Section:
    """Return the sections of tokenizer.json that other files of its folder take the place of."""
    names = "tokenizer_config.json", "config.json", "special_tokens_map.json"
    config, model, named = (read_optional(folder / name) for name in names)
    config |= {} if "added_tokens_decoder" in config else named
    kind = model.get("model_type")
    stated = config.get("tokenizer_class") or model.get("tokenizer_class") or CLASSES.get(str(kind), "")
    name = AS_FILED.get(str(kind), str(stated).removesuffix("Fast"))
    if name == "LlamaTokenizer" and '"ByteLevel"' in json.dumps(content.get("pre_tokenizer")):
        name = ""  # the class is not that of Llama 3, which files name all the same
    kin = name.removesuffix("Tokenizer")
    name = next((whole for whole, others in ALIASES.items() if kin in others.split()), name)
    if kin not in FILED and name not in REBUILT:
        raise ModelFileError(
            f"{folder} names {shortened(name)}, whose tokenizer transformers makes in a way not read here: "
            f"give a model with PreTrainedTokenizerFast, {', '.join(REBUILT)}"
        )
    defaults, made_of = REBUILT.get(name, ({}, None))
    tokens = {key: text_of(config.get(f"{key}_token")) or defaults.get(key) for key in NAMED}
    added = added_tokens(content, config, tokens, made_of is not None)
    changes: Section = {} if added == content.get("added_tokens", []) else {"added_tokens": added}
    changes |= {SPLIT: True} if config.get(SPLIT) is True else {}
    if made_of is None:
        return changes
    ids = {entry["content"]: entry["id"] for entry in added}
    try:
        changes |= made_of(content, config, {k: (t, ids[t]) for k, t in tokens.items() if t in ids})
    except KeyError as error:
        [key] = error.args
        raise ModelFileError(
            f"{folder} names {name}, whose special token {shortened(tokens[key])} ({key}_token) is not in "
            "its vocabulary: name PreTrainedTokenizerFast in tokenizer_config.json, or download it again"
        ) from error
    same = {**content, "model": {key: content["model"].get(key) for key in changes["model"]}}
    return {name: section for name, section in changes.items() if section != same.get(name)}


def text_of(token: Any) -> Any:
    """Return the text of a token, which may be written with its flags."""
    return token.get("content") if isinstance(token, dict) else token


def added_tokens(
    content: Mapping[str, Any], config: Section, tokens: Mapping[str, str | None], rebuilt: bool
) -> list[Section]:
    """Return the added tokens of both files, then special ones that neither lists; new ones get new ids."""
    listed, stated = content.get("added_tokens", []), config.get("added_tokens_decoder")
    added = {entry["content"]: entry for entry in (listed if stated is None or not rebuilt else [])}
    vocabulary = content["model"]["vocab"]
    if not isinstance(vocabulary, dict):  # of pieces with scores
        vocabulary = {text: number for number, (text, _) in enumerate(vocabulary)}
    known = {entry["content"]: entry["id"] for entry in listed} | vocabulary
    free = max([*known.values(), -1]) + 1

    def add(text: str, entry: Mapping[str, Any]) -> None:
        nonlocal free
        number = known.get(text, free)
        free += number == free
        default = {flag: flag == "normalized" for flag in FLAGS}
        known[text] = number
        added[text] = {"id": number, "content": text, **{f: entry.get(f, default[f]) for f in FLAGS}}

    for _, entry in sorted((stated or {}).items(), key=lambda pair: int(pair[0])):
        add(entry["content"], entry)
    more = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    more = more.values() if isinstance(more, dict) else more
    usual = [text for text in tokens.values() if text in known]
    for token in [*(config.get(f"{key}_token") for key in NAMED), *usual, *more]:
        text = text_of(token)
        if text is not None and text not in added:
            add(text, {"normalized": False, "special": True} | (token if isinstance(token, dict) else {}))
    return list(added.values())


def template(single: str, pair: str, tokens: Section) -> Section:
    """Return the special tokens around texts, of keys of tokens and A and B, with segments that are not 0."""

    def part(key: str, segment: str) -> Section:
        kind, name = ("Sequence", key) if key in ("A", "B") else ("SpecialToken", tokens[key][0])
        return {kind: {"id": name, "type_id": int(segment or 0)}}

    def parts(words: str) -> list[Section]:
        return [part(*word.partition(":")[::2]) for word in words.split()]

    special = {part["SpecialToken"]["id"] for part in parts(single) if "SpecialToken" in part}
    known = {text: number for text, number in tokens.values() if text in special}
    return {
        "type": "TemplateProcessing",
        "single": parts(single),
        "pair": parts(pair),
        "special_tokens": {text: {"id": text, "ids": [n], "tokens": [text]} for text, n in known.items()},
    }


def bert(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of BERT's tokenizer."""
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", True),
    }
    own = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": tokens["unk"][0], **own},
        "post_processor": template("cls A sep", "cls A sep B:1 sep:1", tokens),
    }


def mpnet(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of MPNet's tokenizer: BERT's in RoBERTa's special tokens."""
    return {**bert(content, config, tokens), "post_processor": roberta_processing(tokens, True, False)}


def roberta_processing(tokens: Section, trim: bool, prefix: bool) -> Section:
    """Return the special tokens of RoBERTa around texts."""
    ends = {"cls": tokens["cls"], "sep": tokens["sep"]}
    return {"type": "RobertaProcessing", **ends, "trim_offsets": trim, "add_prefix_space": prefix}


def gpt2(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of GPT-2's tokenizer."""
    prefix = config.get("add_prefix_space", False)
    spaces = {"add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    return {"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", **spaces}, "model": PLAIN_BPE}


def roberta(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of RoBERTa's tokenizer."""
    trim, prefix = config.get("trim_offsets", True), config.get("add_prefix_space", False)
    processing = roberta_processing(tokens, trim, prefix)
    return {**gpt2(content, config, tokens), "post_processor": processing}


def metaspace(scheme: str, is_split: bool = True) -> Section:
    """Return the step that writes blanks as SentencePiece does."""
    return {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": scheme, "split": is_split}


def xlm_roberta(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of XLM-R's tokenizer."""
    parts = parts_of(content.get("normalizer"), "normalizers")
    scheme = "always" if config.get("add_prefix_space", True) else "never"
    steps = [{"type": "WhitespaceSplit"}, metaspace(scheme)]
    return {
        "normalizer": next((part for part in parts if part.get("type") == "Precompiled"), None),
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "model": {"type": "Unigram", "unk_id": 3, "byte_fallback": False},
        "post_processor": template("bos A eos", "bos A eos eos B eos", tokens),
    }


def camembert(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of CamemBERT's tokenizer."""
    return {
        **xlm_roberta(content, config, tokens),
        "model": {"type": "Unigram", "unk_id": tokens["unk"][1], "byte_fallback": False},
    }


def llama(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of Llama's tokenizer before version 3."""
    scheme = "always" if config.get("legacy") else "first"
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    if config.get("add_prefix_space") is False:
        scheme, strip = "never", []
    return {
        "normalizer": None,
        "pre_tokenizer": metaspace(scheme, is_split=False),
        "model": BYTES_BPE,
        "decoder": {"type": "Sequence", "decoders": PIECES_BACK + strip},
    }


def gemma(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of Gemma's tokenizer."""
    blank = {"pattern": {"String": " "}}
    return {
        "normalizer": {"type": "Replace", **blank, "content": BLANK},
        "pre_tokenizer": {"type": "Split", **blank, "behavior": "MergedWithPrevious", "invert": False},
        "model": {**BYTES_BPE, "unk_token": tokens["unk"][0]},
        "decoder": {"type": "Sequence", "decoders": PIECES_BACK},
    }


def qwen2(content: Mapping[str, Any], config: Section, tokens: Section) -> Section:
    """Return the sections of Qwen2's tokenizer."""
    words = {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False}
    spaces = {"add_prefix_space": bool(config.get("add_prefix_space")), "trim_offsets": True}
    parts = [words, {"type": "ByteLevel", **spaces, "use_regex": False}]
    return {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": parts},
        "model": PLAIN_BPE,
    }


Sections = Callable[[Mapping[str, Any], Section, Section], Section]
# The classes that are made anew: their special tokens, and their sections.
REBUILT: dict[str, tuple[Mapping[str, str], Sections]] = {
    "BertTokenizer": (BERT_TOKENS, bert),
    "MPNetTokenizer": (ROBERTA_TOKENS | {"unk": "[UNK]"}, mpnet),
    "RobertaTokenizer": (ROBERTA_TOKENS, roberta),
    "XLMRobertaTokenizer": (ROBERTA_TOKENS, xlm_roberta),
    "CamembertTokenizer": (ROBERTA_TOKENS, camembert),
    "LlamaTokenizer": ({"unk": "<unk>", "bos": "<s>", "eos": "</s>"}, llama),
    "GPT2Tokenizer": (dict.fromkeys(("unk", "bos", "eos"), END_OF_TEXT), gpt2),
    "GemmaTokenizer": (GEMMA_TOKENS, gemma),
    "Qwen2Tokenizer": (dict.fromkeys(("unk", "eos", "pad"), END_OF_TEXT), qwen2),
}
