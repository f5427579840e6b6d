"""What tokenizing a text gives."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """Tokens of one text.

    ``offsets[i]`` is the span ``(start, end)`` of ``tokens[i]`` in the text, in characters; special
    tokens that stand for no text have an empty span.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)
