"""The encoders that ``benchmarks.encode`` compares, each run in a process of its own.

``python -m benchmarks.encoders NAME MODEL_FOLDER``: loads an encoder, embeds one text, and says so
on standard output; then embeds the texts of each order on standard input, a JSON object a line. Each
imports only what it needs, since memory is part of the comparison.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import CORES, memory

# Texts in; vectors (n_texts, d_model) out.
Encode = Callable[[Sequence[str]], Any]

MAX_TOKENS = 256
BATCH_TEXTS = 32  # what sentence-transformers takes by default


def ours(folder: str, precision: str = "float32") -> Encode:
    """Load Glassbox with compiled kernels."""
    from engine.kernels.primitives import prepare_compiled
    from engine.models.encoder import Encoder

    encoder = Encoder.load(folder, precision=precision)

    def encode(texts: Sequence[str]) -> Any:
        if len(texts) > 1:  # a single text does not wait for the kernels
            prepare_compiled().join()
        return encoder.encode(texts)

    return encode


def ours_numpy(folder: str) -> Encode:
    """Load Glassbox's readable NumPy path."""
    from engine.models.encoder import Encoder

    return Encoder.load(folder, compiled=False).encode


def sentence_transformers(folder: str, dtype: str = "float32") -> Encode:
    """Load sentence-transformers, with the attention it chooses by itself."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    torch.set_num_threads(CORES)
    transformer = modules.Transformer(
        folder, max_seq_length=MAX_TOKENS, model_kwargs={"dtype": getattr(torch, dtype)}
    )
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=BATCH_TEXTS, show_progress_bar=False)


def onnxruntime(folder: str, file: str) -> Encode:
    """Load an exported model with the batching, pooling and normalisation of sentence-transformers.

    Batches are of texts of like length, padded to their longest; the mean is over the tokens.
    """
    import numpy as np
    import onnxruntime as ort
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    options = ort.SessionOptions()
    options.intra_op_num_threads = CORES
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def encode(texts: Sequence[str]) -> Any:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        pooled = []
        for start in range(0, len(order), BATCH_TEXTS):
            rows = order[start : start + BATCH_TEXTS]
            batch = tokenizer.encode_batch([texts[row] for row in rows])
            ids = np.array([encoding.ids for encoding in batch])
            mask = np.array([encoding.attention_mask for encoding in batch])
            [hidden] = session.run(None, {"input_ids": ids, "attention_mask": mask})  # (batch, n, d_model)
            shares = (mask / mask.sum(axis=1, keepdims=True)).astype(np.float32)  # (batch, n)
            pooled.append((hidden * shares[:, :, None]).sum(axis=1))
        vectors = np.concatenate(pooled)[np.argsort(order)]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return encode


def export_onnx(folder: str, target: Path) -> None:
    """Export the model to ``float32.onnx``."""
    import torch
    from transformers import AutoModel

    class HiddenStates(torch.nn.Module):  # type: ignore[misc]
        """The model with its token vectors as the only output."""

        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask"]
    torch.onnx.export(
        HiddenStates(),
        (ids, torch.ones_like(ids)),
        str(target / "float32.onnx"),
        input_names=names,
        output_names=["token_vectors"],
        dynamic_axes={name: {0: "batch", 1: "token"} for name in names},
        opset_version=17,
        dynamo=False,
    )


def quantize_onnx(folder: Path) -> None:
    """Quantise the weights of ``float32.onnx`` to ``int8.onnx``."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(folder / "float32.onnx", folder / "int8.onnx", weight_type=QuantType.QInt8)


def load(name: str, folder: str) -> Encode:
    """Load a contestant by its name."""
    if name == "glassbox, NumPy only":
        return ours_numpy(folder)
    library, dtype = name.split(" ")
    if library == "glassbox":
        return ours(folder, dtype)
    if library == "onnxruntime":
        return onnxruntime(folder, str(Path(os.environ["ONNX_FOLDER"]) / f"{dtype}.onnx"))
    return sentence_transformers(folder, dtype)


def main() -> None:
    """Serve one contestant."""
    name, folder = sys.argv[1:]
    if name == "export":
        export_onnx(folder, Path(os.environ["ONNX_FOLDER"]))
        quantize_onnx(Path(os.environ["ONNX_FOLDER"]))
        return
    encode = load(name, folder)
    encode(["The first text."])
    encode(["Two texts", "for whatever loads lazily."])
    print("{}", flush=True)

    import numpy as np

    for line in sys.stdin:
        order = json.loads(line)
        texts = json.loads(Path(order["texts"]).read_text(encoding="utf-8"))
        start = time.perf_counter()
        vectors = encode(texts)
        seconds = time.perf_counter() - start
        np.save(order["vectors"], vectors)
        print(json.dumps({"seconds": seconds, "peak_mb": memory("VmHWM")}), flush=True)


if __name__ == "__main__":
    main()
