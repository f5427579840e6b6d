"""A decoder's files: its weights, tokenizer, chat template and special tokens."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelFileError
from ..models.decoders import DecoderConfig, DecoderWeights, read_folder_model, read_gguf_model
from ..tokenizers.bpe import BPETokenizer
from ..tokenizers.encoding import check_vocab_size
from ..weights.gguf_file import GGUF
from ..weights.tensors import damaged_files, read_optional, read_text, shortened

MAX_TEMPLATE = 1024**2  # bytes of a chat template; those of models that call tools have some 20,000
GGUF_SPECIAL = ("bos", "eos", "eot")  # tokens that begin a text, and that end it


@dataclass(frozen=True)
class DecoderFiles:
    """The contents of a decoder's files, by the fields of `engine.generation.decoder.Decoder`."""

    config: DecoderConfig
    weights: DecoderWeights
    tokenizer: BPETokenizer
    chat_template: str | None
    bos_id: int | None
    start_ids: tuple[int, ...]
    end_ids: frozenset[int]


def read_gguf(path: Path, compiled: bool) -> DecoderFiles:
    """Read a .gguf file."""
    with damaged_files(path):
        file = GGUF(path)
        config, weights = read_gguf_model(file, compiled)
        tokenizer = BPETokenizer.from_gguf(file)
        bos, *ends = (special_id(file.get(f"tokenizer.ggml.{k}_token_id"), k, config) for k in GGUF_SPECIAL)
        template = checked_template(file.get("tokenizer.chat_template"), path)
        return DecoderFiles(
            config=config,
            weights=weights,
            tokenizer=tokenizer,
            chat_template=template,
            bos_id=bos,
            start_ids=tokenizer.start_ids,
            end_ids=frozenset(end for end in ends if end is not None),
        )


def read_folder(folder: Path, compiled: bool) -> DecoderFiles:
    """Read a folder with config.json, model.safetensors and tokenizer.json."""
    with damaged_files(folder):
        config, weights = read_folder_model(folder, compiled)
        tokenizer = BPETokenizer.from_json(folder / "tokenizer.json")
        check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
        model, generation, chat = (
            read_optional(folder / file)
            for file in ("config.json", "generation_config.json", "tokenizer_config.json")
        )
        bos = special_id(model.get("bos_token_id"), "bos", config)
        end = generation.get("eos_token_id", model.get("eos_token_id"))
        ends = [special_id(one, "eos", config) for one in (end if isinstance(end, list) else [end])]
        return DecoderFiles(
            config=config,
            weights=weights,
            tokenizer=tokenizer,
            chat_template=folder_template(folder, chat.get("chat_template")),
            bos_id=bos,
            start_ids=tokenizer.start_ids,
            end_ids=frozenset(one for one in ends if one is not None),
        )


def folder_template(folder: Path, setting: object) -> str | None:
    """Return the chat template of a folder: a file of its own, or the setting of tokenizer_config.json."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return read_text(path, MAX_TEMPLATE)
    if isinstance(setting, list):  # several by their names
        setting = {entry["name"]: entry["template"] for entry in setting}.get("default")
    return checked_template(setting, folder)


def checked_template(setting: object, path: Path) -> str | None:
    """Return a chat template, or None; raise `ModelFileError` for anything but a text of up to 1 MB."""
    if not isinstance(setting, str | None) or len(setting or "") > MAX_TEMPLATE:
        raise ModelFileError(
            f"the chat template of {path} is {shortened(setting)}, no text of up to 1 MB: download it again"
        )
    return setting


def special_id(value: object, name: str, config: DecoderConfig) -> int | None:
    """Return the id of a special token, None where a model has none."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < config.vocab_size:
        raise ModelFileError(
            f"the model's {name} token is {shortened(value)}, not an id below {config.vocab_size}: "
            "download it again"
        )
    return value
