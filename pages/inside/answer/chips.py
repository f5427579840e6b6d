"""The tokens of an answer as clickable chips; a stronger colour marks a less probable token."""

from collections.abc import Sequence

import streamlit as st

from engine.generation.generated_token import GeneratedToken
from ui.colours import ORANGE, STRONGEST
from ui.tokens import visible_blanks

CSS = f"""
.tokens {{ display: flex; flex-wrap: wrap; gap: 4px; }}
button {{
  font: 14px/1.5 var(--st-code-font); color: var(--st-text-color); padding: 2px 6px; cursor: pointer;
  border: 1px solid color-mix(in srgb, var(--st-text-color) 25%, transparent); border-radius: 4px;
  background: color-mix(in srgb, {ORANGE} var(--doubt), transparent); overflow-wrap: anywhere;
}}
button:hover {{ border-color: var(--st-primary-color); }}
button:focus-visible {{ outline: 2px solid var(--st-primary-color); outline-offset: 2px; }}
button[aria-pressed=true] {{ box-shadow: 0 0 0 2px var(--st-primary-color); font-weight: 700; }}
"""
# The model's text becomes text nodes, never markup. One chip takes part in Tab order; arrow keys move focus
# to its neighbours.
JS = """
export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".tokens");
  const chips = data.chips.map((chip, number) => {
    const button = document.createElement("button");
    button.textContent = chip.text;
    button.title = chip.title;
    button.setAttribute("aria-label", chip.title);
    button.setAttribute("aria-pressed", number === data.chosen);
    button.tabIndex = number === data.chosen ? 0 : -1;
    button.style.setProperty("--doubt", chip.doubt + "%");
    button.onclick = () => setStateValue("chosen", number);
    button.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) chips[Math.min(Math.max(number + step, 0), chips.length - 1)].focus();
    };
    return button;
  });
  const focused = [...box.children].indexOf(box.getRootNode().activeElement);
  box.replaceChildren(...chips);
  if (focused >= 0) chips[Math.min(focused, chips.length - 1)].focus();
}
"""

chips = st.components.v2.component(
    "glassbox_token_chips",
    html='<div class="tokens" role="group" aria-label="Tokens of the answer"></div>',
    css=CSS,
    js=JS,
)


def token_choice(
    steps: Sequence[GeneratedToken], probabilities: Sequence[float], key: str, first: int
) -> int:
    """Draw the tokens of an answer and return the one that was clicked, ``first`` until then."""
    state = st.session_state.get(key) or {}
    chosen = state.get("chosen")
    result = chips(
        data={
            "chosen": first if chosen is None else chosen,
            "chips": [
                {
                    "text": token_label(step),
                    "title": f"token {number}: {token_label(step)}, probability {probability:.1%}",
                    "doubt": round(100 * STRONGEST * (1 - probability)),
                }
                for number, (step, probability) in enumerate(zip(steps, probabilities, strict=True))
            ],
        },
        default={"chosen": first},
        key=key,
        on_chosen_change=lambda: None,
    )
    return int(first if result.chosen is None else result.chosen)


def token_label(step: GeneratedToken) -> str:
    """Return a token's label: white space made visible, the end of the answer named."""
    if step.finish_reason == "stop" and not step.text:
        return "■ end"
    return visible_blanks(step.text) if step.text else "…"
