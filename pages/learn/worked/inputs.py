"""The inputs of the worked example: its options, and matrices that can be edited."""

from typing import Any

import numpy as np
import streamlit as st

from engine.errors import InputError
from engine.inspection.model.worked_example import D_HEAD, EXAMPLE_DIVISOR, Matrices, Options, check_matrix
from ui.text import show_error
from ui.widgets import choice, kept, more_options

DIVISORS = {"30": EXAMPLE_DIVISOR, "√3": float(np.sqrt(D_HEAD)), "1": 1.0}
NORMS = {"The example's": "example", "Usual": "usual", "None": "none"}
POSITIONS = {"The example's": "example", "The formula's": "formula"}
SEED = 392  # one of the few with which greedy decoding reaches the end token
MAX_SEED = 1_000_000

LABELS = {"tokens": "Vectors of Hello and World", "output": "WO"}
LABELS |= {"ffn.w1": "W1", "ffn.b1": "b1", "ffn.w2": "W2", "ffn.b2": "b2"}
LABELS |= {
    f"heads.{i}.{name}": f"{letter} of head {i + 1}"
    for i in range(2)
    for name, letter in (("query", "WQ"), ("key", "WK"), ("value", "WV"))
}
KEYS = ("divisor", "norm", "residual", "positions", "shift", "seed")


def choose_options() -> tuple[Options, int]:
    """Draw the options of the example; return them and the seed."""
    with st.container(border=True), st.container(horizontal=True, vertical_alignment="bottom"):
        divisor = choice(
            "Scores divided by",
            list(DIVISORS),
            "worked-divisor",
            "The paper divides by the root of a head's width, here √3. The example finds that its "
            "softmax is saturated even so, and continues with 30. 1 leaves the scores unchanged.",
        )
        norm = choice(
            "Norm",
            list(NORMS),
            "worked-norm",
            "- **The example's:** (x − mean) / (std + 10⁻⁶)\n"
            "- **Usual:** (x − mean) / √(variance + 10⁻⁵), as in libraries\n"
            "- **None:** leave the norm out",
        )
        residual = st.toggle(
            "Residual",
            True,
            **kept("worked-residual"),
            help="Adds the input of a part of a block to its output: x + f(x).",
        )
        with more_options():
            positions = choice(
                "Positions",
                list(POSITIONS),
                "worked-positions",
                "The example's rounded numbers, or those of the paper's formula. Section 2 shows both.",
            )
            shift = st.toggle(
                "Shifted softmax",
                True,
                **kept("worked-shift"),
                help="Subtracts a row's largest score from all of its scores before exp. The weights stay "
                "the same, but exp of a large number cannot overflow.",
            )
            seed = st.number_input(
                "Seed",
                min_value=0,
                max_value=MAX_SEED,
                value=SEED,
                **kept("worked-seed"),
                width=140,
                help="For the numbers that the example does not give: the feed-forward matrices, further "
                "blocks, the decoder. All are drawn from a normal distribution.",
            )
        st.button(
            "Back to the example",
            icon=":material/restart_alt:",
            on_click=reset,
            key="worked-reset",
            help="Resets all options and all edited numbers.",
        )
    options = Options(DIVISORS[divisor], NORMS[norm], residual, POSITIONS[positions], shift)  # type: ignore[arg-type]
    return options, int(seed)


def reset() -> None:
    """Reset all options and all edited numbers."""
    state = st.session_state
    state["worked-version"] = state.get("worked-version", 0) + 1
    state["worked-edited"] = {}
    for key in KEYS:
        state.pop(f"worked-{key}", None)


def edited(original: Matrices, seed: int) -> Matrices:
    """Return the matrices with the user's edits; edits of random matrices belong to one seed."""
    kept = st.session_state.setdefault("worked-edited", {})
    return {name: kept.get(edit_key(name, seed), matrix) for name, matrix in original.items()}


def edit_key(name: str, seed: int) -> str:
    """Return the key under which an edited matrix is stored."""
    return f"{name}-{seed}" if name.startswith("ffn") else name


def edit(name: str, matrices: Matrices, seed: int) -> bool:
    """Draw a matrix to edit and put the result into ``matrices``; return whether all cells are valid."""
    state = st.session_state
    key = f"worked-{state.get('worked-version', 0)}-{edit_key(name, seed)}"
    bases = state.setdefault("worked-bases", {})
    if key not in state:  # drawn for the first time, or again after it was hidden
        bases[key] = matrices[name]
    n_rows, n_columns = bases[key].shape
    st.caption(f"**{LABELS[name]}** · {n_rows} × {n_columns}")
    columns: dict[Any, Any] = {  # by place; the hidden index is the first
        place: st.column_config.NumberColumn(str(place), format="%.6g") for place in range(1, n_columns + 1)
    }
    alt = f"{LABELS[name]}, editable"
    cells = st.data_editor(bases[key], hide_index=True, column_config=columns, key=key, alt=alt)
    matrices[name] = np.asarray(cells, np.float64)  # NaN where a cell has been emptied
    state["worked-edited"][edit_key(name, seed)] = matrices[name]
    try:
        check_matrix(LABELS[name], matrices[name])
    except InputError as error:
        show_error(error)
        return False
    return True
