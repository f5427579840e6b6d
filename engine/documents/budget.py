"""What a model reads of a chunk, and what it never sees."""

from collections.abc import Sequence

from engine.documents.document import Chunk


def over_limit(chunks: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Chunks with more tokens than the model reads: the rest of each is silently lost."""
    return [chunk for chunk in chunks if chunk.n_tokens > max_tokens]


def limit_warning(chunks: Sequence[Chunk], max_tokens: int) -> str | None:
    """Say what is lost where chunks pass the model's limit, and how to mend it; None where nothing is."""
    long = over_limit(chunks, max_tokens)
    if not long:
        return None
    lost = sum(chunk.n_tokens - max_tokens for chunk in long)
    return (
        f"{len(long)} of {len(chunks)} chunks have more than the {max_tokens} tokens the model reads, the "
        f"longest {max(chunk.n_tokens for chunk in long)}: {lost} tokens would never be searched. "
        f"Lower the chunk size to {max_tokens}."
    )
