"""Folders of small random decoders, which compiled operations support."""

from tests.pytorch import torch, transformers
from tests.tokenizer_files import save_as_filed, small_byte_level

ENDS = {"eos_token_id": 0, "bos_token_id": 0, "pad_token_id": None}
LLAMA_SIZES = {
    "hidden_size": 150,  # not a multiple of any panel
    "head_dim": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 90,
    "max_position_embeddings": 256,
}
GPT2_SIZES = {"n_embd": 128, "n_layer": 2, "n_head": 2, "n_positions": 256, "n_inner": 90}


def random_decoder(config, seed=0):
    """A model whose parameters are all random, those of norms around 1."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        is_scale = name.endswith("weight") and parameter.ndim == 1
        torch.nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    return model


def make_model(folder, family, dtype="float32", seed=0, **sizes):
    """Save a small random model with heads of 64 dimensions, and a tokenizer of single bytes."""
    tokenizer = small_byte_level(n_tokens=257)  # panels are left half empty
    save_as_filed(tokenizer, folder)
    defaults = GPT2_SIZES if family == "gpt2" else LLAMA_SIZES
    config = transformers.AutoConfig.for_model(family, vocab_size=257, **{**defaults, **ENDS, **sizes})
    random_decoder(config, seed).to(getattr(torch, dtype)).save_pretrained(folder)
    return folder
