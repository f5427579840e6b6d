"""Small to big: search small chunks, whose vectors are specific, and return the larger ones around them."""

from collections.abc import Sequence

from engine.documents.document import Chunk
from engine.layers.tracing import Array
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import Hit, Index


def parent_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Replace chunks by their parents: each passage once, with the score of its best child.

    Parameters
    ----------
    hits
        Hits, best first; a chunk without parent stays.

    Returns
    -------
    list of Hit
        In the order of each passage's best hit.
    """
    best: dict[tuple[str, int, int], Hit] = {}
    for hit in hits:
        best.setdefault(place_of(hit.chunk), Hit(hit.chunk.parent or hit.chunk, hit.score))
    return list(best.values())


def place_of(chunk: Chunk) -> tuple[str, int, int]:
    """Return the place of a chunk's passage: its parent, or the chunk itself if it has none."""
    passage = chunk.parent or chunk
    return passage.document, passage.start, passage.end


def search_parents(index: Index, query: Query, k: int, order: Array | None = None) -> list[Hit]:
    """Return the ``k`` best passages: parents of chunks, and chunks that have none.

    Several of the nearest chunks can have one parent, so the search goes deeper until ``k`` different
    passages are found or there are no more. If no chunk has a parent this is ``index.search``.

    A passage has the place of its best child and the score of the child nearest to the question. With an
    order other than that of cosines these may differ: the score does not depend on the retriever.

    Parameters
    ----------
    index
        The index of the children.
    query
        The question.
    k
        Passages wanted.
    order
        Rows of the children, best first, as in `Index.search`.

    Raises
    ------
    InputError
        As `Index.search`: ``k`` below 1, or a query that does not fit the index.
    """
    depth = k
    while True:
        passages = parent_hits(index.search(query, depth, order))[:k]
        if len(passages) >= k or depth >= len(index.chunks):
            return passages if order is None else nearest_scores(passages, index, query)
        depth *= 2


def nearest_scores(passages: Sequence[Hit], index: Index, query: Query) -> list[Hit]:
    """Give each passage the score of the nearest of all its children."""
    best = {place_of(hit.chunk): hit.score for hit in passages}
    cosines = index.scores(query).tolist()  # (n_chunks,)
    for chunk, cosine in zip(index.chunks, cosines, strict=True):
        if chunk.parent is not None and (place := place_of(chunk)) in best:
            best[place] = max(best[place], cosine)
    return [Hit(hit.chunk, best[place_of(hit.chunk)]) for hit in passages]
