"""A folder that transformers loads the reader from, with a script that finds the same answers."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from ..atomic_write import write_atomically
from ..errors import InputError
from ..models import bert
from ..models.reader import HEAD, LONGEST_ANSWER, QUESTION_TOKENS, STRIDE_TOKENS, WINDOW_TOKENS, Reader
from ..weights.catalog import DEFAULT_ENCODER
from ..weights.fetch import model_path
from ..weights.tensors import read_json
from .script import rendered

SPECIAL_TOKENS = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}


def export_reader(reader: Reader, folder: Path) -> None:
    """Write a reader as a folder of transformers, for `AutoModelForQuestionAnswering`.

    Its files are config.json, model.safetensors in float32, tokenizer.json, tokenizer_config.json, a README
    with the licence, and answer.py, which finds the same spans with transformers and PyTorch. It has config
    and tokenizer of the encoder that it began as. `InputError` where its matrices are rounded to 8 bits.
    """
    if reader.precision != "float32":
        raise InputError(f"the reader is rounded to {reader.precision}: export it as float32")
    encoder = bert.embedding_tensors(reader.weights) | bert.layer_tensors(reader.weights)
    tensors = {f"{bert.BERT_NAMES.prefix}{name}": array for name, array in encoder.items()}
    tensors |= {f"{HEAD}.{kind}": array for kind, array in reader.head._asdict().items()}
    source = model_path(DEFAULT_ENCODER)
    config = read_json(source / "config.json") | {"architectures": ["BertForQuestionAnswering"]}
    # The file of the encoder pads and cuts all texts to 128 tokens.
    tokenizer = read_json(source / "tokenizer.json") | {"truncation": None, "padding": None}
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": reader.max_tokens,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in SPECIAL_TOKENS.items()},
    }
    fields = {
        "question_tokens": QUESTION_TOKENS,
        "window_tokens": WINDOW_TOKENS,
        "stride_tokens": STRIDE_TOKENS,
        "longest_answer": LONGEST_ANSWER,
    }
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(folder / "model.safetensors", save(contiguous, {"format": "pt"}))
    for name, content in {
        "config.json": json.dumps(config, indent=2),
        "tokenizer.json": json.dumps(tokenizer, ensure_ascii=False),
        "tokenizer_config.json": json.dumps(tokenizer_config, indent=2),
        "README.md": rendered("reader_card.jinja", fields),
        "answer.py": rendered("reader_answer.jinja", fields),
    }.items():
        write_atomically(folder / name, f"{content.strip()}\n".encode())
