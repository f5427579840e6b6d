"""Equations of Office files (OMML) as text on one line: ``(a+b)/2``, ``x^2``, ``√(x)``, ``∑_(i=1)^n i``."""

from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATION = f"{MATH}oMath"
ROOTS = {"": "√", "2": "√", "3": "∛", "4": "∜"}
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot", "\u20d7": "vec"}


def linear_text(element: Any) -> str:
    """Return the equation below an element as text, with brackets where a fraction or power needs them."""
    return "".join(linear_of(child) for child in element)


def linear_of(element: Any) -> str:
    """Return one object of an equation as text; properties have none."""
    kind = element.tag.removeprefix(MATH) if isinstance(element.tag, str) else ""
    parts = {
        child.tag.removeprefix(MATH): linear_text(child) for child in element if isinstance(child.tag, str)
    }
    base = parts.get("e", "")
    match kind:
        case "t":
            return element.text or ""
        case "f":
            top, bottom = (bracketed(parts.get(part, "")) for part in ("num", "den"))
            return f"{top}/{bottom}" if value_of(element, "type") != "noBar" else f"binom({top}, {bottom})"
        case "sSup" | "sSub" | "sSubSup":
            return bracketed(base) + scripts(parts)
        case "sPre":
            return scripts(parts) + base
        case "rad":
            root = ROOTS.get(parts.get("deg", ""), f"root_{bracketed(parts.get('deg', ''))} ")
            return f"{root}({base})"
        case "nary":
            return f"{value_of(element, 'chr', '∫')}{scripts(parts)} {base}"
        case "d":
            inner = value_of(element, "sepChr", "|").join(
                linear_text(child) for child in element if child.tag == f"{MATH}e"
            )
            return value_of(element, "begChr", "(") + inner + value_of(element, "endChr", ")")
        case "func":
            name = parts.get("fName", "")
            return f"{name}{base if base.startswith('(') else f'({base})'}"
        case "limLow" | "limUpp":
            return f"{base}{'_' if kind == 'limLow' else '^'}{bracketed(parts.get('lim', ''))} "
        case "acc":
            mark = value_of(element, "chr", "\u0302")
            return f"{ACCENTS.get(mark, mark)}({base})"
        case "bar":
            return f"bar({base})"
        case "m" | "eqArr":
            rows = [child for child in element if child.tag in (f"{MATH}mr", f"{MATH}e")]
            cells = [
                [linear_text(cell) for cell in row] if row.tag == f"{MATH}mr" else [linear_text(row)]
                for row in rows
            ]
            return "; ".join(", ".join(row) for row in cells)
    return "" if kind.endswith("Pr") else linear_text(element)


def scripts(parts: dict[str, str]) -> str:
    """Return the lower and the upper part as ``_(i=1)^n``, those that there are."""
    marks = (("_", parts.get("sub", "")), ("^", parts.get("sup", "")))
    return "".join(mark + bracketed(text) for mark, text in marks if text.strip())


def bracketed(text: str) -> str:
    """Return a text in brackets, unless it is one name or number, or has brackets."""
    text = text.strip()
    is_one = text.replace(".", "").replace(",", "").isalnum() or len(text) == 1
    return text if is_one or not text or (text[0] == "(" and text.find(")") == len(text) - 1) else f"({text})"


def value_of(element: Any, name: str, default: str = "") -> str:
    """Return a property of an object, such as the character of its brackets."""
    for found in element.iterfind(f"./*/{MATH}{name}"):
        return str(found.get(f"{MATH}val", ""))
    return default
