"""Tokens as HTML: chips with their ids, and a text coloured by a number a token."""

from collections.abc import Sequence
from html import escape

from engine.layers.tracing import Array
from engine.tokenizers.encoding import Encoding
from ui.maps import readable

CHIP = (
    "display:inline-block;margin:2px;padding:2px 6px;border-radius:4px;text-align:center;"
    "font-family:monospace;font-size:13px;line-height:1.35"
)
# Okabe and Ito's colours, thin enough to read through in both themes.
TEXT_TOKEN, SPECIAL_TOKEN, SECOND_TEXT = "#56B4E933", "#E69F0055", "#009E7333"


def token_chips(tokens: Sequence[str], encoding: Encoding, special: Array) -> str:
    """Return a chip for each token: its text above its id, its place in the text where the mouse is."""
    chips = []
    for number, (token, token_id) in enumerate(zip(tokens, encoding.ids, strict=True)):
        start, end = encoding.offsets[number]
        second = encoding.type_ids[number] == 1
        colour = SPECIAL_TOKEN if special[number] else SECOND_TEXT if second else TEXT_TOKEN
        place = f"characters {start}–{end}" if end > start else "stands for no text"
        segment = ", segment 1" if second else ""
        chips.append(
            f'<span title="token {number}, id {token_id}, {place}{segment}" '
            f'style="{CHIP};background:{colour}">{escape(readable(token))}<br>'
            f'<span style="opacity:0.65;font-size:11px">{token_id}</span></span>'
        )
    return "".join(chips)


def text_by_weight(tokens: Sequence[str], weights: Array, chosen: int) -> str:
    """Return the tokens one after the other, each the darker the larger its weight, the chosen one framed."""
    largest = float(weights.max()) or 1.0
    spans = []
    for number, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
        strength = round(float(weight) / largest * 200)
        frame = "outline:2px solid #D55E00;" if number == chosen else ""
        spans.append(
            f'<span title="{number} {escape(token)}: {float(weight):.4f}" '
            f'style="background:#0072B2{strength:02x};{frame}padding:1px 2px;border-radius:3px">'
            f"{escape(readable(token))}</span>"
        )
    return " ".join(spans)
