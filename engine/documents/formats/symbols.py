"""Characters of the fonts Symbol and Wingdings, which have no letters at their codes."""

from collections.abc import Mapping

SYMBOL = {
    **dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True)),
    **dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)),
    **{0x22: "∀", 0x24: "∃", 0x27: "∋", 0x2D: "−", 0x40: "≅", 0x5C: "∴", 0x5E: "⊥", 0x7E: "∼"},
    **dict(zip(range(0xA1, 0xBF), "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯", strict=True)),
    **dict(zip(range(0xC5, 0xD8), "⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅", strict=True)),
    **{0xD8: "¬", 0xD9: "∧", 0xDA: "∨", 0xDB: "⇔", 0xDC: "⇐", 0xDD: "⇑", 0xDE: "⇒", 0xDF: "⇓"},
    **{0xE5: "∑", 0xF2: "∫", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xE1: "⟨", 0xF1: "⟩"},
}
WINGDINGS = {
    **{0xFC: "✔", 0xFB: "✘", 0xFE: "☑", 0xFD: "☒", 0xA8: "☐", 0x6F: "☐", 0x71: "☐", 0x72: "☐", 0x78: "☒"},
    **{0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xD8: "➢", 0x4A: "☺", 0x4C: "☹"},
    **{0x6C: "●", 0x6E: "■", 0x75: "◆", 0x76: "❖", 0x9E: "·", 0x9F: "•", 0xA1: "○", 0xA7: "▪", 0xAB: "★"},
    **{0x28: "☎", 0x29: "✆", 0x2A: "✉", 0x36: "⌛", 0x46: "☞", 0x22: "✂"},
    **dict(zip(range(0x8C, 0x96), "❶❷❸❹❺❻❼❽❾❿", strict=True)),
    **dict(zip(range(0x81, 0x8B), "①②③④⑤⑥⑦⑧⑨⑩", strict=True)),
}
WINGDINGS_2 = {
    **{0x50: "✔", 0x4F: "✘", 0x52: "☑", 0x53: "☒", 0x51: "☒", 0x54: "☒", 0xA3: "☐", 0x97: "●", 0x96: "•"}
}
FONTS: dict[str, Mapping[int, str]] = {"symbol": SYMBOL, "wingdings": WINGDINGS, "wingdings 2": WINGDINGS_2}
PRIVATE = 0xF000  # Office adds it to the codes of these fonts


def symbol(code: int, font: str) -> str:
    """Return the character of a code in a font of symbols, empty for one that is not known."""
    found = FONTS.get(font.lower())
    if found is None:
        return chr(code) if not PRIVATE <= code < PRIVATE + 256 and 32 <= code < 0x110000 else ""
    code -= PRIVATE * (code >= PRIVATE)
    letter = chr(code) if found is SYMBOL and 32 <= code < 127 else ""
    return found.get(code, letter)
