"""The regular expressions with which byte-level BPE tokenizers split a text into words."""

import math
from collections.abc import Iterator

import regex

from ..errors import ModelFileError

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
# Words begin with capitals and go on in small letters; GPT-4o's include an English ending such as 's.
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ADDED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALL}+{ADDED}|[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALL}*{ADDED}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALL}+|[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALL}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


BLANK = "▁"  # for a space, in SentencePiece
# A word with all spaces before it, or with one.
WORD_WITH_BLANKS = f"{BLANK}+[^{BLANK}]*|[^{BLANK}]+"
WORD_WITH_BLANK = f"{BLANK}[^{BLANK}]*|[^{BLANK}]+"
BLANK_RUN = " {2,}"  # which SentencePiece makes one
# They take time linear in the text; patterns of other files may take time exponential in it.
KNOWN = frozenset((GPT2, DIGIT, LLAMA3, QWEN2, BLANK_RUN, WORD_WITH_BLANK, WORD_WITH_BLANKS))
MAX_PATTERN, MAX_REPEATS = 2000, 1000  # characters, and the product of all counts such as {1,3}
COUNT = regex.compile(r"\{(\d*),?(\d*)\}")
MAX_SECONDS, CHARACTERS_A_SECOND = 2.0, 500_000


def compiled(expression: str) -> regex.Pattern[str]:
    """Compile a pattern of a model's file."""
    if expression in KNOWN:
        return regex.compile(expression)
    counts = [number for pair in COUNT.findall(expression) for number in pair if number]
    if len(expression) > MAX_PATTERN or any(len(number) > 4 for number in counts):
        raise regex.error(f"it has over {MAX_PATTERN} characters, or counts over 9999")
    if math.prod(max(int(number), 1) for number in counts) > MAX_REPEATS:
        raise regex.error(f"its parts are repeated over {MAX_REPEATS} times")
    return regex.compile(expression)


def matches(pattern: regex.Pattern[str], text: str) -> Iterator[regex.Match[str]]:
    """Yield the matches in a text."""
    if pattern.pattern in KNOWN:
        yield from pattern.finditer(text)
        return
    seconds = MAX_SECONDS + len(text) / CHARACTERS_A_SECOND
    try:
        yield from pattern.finditer(text, timeout=seconds)
    except TimeoutError as error:
        raise ModelFileError(
            f"the pattern {pattern.pattern[:60]!r} of the tokenizer takes over {seconds:.0f} s for a text of "
            f"{len(text)} characters: use another model"
        ) from error


def cut(pattern: regex.Pattern[str], text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the matches within ``text[start:end]``, and of the text between them."""
    spans, done = [], start
    for match in matches(pattern, text[start:end]):
        first, last = start + match.start(), start + match.end()
        if done < first:
            spans.append((done, first))
        if first < last:
            spans.append((first, last))
        done = last
    return [*spans, (done, end)] if done < end else spans
