"""Compare every stage of a hand-written encoder or decoder with the official model.

The official model runs in a child process, `engine.official_program`, so that PyTorch takes memory during a
comparison only.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import InputError
from .generation.decoder import Decoder
from .installed import install_command
from .kernels.primitives import prepare_compiled
from .layers.linear import linear
from .layers.tracing import Array, Tracer
from .library_process import LIBRARY_BYTES, Arrays, LibraryProcess, Values, require_library
from .models.decoders import capped, forward_module
from .models.encoder import Encoder, check_float32
from .models.encoder_families import JINA
from .models.sentence_transformer_folder import read_modules
from .weights.fetch import model_path
from .weights.gguf_parts import PART_NAME
from .wording import model_name

PROGRAM = Path(__file__).with_name("official_program.py")
SECONDS = 120  # of computing, for one text
IDLE_S = 60.0  # in which the next text of a comparison follows
ONE = threading.Lock()  # comparison at a time, for their memory
WHAT = "the official model"
# Returns the stages of a text; of encoders also of a pair, and of at most so many tokens, None for all.
OfficialTrace = Callable[..., Arrays]

DEFAULT_TEXTS = (
    "Open-source LLMs rock.",
    "The cat sat unhappily on the mat — naïve, perhaps, but 東京 was far away 🙂.",
    "Retrieval fails quietly: a passage is cut at the token limit, and nobody is told. " * 20,
)
STAGE_TOLERANCE = {"float32": 1e-5, "float64": 1e-8}
NORM_TOLERANCE = 1.9e-6
VECTOR_TOLERANCE = 1e-6
# transformers rotates by cosines of float32, and norms by root mean squares in float32, in every precision.
EXACT = ("bert", "distilbert", "mpnet", "roberta", "xlm-roberta", "camembert")
REMOTE = (JINA, "new")  # families whose official code comes with the files
LAYER_NORM = re.compile(r"embeddings\.output|layers\.\d+\.(attention\.norm|output)")
# By compiled kernels where available; all other stages are traced: the vector of `Encoder.encode`, and the
# logits of `Decoder.logits`. Those kernels cache keys and values in 16 bits, and round what packed matrices
# multiply.
ENCODED, DECODED = "encode", "decode"
DECODED_TOLERANCE = 2e-2


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


def verify_model(
    model: Encoder | Decoder, texts: Sequence[str] | None = None, official: OfficialTrace | None = None
) -> list[StageCheck]:
    """Compare every stage on some texts with the official model in the same precision.

    ``texts`` are by default `DEFAULT_TEXTS`, for decoders, whose traces are large, the two short ones.
    ``official`` is what the `official_model` of this model yields, None to run it for this comparison; errors
    are those of `official_model`. Checks come in the order of the forward pass. Tolerances in float32:
    1e-5, for layer norms 1.9e-6, for the final vector, traced (``normalized``) and from ``encode``, 1e-6; in
    float64: 1e-8. Families other than those of `EXACT`, and decoders, may differ by 1e-5 everywhere and in
    both precisions, the logits of compiled kernels (``decode``) by 2e-2.
    """
    if isinstance(model, Encoder):
        check_float32(model, "the comparison of every stage")
    texts = texts or (DEFAULT_TEXTS if isinstance(model, Encoder) else DEFAULT_TEXTS[:2])
    if official is None:
        with official_model(model) as started:
            return verify_model(model, texts, started)
    if isinstance(model, Encoder) and model.compiled:
        prepare_compiled().join()  # compare the kernels that embed documents
    precision = precision_of(model)
    end_to_end: dict[str, float] = {}
    alone: dict[str, float] = {}
    n_numbers: Counter[str] = Counter()
    for text in texts:
        theirs = official(text)
        ours = model.trace(text, "mean") if isinstance(model, Encoder) else model.trace(text)
        for stage, array in ours.items():
            if stage in theirs:
                raise_to(end_to_end, stage, difference(array, theirs[stage]))
                n_numbers[stage] += array.size
        if isinstance(model, Encoder):
            name, found = ENCODED, model.encode([text], "mean", prompt_name="")[0]
            expected = theirs["normalized"]
        else:
            name, found, expected = DECODED, model.logits(ours["ids"].tolist()), theirs["logits"]
        raise_to(end_to_end, name, difference(found, expected))
        n_numbers[name] += found.size
        if name == DECODED:
            raise_to(alone, name, difference(found, expected) / scale_of(expected))

        def compare(stage: str, array: Array, theirs: Arrays = theirs) -> Array:
            """Record the difference of the stage, then continue with the official model's value."""
            if stage not in theirs or array.shape != theirs[stage].shape:
                return array
            raise_to(alone, stage, difference(array, theirs[stage]) / scale_of(theirs[stage]))
            return theirs[stage]

        run(model, ours["ids"].tolist(), compare)
    # vectors of the whole text, after the last layer
    whole = {"normalized", ENCODED, *(stage for stage in end_to_end if stage.startswith("pooled."))}
    return [
        StageCheck(
            stage=stage,
            end_to_end=value,
            alone=alone.get(stage, value),
            tolerance=tolerance(stage, precision),
            decisive=value if stage in whole or precision == "float64" else alone.get(stage, value),
            n_numbers=n_numbers[stage] or 1,
        )
        for stage, value in end_to_end.items()
    ]


def precision_of(model: Encoder | Decoder) -> str:
    """Return float32 or float64, or ``rotated`` for what compares less exactly than `EXACT` families."""
    is_exact = isinstance(model, Encoder) and model.model_type in EXACT
    return str(model.weights.token_table.dtype) if is_exact else "rotated"


def run(model: Encoder | Decoder, ids: Sequence[int], trace: Tracer) -> None:
    """Run a text under a tracer, by NumPy only."""
    if isinstance(model, Encoder):
        model.inspect(ids, trace, "mean")
    else:
        hidden = model.inspect(ids, trace)
        trace("logits", capped(linear(hidden, model.weights.unembedding), model.config))


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


def tolerance(stage: str, precision: str) -> float:
    """Return the largest difference allowed for a stage in a precision, or of a family that rotates."""
    if stage == DECODED:
        return DECODED_TOLERANCE
    if precision == "rotated":
        return STAGE_TOLERANCE["float32"]
    if stage in ("normalized", ENCODED):
        return min(VECTOR_TOLERANCE, STAGE_TOLERANCE[precision])
    is_norm = LAYER_NORM.fullmatch(stage) is not None
    return min(NORM_TOLERANCE, STAGE_TOLERANCE[precision]) if is_norm else STAGE_TOLERANCE[precision]


def has_official(model: Encoder | Decoder) -> bool:
    """Whether transformers itself has the family of a model."""
    return isinstance(model, Decoder) or model.model_type not in REMOTE


@contextmanager
def official_model(model: Encoder | Decoder) -> Iterator[OfficialTrace]:
    """Run a model's files with sentence-transformers, or transformers, in a child process.

    It ends with the block. The function returns the official stages of a text, or of a pair, under the names
    of `Encoder.trace` and `Decoder.trace`, and raises `ModelUnavailableError` where the library fails. The
    errors of the start are those of `require_library`, and `InputError` for a family that `has_official` does
    not know.
    """
    if not has_official(model):
        raise InputError(
            f"{model_name(model.name)} is of a family whose official code comes with its files, and is "
            "never run: nothing is there to compare with"
        )
    path = model_path(model.name)
    settings, n_bytes = (
        encoder_request(model, path) if isinstance(model, Encoder) else decoder_request(model, path)
    )
    settings["n_kv_heads"] = model.config.n_kv_heads

    def official_trace(text: str, pair: str | None = None, max_tokens: int | None = None) -> Arrays:
        return process.ask(**settings, text=text, pair=pair, limit=max_tokens)[1]

    with ONE:
        require_library(WHAT, install_command("official"), LIBRARY_BYTES + n_bytes)
        process = LibraryProcess.of(PROGRAM, WHAT, SECONDS, IDLE_S)
        try:
            process.ask(**settings)  # loads it
            yield official_trace
        finally:
            process.end()


def encoder_request(encoder: Encoder, folder: Path) -> tuple[Values, int]:
    """Return what tells the program to load an encoder's files, and the bytes of its weights at most."""
    modules, dtype = read_modules(folder), str(encoder.dtype)
    folder = folder / modules[0][1] if modules else folder
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    request = {"max_tokens": encoder.max_tokens, "d_model": encoder.config.d_model, "dtype": dtype}
    return {"folder": str(folder), **request}, weights * (2 if dtype == "float64" else 1)


def decoder_request(decoder: Decoder, path: Path) -> tuple[Values, int]:
    """Return what tells the program to load a decoder's files, and the bytes of its weights."""
    folder, file = (path, None) if path.is_dir() else (path.parent, path.name)
    if file and PART_NAME.fullmatch(file):
        raise InputError(f"{WHAT} reads no model in several GGUF files: merge them by gguf-split --merge")
    n_bytes = 4 * forward_module(decoder.config).parameter_count(decoder.config)
    return {"folder": str(folder), "gguf": file}, n_bytes
