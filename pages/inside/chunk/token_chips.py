"""Tokens as HTML chips with their ids."""

from collections.abc import Sequence
from html import escape

from engine.layers.tracing import Array
from engine.tokenizers.encoding import Encoding
from ui.colours import FAINT, SECOND_TEXT_TOKEN, SPECIAL_TOKEN, TEXT_TOKEN
from ui.tokens import visible_blanks

CHIP = (
    "display:inline-block;margin:2px;padding:2px 6px;border-radius:4px;text-align:center;"
    "font-family:monospace;font-size:13px;line-height:1.35"
)


def token_chips(tokens: Sequence[str], encoding: Encoding, special: Array) -> str:
    """Return a chip for each token: its text above its id, its place in the text where the mouse is."""
    chips = []
    for number, (token, token_id) in enumerate(zip(tokens, encoding.ids, strict=True)):
        start, end = encoding.offsets[number]
        second = encoding.type_ids[number] == 1
        colour = SPECIAL_TOKEN if special[number] else SECOND_TEXT_TOKEN if second else TEXT_TOKEN
        place = f"characters {start}–{end}" if end > start else "stands for no text"
        segment = ", segment 1" if second else ""
        chips.append(
            f'<span title="token {number}, id {token_id}, {place}{segment}" '
            f'style="{CHIP};background:{colour}">{escape(visible_blanks(token))}<br>'
            f'<span style="{FAINT};font-size:11px">{token_id}</span></span>'
        )
    return "".join(chips)
