"""Files of chunks with their vectors, made here or elsewhere: .npz and Parquet.

Vectors do not say how they were made, so the model that embeds the questions has to be named; a chunk
is embedded by it again, and its vector has to be the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..documents.document import Chunk, Document
from ..errors import DocumentError, InputError
from ..layers.norm import l2_normalize
from ..limited_process import Limits
from ..limited_reader import LIMITS, read_limited
from ..weights.memory import available_memory
from .embedding_model import Model, embedding_spec, encode_by
from .index import Index, index_vectors
from .vector_rows import MOST_CHARACTERS, READERS, read_rows

LEAST_COSINE = 0.99  # of a chunk's vector with that which the named model makes: float16 stays far above
MOST_APART = 200 * 1024**2  # bytes of a file that is read in a child process: the largest that the app takes


def save_npz(path: Path, index: Index, ids: Sequence[Sequence[int]]) -> None:
    """Write an index, and the token ids of its chunks, to an .npz file that `read_index` reads.

    One row a chunk: ``documents`` (names), ``starts``, ``ends``, ``vectors (n_chunks, d_model)``. The texts
    of all chunks stand one after the other in ``text`` (UTF-8), and ``text_starts`` says where each begins;
    in the same way ``ids`` and ``id_starts`` hold the token ids. ``contexts`` are put before the texts.
    """
    texts = [chunk.text.encode() for chunk in index.chunks]
    np.savez(
        path,
        documents=np.array([chunk.document for chunk in index.chunks]),
        starts=np.array([chunk.start for chunk in index.chunks]),
        ends=np.array([chunk.end for chunk in index.chunks]),
        text=np.frombuffer(b"".join(texts), np.uint8),
        text_starts=np.cumsum([0, *map(len, texts)]),
        ids=np.concatenate([np.asarray(each) for each in ids]),
        id_starts=np.cumsum([0, *map(len, ids)]),
        vectors=index.vectors,
        contexts=np.array([chunk.context for chunk in index.chunks]),
    )


def read_index(
    path: Path,
    model: Model,
    pooling: str | None = None,
    content: bytes | None = None,
    limits: Limits = LIMITS,
) -> Index:
    """Read chunks and vectors, which are scaled to length 1, into an index.

    The file is an .npz that `save_npz` wrote, or a Parquet file with the columns of `COLUMNS`: name of the
    document, its span and text, and a list of numbers. An uploaded file is given by its name and content.
    ``model`` and ``pooling`` are those that made the vectors, as in `build_index`. The file is read in a
    child process with ``limits``, unless it is so large that it can only be one's own. Raises `DocumentError`
    where the file is missing, damaged, of another format, or its rows do not fit together, and `InputError`
    where the vectors were made by another model, or otherwise.
    """
    if path.suffix.lower() not in READERS:
        raise DocumentError(f"{path.name} ends in none of {', '.join(READERS)}: give vectors as one of these")
    if content is None and not path.is_file():
        raise DocumentError(f"there is no file {path}: check the path")
    if content is None:
        if (n_bytes := path.stat().st_size) > (available_memory() or n_bytes):
            raise DocumentError(f"{path.name} has {n_bytes / 1e9:,.0f} GB, over the memory: split it")
        content = path.read_bytes()
    if len(content) <= MOST_APART:
        rows = read_limited(read_rows, path.name, content, limits=limits)
    else:
        rows = read_rows(path.name, content)
    places = zip(rows.documents, rows.starts, rows.ends, rows.texts, strict=True)
    contexts = zip(places, rows.contexts, strict=True)
    chunks = [Chunk(*place, 0, context=context) for place, context in contexts]
    texts, vectors = [chunk.indexed for chunk in chunks], l2_normalize(rows.vectors)
    idf = None
    if pooling == "idf" and (encoder := model.as_encoder) is not None:
        model = encoder.with_idf(texts)
        idf = model.idf
    spec = embedding_spec(model, pooling, None)
    if vectors.shape[1] != spec.d_model:
        raise InputError(
            f"{path.name} holds vectors of {vectors.shape[1]} numbers, and those of {spec} have "
            f"{spec.d_model}: name the model that made them"
        )
    row = next(number for number, text in enumerate(texts) if text.strip())
    [again] = encode_by(spec, "document", [texts[row]], model)  # (d_model,)
    if (cosine := float(vectors[row] @ again)) < LEAST_COSINE:
        raise InputError(
            f"{path.name} does not hold vectors of {spec}: that of chunk {row} has a cosine of {cosine:.3f} "
            f"with the model's, less than {LEAST_COSINE}: name the model, pooling and prompts that made them"
        )
    n_tokens = map(len, model.tokenizer.ids_batch(texts))
    chunks = [replace(chunk, n_tokens=n) for chunk, n in zip(chunks, n_tokens, strict=True)]
    return index_vectors(chunks, vectors, spec, idf, documents_of(chunks, path.name))


def documents_of(chunks: Sequence[Chunk], name: str) -> list[Document]:
    """Return the documents that the chunks of a file are of; what no chunk holds is read as line breaks."""
    texts: dict[str, list[str]] = {chunk.document: [] for chunk in chunks}
    ends = dict.fromkeys(texts, 0)
    n_missing = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.start):
        gap = chunk.start - ends[chunk.document]
        n_missing += max(0, gap)
        if n_missing > MOST_CHARACTERS:
            raise DocumentError(
                f"{name} lacks over {MOST_CHARACTERS:,} characters between its chunks: give starts and ends "
                "that count the characters of each document"
            )
        piece = "\n" * gap + chunk.text[max(0, -gap) :]
        texts[chunk.document].append(piece)
        ends[chunk.document] += len(piece)
    return [Document(document, "".join(pieces)) for document, pieces in texts.items()]
