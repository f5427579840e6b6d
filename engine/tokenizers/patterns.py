"""The regular expressions with which byte-level BPE tokenizers split a text into words."""

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT = r"\p{N}"
# Numbers have up to three digits (Llama 3) or one (Qwen 2); a line break ends the white space before it.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def cut(pattern: regex.Pattern[str], text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the matches within ``text[start:end]``, and of the text between them."""
    spans, done = [], start
    for match in pattern.finditer(text[start:end]):
        first, last = start + match.start(), start + match.end()
        if done < first:
            spans.append((done, first))
        if first < last:
            spans.append((first, last))
        done = last
    return [*spans, (done, end)] if done < end else spans
