"""Compare every stage of a hand-written encoder with the official model.

The official model runs in a child process, `engine.official_program`, so that PyTorch takes memory during a
comparison only.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from .errors import InputError
from .installed import install_command
from .kernels.primitives import prepare_compiled
from .layers.tracing import Array
from .library_process import LIBRARY_BYTES, Arrays, LibraryProcess, require_library
from .models.encoder import Encoder, check_float32
from .models.encoder_families import JINA
from .models.sentence_transformer_folder import read_modules
from .weights.fetch import model_path

PROGRAM = Path(__file__).with_name("official_program.py")
SECONDS = 120  # of computing, for one text
IDLE_S = 60.0  # in which the next text of a comparison follows
ONE = threading.Lock()  # comparison at a time, for their memory
WHAT = "the official model"

DEFAULT_TEXTS = (
    "Open-source LLMs rock.",
    "The cat sat unhappily on the mat — naïve, perhaps, but 東京 was far away 🙂.",
    "Retrieval fails quietly: a passage is cut at the token limit, and nobody is told. " * 20,
)
STAGE_TOLERANCE = {"float32": 1e-5, "float64": 1e-8}
NORM_TOLERANCE = 1.9e-6
VECTOR_TOLERANCE = 1e-6
COSINE_TOLERANCE = 1e-6
# transformers rotates by cosines of float32, and norms by root mean squares in float32, in every precision.
EXACT = ("bert", "distilbert", "mpnet", "roberta", "xlm-roberta", "camembert")
REMOTE = (JINA, "new")  # families whose official code comes with the files
LAYER_NORM = re.compile(r"embeddings\.output|layers\.\d+\.(attention\.norm|output)")
# The vector of `Encoder.encode`, by compiled kernels where available; all other stages are traced.
ENCODED = "encode"


@dataclass(frozen=True)
class StageCheck:
    """Difference of one stage, by its name in a trace, from the official model's, over all texts."""

    stage: str
    # largest absolute difference when both sides run from the text on: it includes the rounding of all
    # earlier stages
    end_to_end: float
    # largest difference when the stage receives the official model's own input, relative to `scale_of`.
    # Float32 numbers near 30 lie 1.9e-6 apart, and those near 190, which some feed-forward outputs reach,
    # 1.5e-5.
    alone: float
    tolerance: float  # the largest passing ``decisive``
    # compared with the tolerance: ``alone`` for the stages of a float32 model, ``end_to_end`` for its vectors
    # and for everything in float64
    decisive: float
    n_numbers: int  # compared, of all texts

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.decisive <= self.tolerance

    def difference(self, value: float) -> str:
        """Return one of the differences in words."""
        return f"{value:.1e}" if value else f"0, all {self.n_numbers:,} numbers are equal"


class OfficialTrace(Protocol):
    """Returns the official stages of a text, or of a pair."""

    def __call__(self, text: str, pair: str | None = None, max_tokens: int | None = None) -> Arrays:
        """Read at most ``max_tokens``, None for the model's own limit."""


def verify_encoder(
    encoder: Encoder,
    texts: Sequence[str] = DEFAULT_TEXTS,
    official: OfficialTrace | None = None,
) -> list[StageCheck]:
    """Compare every stage on some texts with the official model in the same precision.

    ``official`` is what the `official_model` of this encoder yields, None to run it for this comparison;
    errors are those of `official_model`. Checks come in the order of the forward pass. Tolerances in float32:
    1e-5, for layer norms 1.9e-6, for the final vector, traced (``normalized``) and from ``encode``, 1e-6; in
    float64: 1e-8. ``pooled.pooler.cosine`` is one minus the cosine of the two poolers' outputs and may be
    1e-6. Families other than those of `EXACT` may differ by 1e-5 everywhere and in both precisions.
    """
    check_float32(encoder, "the comparison of every stage")
    if official is None:
        with official_model(encoder) as started:
            return verify_encoder(encoder, texts, started)
    if encoder.compiled:
        prepare_compiled().join()  # compare the kernels that embed documents
    is_exact = encoder.model_type in EXACT
    precision = str(encoder.dtype) if is_exact else "rotated"
    end_to_end: dict[str, float] = {}
    alone: dict[str, float] = {}
    n_numbers: Counter[str] = Counter()
    for text in texts:
        theirs = official(text)
        ours = encoder.trace(text, "mean")
        for stage, array in ours.items():
            if stage in theirs:
                raise_to(end_to_end, stage, difference(array, theirs[stage]))
                n_numbers[stage] += array.size
        encoded = encoder.encode([text], "mean", prompt_name="")[0]
        raise_to(end_to_end, ENCODED, encoded - theirs["normalized"])
        n_numbers[ENCODED] += encoded.size
        if "pooled.pooler" in theirs:
            a, b = (each["pooled.pooler"].astype(np.float64) for each in (ours, theirs))
            cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)  # in float64, which adds no rounding
            raise_to(end_to_end, "pooled.pooler.cosine", 1 - cosine)

        def compare(stage: str, array: Array, theirs: Arrays = theirs) -> Array:
            """Record the difference of the stage, then continue with the official model's value."""
            if stage not in theirs or array.shape != theirs[stage].shape:
                return array
            raise_to(alone, stage, difference(array, theirs[stage]) / scale_of(theirs[stage]))
            return theirs[stage]

        encoder.inspect(ours["ids"].tolist(), compare, "mean")
    return [
        StageCheck(
            stage=stage,
            end_to_end=value,
            alone=alone.get(stage, value),
            tolerance=tolerance(stage, precision),
            decisive=value if is_vector(stage) or precision == "float64" else alone.get(stage, value),
            n_numbers=n_numbers[stage] or 1,
        )
        for stage, value in end_to_end.items()
    ]


def raise_to(largest: dict[str, float], stage: str, differences: Array | float) -> None:
    """Update the largest absolute difference of a stage; one that is not a number counts as infinite."""
    found = float(np.max(np.abs(differences)))  # NaN if any is
    largest[stage] = max(largest.get(stage, 0.0), np.inf if np.isnan(found) else found)


def scale_of(values: Array) -> Array:
    """Return what rounding is relative to: a value, the root mean square of its row, or 1, the largest.

    A small sum of large products is rounded as the large ones of its row are.
    """
    row = np.sqrt(np.mean(np.square(values), axis=-1, keepdims=True))
    return np.maximum(np.maximum(1, np.abs(values)), row)


def difference(ours: Array, theirs: Array) -> Array:
    """Return the element-wise difference; infinite where the shapes differ."""
    return ours - theirs if ours.shape == theirs.shape else np.array(np.inf)


def is_vector(stage: str) -> bool:
    """Whether a stage is a vector of the whole text, after the last layer."""
    return stage.startswith("pooled.") or stage in ("normalized", ENCODED)


def tolerance(stage: str, precision: str) -> float:
    """Return the largest difference allowed for a stage in a precision, or of a family that rotates."""
    if precision == "rotated":
        return STAGE_TOLERANCE["float32"]
    if stage.endswith(".cosine"):
        return COSINE_TOLERANCE
    if stage in ("normalized", ENCODED):
        return min(VECTOR_TOLERANCE, STAGE_TOLERANCE[precision])
    is_norm = LAYER_NORM.fullmatch(stage) is not None
    return min(NORM_TOLERANCE, STAGE_TOLERANCE[precision]) if is_norm else STAGE_TOLERANCE[precision]


def has_official(encoder: Encoder) -> bool:
    """Whether transformers itself has the family of an encoder."""
    return encoder.model_type not in REMOTE


@contextmanager
def official_model(encoder: Encoder) -> Iterator[OfficialTrace]:
    """Run the encoder's files with sentence-transformers in a child process, which ends with the block.

    The function returns the official stages of a text, or of a pair, under the names of `Encoder.trace`, and
    raises `ModelUnavailableError` where the library fails. The errors of the start are those of
    `require_library`, and `InputError` for a family that `has_official` does not know.
    """
    if not has_official(encoder):
        raise InputError(
            f"{Path(encoder.name).name} is of a family whose official code comes with its files, and is "
            "never run: nothing is there to compare with"
        )
    folder, dtype = model_path(encoder.name), str(encoder.dtype)
    modules, config = read_modules(folder), encoder.config
    folder = folder / modules[0][1] if modules else folder
    sizes = {"max_tokens": encoder.max_tokens, "d_model": config.d_model, "n_kv_heads": config.n_kv_heads}
    model = {"folder": str(folder), "dtype": dtype, **sizes}

    def official_trace(text: str, pair: str | None = None, max_tokens: int | None = None) -> Arrays:
        return process.ask(**model, text=text, pair=pair, limit=max_tokens)[1]

    with ONE:
        weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        n_bytes = LIBRARY_BYTES + weights * (2 if dtype == "float64" else 1)  # at most twice the file
        require_library(WHAT, install_command("official"), n_bytes)
        process = LibraryProcess.of(PROGRAM, WHAT, SECONDS, IDLE_S)
        try:
            process.ask(**model)  # loads it
            yield official_trace
        finally:
            process.end()
