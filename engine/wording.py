"""Numbers in sentences."""


def counted(n: int, noun: str) -> str:
    """``1 chunk``, ``2,000 chunks``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
