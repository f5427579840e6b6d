"""The hand-written model against the official one, stage by stage."""

from dataclasses import dataclass
from time import perf_counter

import streamlit as st

from engine.generation.listed_decoders import weight_bytes
from engine.verify import StageCheck, has_official, precision_of
from engine.weights.fetch import Progress
from engine.wording import model_name
from pages.inside.verify.comparison import check_rows, difference_figure, verify
from ui.background import in_background
from ui.export import show_figure
from ui.models import decoder_name, load_decoder, load_encoder
from ui.tables import show_table
from ui.text import escape_markdown
from ui.widgets import check_typed, choice, kept

DEFAULT_TEXT = "The cat sat unhappily on the mat — naïve, perhaps, but 東京 was far away 🙂."
MAX_CHARACTERS = 20_000
START_S, GIGABYTE_S = 6.5, 8.0  # for PyTorch to start, and for a gigabyte of weights
ROUNDING = " That may be rounding: compare in float64, where rounding all but vanishes and a mistake stays."


@dataclass(frozen=True)
class Verified:
    """The result of a comparison."""

    model: str
    n_layers: int
    n_tokens: int
    precision: str
    is_rotated: bool  # of a family that is compared less exactly
    checks: list[StageCheck]
    seconds: float


def draw() -> None:
    """Draw the form of the comparison, and its last result."""
    st.write(
        "The same text goes through this project's NumPy and through sentence-transformers on PyTorch "
        "(transformers for language models), with the same weights. Every array on the way is compared, not "
        "only the final vector."
    )
    encoder = load_encoder()
    names = {"encoder": f"Encoder · {model_name(encoder.name)}", "decoder": f"Decoder · {decoder_name()}"}
    kind = choice("Model", [*names], "verify-model", format_func=lambda kind: escape_markdown(names[kind]))
    is_encoder = kind == "encoder"
    if is_encoder and not has_official(encoder):
        st.info(
            f"{escape_markdown(model_name(encoder.name))} is of a family whose official code comes with its "
            "files, and is never run: there is nothing to compare with. Tests compare the family with its "
            "equations.",
            icon=":material/info:",
        )
        return
    text = st.text_area(
        "Text to compare on",
        DEFAULT_TEXT,
        **kept("verify-text"),
        help="Any text: odd characters, other languages. The first "
        f"{encoder.max_tokens} tokens of it are read by both encoders; decoders read it whole.",
    )
    precision = choice(
        "Precision",
        ["float32", "float64"] if is_encoder else ["float32"],
        "verify-precision" if is_encoder else "verify-decoder-precision",
        "The models run in float32. float64 has twice the digits: differences that shrink with it are "
        "rounding, those that stay would be mistakes.",
    )
    if not check_typed(text, MAX_CHARACTERS).strip():
        st.warning("Type a text first.")
        return
    model = encoder if is_encoder else load_decoder()

    def compare(on_progress: Progress) -> Verified:
        start = perf_counter()
        checks = verify(model, text, precision, on_progress)
        return Verified(
            model_name(model.name),
            model.config.n_layers,
            next(check.n_numbers for check in checks if check.stage == "ids"),
            precision,
            precision_of(model) == "rotated",
            checks,
            perf_counter() - start,
        )

    seconds, key = START_S + GIGABYTE_S * weight_bytes(model) / 1e9, (model.name, text, precision)
    what = "Compare with the official model"
    found = in_background("verify", what, key, seconds, "inside/verify", compare)
    if found is not None:
        show_verified(found)
    else:
        st.caption(
            "PyTorch and the official model run in a process of their own, whose memory, 600 MB and more, is "
            "given back at its end."
        )


def show_verified(verified: Verified) -> None:
    """Draw the result of a comparison: a sentence, a heat map, and the numbers."""
    checks, n_layers = verified.checks, verified.n_layers
    failed = [check for check in checks if not check.passed]
    if failed:
        st.error(
            f"{len(failed)} of {len(checks)} stages differ by more than their tolerance, the first is "
            f"{failed[0].stage}.{ROUNDING if verified.precision == 'float32' else ''}",
            icon=":material/error:",
        )
    else:
        st.success(
            f"All {len(checks)} stages agree with the official model within their tolerance.",
            icon=":material/check_circle:",
        )
    nearest = max(checks, key=lambda check: check.decisive / check.tolerance)
    final = next(check for check in checks if check.stage in ("normalized", "logits"))
    left, right = st.columns(2)
    left.metric(
        "Logits differ by" if final.stage == "logits" else "Final vector differs by",
        f"{final.end_to_end:.1e}",
        help="Largest difference among its numbers, from the text on.",
    )
    right.metric(
        "Nearest to its tolerance",
        f"{nearest.decisive / nearest.tolerance:.0%}",
        help=f"The stage {nearest.stage} uses most of what it is allowed.",
    )
    st.caption(
        f"{escape_markdown(verified.model)} · {verified.n_tokens} tokens · {verified.precision} · "
        f"took {verified.seconds:.1f} s"
    )
    st.markdown("**Largest difference of each stage, layer by layer**")
    show_figure(
        difference_figure(checks, n_layers, verified.precision),
        "difference-by-stage",
        f"Heat map of {len(checks)} differences, the largest {nearest.decisive:.1e} at {nearest.stage}.",
    )
    st.caption(tolerance_note("rotated" if verified.is_rotated else verified.precision))
    with st.expander("All stages as numbers", icon=":material/table:"):
        show_table(check_rows(checks), "The largest difference of every stage, and its tolerance")


def tolerance_note(precision: str) -> str:
    """Return a caption that explains the tolerances."""
    if precision == "rotated":
        return (
            "Rows run from the top of a layer to its end; darker is larger, a cross marks a failure. Each "
            "stage is given the official model's own input, and differences count relative to values and "
            "to root mean squares of rows above 1. 1e-5 is allowed everywhere, in float64 as well: "
            "transformers rotates by positions in float32 and norms by root mean squares in float32, "
            "whatever the precision. Scores with a mask or a bias are not compared, the weights made of them "
            "are. Compiled decoders cache keys in 16 bits: `decode`, their logits, may differ by 2e-2."
        )
    if precision == "float64":
        return (
            "Rows run from the top of a layer to its end; darker is larger. In float64 both sides run from "
            "the text on, and 1e-8 is allowed everywhere: far more than rounding makes (about 1e-15), far "
            "less than any mistake would."
        )
    return (
        "Rows run from the top of a layer to its end; darker is larger, a cross marks a failure. "
        "Each stage is given the official model's own input, so that the rounding of earlier stages does not "
        "add up, and differences count relative to values and to root mean squares of rows above 1. "
        "Allowed are 1e-5, for layer norms 1.9e-6 and, from the text on, for the final vector 1e-6. "
        "Neighbouring float32 numbers near 1 are 1.2e-7 apart."
    )


draw()
