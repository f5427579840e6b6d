"""What a user of the worked example sets: switches, and the numbers of its matrices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from engine.errors import InputError
from engine.inspection.worked_example import D_HEAD, EXAMPLE_DIVISOR, Matrices, Options, check_matrix
from ui.answer import escape_markdown

DIVISORS = {"30": EXAMPLE_DIVISOR, "√3": float(np.sqrt(D_HEAD)), "1": 1.0}
NORMS = {"The example's": "example", "Usual": "usual", "None": "none"}
POSITIONS = {"The example's": "example", "The formula's": "formula"}
SEED = 392  # with it, greedy decoding comes to an end by itself, which it does for few
MAX_SEED = 1_000_000

LABELS = {"tokens": "Vectors of Hello and World", "output": "WO"}
LABELS |= {"ffn.w1": "W1", "ffn.b1": "b1", "ffn.w2": "W2", "ffn.b2": "b2"}
LABELS |= {
    f"heads.{i}.{name}": f"{letter} of head {i + 1}"
    for i in range(2)
    for name, letter in (("query", "WQ"), ("key", "WK"), ("value", "WV"))
}
KEYS = ("divisor", "norm", "residual", "positions", "shift", "seed")


@dataclass(frozen=True)
class Chosen:
    """What the switches say."""

    options: Options
    seed: int


def switches() -> Chosen:
    """Draw the switches."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            divisor = st.segmented_control(
                "Scores divided by",
                list(DIVISORS),
                default="30",
                required=True,
                key="worked-divisor",
                persist_state="session",
                help="The paper divides by the root of a head's width, here √3. The example finds that its "
                "softmax is saturated even so, and goes on with 30. 1 leaves the scores as they are.",
            )
            norm = st.segmented_control(
                "Norm",
                list(NORMS),
                default="The example's",
                required=True,
                key="worked-norm",
                persist_state="session",
                help="- **The example's:** (x − mean) / (std + 10⁻⁶)\n"
                "- **Usual:** (x − mean) / √(variance + 10⁻⁵), as libraries do\n"
                "- **None:** leave the norm out",
            )
            positions = st.segmented_control(
                "Positions",
                list(POSITIONS),
                default="The example's",
                required=True,
                key="worked-positions",
                persist_state="session",
                help="The example's rounded numbers, or those of the paper's formula. Section 2 shows both.",
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            residual = st.toggle(
                "Residual",
                True,
                key="worked-residual",
                persist_state="session",
                help="Adds what goes into a part of a block to what comes out of it: x + f(x).",
            )
            shift = st.toggle(
                "Shifted softmax",
                True,
                key="worked-shift",
                persist_state="session",
                help="Takes a row's largest score from all of its scores before exp. The weights stay the "
                "same, but exp of a large number cannot overflow.",
            )
            seed = st.number_input(
                "Seed",
                min_value=0,
                max_value=MAX_SEED,
                value=SEED,
                step=1,
                key="worked-seed",
                persist_state="session",
                width=140,
                help="Of the numbers that the example does not give: the feed-forward matrices, further "
                "blocks, the decoder. All are drawn from a normal distribution.",
            )
            st.button(
                "Back to the example",
                icon=":material/restart_alt:",
                on_click=reset,
                key="worked-reset",
                help="Sets every switch and every number back.",
            )
    options = Options(DIVISORS[divisor], NORMS[norm], residual, POSITIONS[positions], shift)  # type: ignore[arg-type]
    return Chosen(options, int(seed))


def reset() -> None:
    """Forget every switch and every edited number."""
    state = st.session_state
    state["worked-version"] = state.get("worked-version", 0) + 1
    state["worked-edited"] = {}
    for key in KEYS:
        state.pop(f"worked-{key}", None)


def edited(original: Matrices, seed: int) -> Matrices:
    """Return the matrices as they have been edited; those that a seed draws anew are its own."""
    kept = st.session_state.setdefault("worked-edited", {})
    return {name: kept.get(kept_as(name, seed), matrix) for name, matrix in original.items()}


def kept_as(name: str, seed: int) -> str:
    """Name under which an edited matrix is kept."""
    return f"{name}-{seed}" if name.startswith("ffn") else name


def edit(name: str, matrices: Matrices, seed: int) -> bool:
    """Draw a matrix to edit and put what it has become in its place; return whether it is all numbers."""
    state = st.session_state
    key = f"worked-{state.get('worked-version', 0)}-{kept_as(name, seed)}"
    bases = state.setdefault("worked-bases", {})
    if key not in state:  # drawn for the first time, or again after it was out of sight
        bases[key] = matrices[name]
    n_rows, n_columns = bases[key].shape
    st.caption(f"**{LABELS[name]}** · {n_rows} × {n_columns}")
    columns: dict[Any, Any] = {  # by place, the hidden index being the first
        place: st.column_config.NumberColumn(str(place), format="%.6g") for place in range(1, n_columns + 1)
    }
    cells = st.data_editor(
        bases[key],
        hide_index=True,
        column_config=columns,
        key=key,
        alt=f"{LABELS[name]}, to be edited",
    )
    matrices[name] = np.asarray(cells, np.float64)  # NaN where a cell has been emptied
    state["worked-edited"][kept_as(name, seed)] = matrices[name]
    try:
        check_matrix(LABELS[name], matrices[name])
    except InputError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return False
    return True
