"""What llama.cpp makes of random GGUF files: `python -m tests.llama_cpp_answers` writes ANSWERS anew.

It needs what benchmarks/requirements.txt installs. The files are those of `FAMILIES` that llama.cpp reads as
transformers does: it leaves the windows of Mistral and Phi-3 out, and refuses SmolLM3 with biases.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from tests.engine.models.test_decoder_families import CAPPED, GEMMA3, TEXT, random_model, write_gguf
from tests.tokenizer_files import small_byte_level

ANSWERS = Path(__file__).parent / "engine" / "models" / "llama_cpp_answers.json"
N_NEW = 12
KINDS = {
    "llama": ("llama", {}),
    "llama with biases": ("llama", {"attention_bias": True, "num_key_value_heads": 4}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    "qwen3": ("qwen3", {"head_dim": 14, "hidden_size": 36, "num_attention_heads": 6}),
    "mistral": ("mistral", {"sliding_window": None, "tie_word_embeddings": True}),
    "smollm3": ("smollm3", {"num_hidden_layers": 4, "tie_word_embeddings": False}),
    "phi3": ("phi3", {"sliding_window": None, "rope_parameters": {"partial_rotary_factor": 0.5}}),
    "gemma3": ("gemma3_text", GEMMA3),
    "gemma3 with a bound of the logits": ("gemma3_text", GEMMA3 | CAPPED),
    "gpt2": ("gpt2", {}),
}


def write_file(path, name, tokenizer):
    """Write the random model of a kind, the same one every time."""
    kind, sizes = KINDS[name]
    write_gguf(path, random_model(tokenizer, kind, **sizes), tokenizer)


def answers(path, ids):
    """The greedy tokens after ``ids``, and the logits behind the last of ``ids``."""
    import llama_cpp

    model = llama_cpp.Llama(str(path), n_ctx=64, n_threads=1, type_k=0, type_v=0, verbose=False)
    tokens, rows, unread = [], [], ids
    for _ in range(N_NEW):
        model.eval(unread)
        last = llama_cpp.llama_get_logits_ith(model.ctx, -1)
        rows.append(np.ctypeslib.as_array(last, (model.n_vocab(),)).copy())
        unread = [int(rows[-1].argmax())]
        tokens += unread
    return {"tokens": tokens, "logits": [round(float(logit), 5) for logit in rows[0]]}


def main():
    tokenizer = small_byte_level()
    ids, found = tokenizer.encode(TEXT).ids, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in KINDS:
            write_file(Path(folder) / "model.gguf", name, tokenizer)
            found[name] = answers(Path(folder) / "model.gguf", ids)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items())
    ANSWERS.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
