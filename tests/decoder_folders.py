"""Folders of small random decoders, which compiled operations support."""


def make_model(folder, family, dtype="float32", seed=0, **sizes):
    """Save a small random model with heads of 64 dimensions, and a tokenizer of single bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        AutoModelForCausalLM,
        Gemma3TextConfig,
        GPT2Config,
        LlamaConfig,
        MistralConfig,
        Phi3Config,
        Qwen2Config,
        Qwen3Config,
        SmolLM3Config,
    )

    ends = {"eos_token_id": 0, "bos_token_id": 0, "pad_token_id": None}
    tokens = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]  # 257: panels are left half empty
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    if family == "gpt2":
        defaults = {"n_embd": 128, "n_layer": 2, "n_head": 2, "n_positions": 256, "n_inner": 90}
        config = GPT2Config(vocab_size=len(tokens), **{**defaults, **ends, **sizes})
    else:
        defaults = {
            "hidden_size": 150,  # not a multiple of any panel
            "head_dim": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "intermediate_size": 90,
            "max_position_embeddings": 256,
        }
        llamas = (LlamaConfig, MistralConfig, Phi3Config, Qwen2Config, Qwen3Config, SmolLM3Config)
        kind = {config.model_type: config for config in (*llamas, Gemma3TextConfig)}[family]
        config = kind(vocab_size=len(tokens), **{**defaults, **ends, **sizes})
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    for name, parameter in model.named_parameters():
        is_scale = name.endswith("weight") and parameter.ndim == 1
        torch.nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return folder
