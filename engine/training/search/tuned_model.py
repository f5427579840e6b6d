"""Tuned models as folders that sentence-transformers loads."""

import io
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from ...models.bert import layer_tensors
from ...models.encoder import Encoder
from ...weights.fetch import model_path
from ...weights.tensors import read_safetensors

CARD = "README.md"
MODULES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder with mean pooling and normalisation as a sentence-transformers model."""
    source = model_path(encoder.name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(source / name, folder / name)
    tensors = {
        name.removeprefix("bert."): array
        for name, array in read_safetensors(source / "model.safetensors").items()
    }
    for name, array in layer_tensors(encoder.weights).items():
        tensors[name] = np.ascontiguousarray(array, np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (path, kind) in enumerate(MODULES.items())
        ],
    )
    write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": encoder.max_tokens, "do_lower_case": False}
    )
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
    pooling = {"word_embedding_dimension": encoder.config.d_model, "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    (folder / "2_Normalize").mkdir(exist_ok=True)


def tuned_zip(encoder: Encoder, card: str = "") -> bytes:
    """Return a model's folder as a .zip file, and its card as `CARD`."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(content, "w") as archive:
        folder = Path(scratch)
        save_encoder(encoder, folder)
        if card:
            (folder / CARD).write_text(card, encoding="utf-8")
        for path in sorted(folder.rglob("*")):  # the empty folder too; weights hardly compress
            archive.write(path, path.relative_to(folder))
    return content.getvalue()


def write_json(path: Path, content: object) -> None:
    """Write one of the folder's JSON files, and the folder it is in."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
