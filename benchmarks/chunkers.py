"""The splitters that ``benchmarks.chunk`` compares, each run in a process of its own.

``python -m benchmarks.chunkers NAME MODEL_FOLDER``: loads a splitter and says so on standard output; then
splits the texts of each order on standard input, a JSON object a line. Each imports only what it needs, since
memory is part of the comparison.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import memory

# Documents in; the number of their chunks out.
Split = Callable[[Sequence[str]], int]

CHUNK_TOKENS, OVERLAP, N_SPECIAL = 128, 16, 2


def ours(folder: str) -> Split:
    """Load Glassbox."""
    from engine.documents.document import Document
    from engine.documents.splitters import Splitting, split
    from engine.documents.word_tokens import WORD_CACHES
    from engine.tokenizers.wordpiece import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(Path(folder) / "tokenizer.json")
    splitting = Splitting("fixed", CHUNK_TOKENS, OVERLAP)
    tokenizer.ids_batch([""])  # loads the compiled library

    def split_all(texts: Sequence[str]) -> int:
        WORD_CACHES.clear()  # of the round before
        return sum(len(split(Document("d", text), tokenizer, splitting)) for text in texts)

    return split_all


def tokenizers_library(folder: str) -> Any:
    """Load the same tokenizer in the library that the peers call."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def langchain(folder: str) -> Split:
    """Load LangChain's splitter by tokens."""
    from langchain_text_splitters.base import (  # type: ignore[import-not-found,unused-ignore]
        Tokenizer,
        split_text_on_tokens,
    )

    library = tokenizers_library(folder)
    tokenizer = Tokenizer(
        chunk_overlap=OVERLAP,
        tokens_per_chunk=CHUNK_TOKENS - N_SPECIAL,
        decode=library.decode,
        encode=lambda text: library.encode(text, add_special_tokens=False).ids,
    )
    return lambda texts: sum(len(split_text_on_tokens(text=text, tokenizer=tokenizer)) for text in texts)


def chonkie(folder: str) -> Split:
    """Load Chonkie's splitter by tokens."""
    from chonkie import TokenChunker  # type: ignore[import-not-found,unused-ignore]

    chunker = TokenChunker(tokenizers_library(folder), CHUNK_TOKENS - N_SPECIAL, OVERLAP)
    return lambda texts: sum(len(chunker.chunk(text)) for text in texts)


def tokens_alone(folder: str) -> Split:
    """Load the library alone, which tokenizes all lines on all cores and keeps nothing."""
    library = tokenizers_library(folder)
    return lambda texts: sum(len(library.encode_batch_fast(text.split("\n"))) for text in texts)


CONTESTANTS: dict[str, Callable[[str], Split]] = {
    "glassbox": ours,
    "langchain": langchain,
    "chonkie": chonkie,
    "tokenizers alone": tokens_alone,
}


def serve(name: str, folder: str) -> None:
    """Load a splitter, then answer orders."""
    split = CONTESTANTS[name](folder)
    split(["A first text."])
    print(json.dumps({"idle_mb": memory("VmRSS")}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        text, n_documents = Path(order["path"]).read_text(encoding="utf-8"), order["documents"]
        size = -(-len(text) // n_documents)
        texts = [text[start : start + size] for start in range(0, len(text), size)]
        begin = time.perf_counter()
        n_chunks = split(texts)
        seconds = time.perf_counter() - begin
        print(json.dumps({"s": seconds, "chunks": n_chunks, "peak_mb": memory("VmHWM")}), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
