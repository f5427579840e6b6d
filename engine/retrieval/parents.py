"""Small to big: search small chunks, whose vectors are sharp, and answer with the larger ones around them."""

from collections.abc import Sequence

from engine.retrieval.index import Hit, Index
from engine.retrieval.vector_kind import Query


def parent_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Put the parent of each chunk in its place: each passage once, scored as its best child.

    Parameters
    ----------
    hits
        Hits, best first; a chunk without parent stands for itself.

    Returns
    -------
    list of Hit
        In the order of each passage's best hit.
    """
    best: dict[tuple[str, int, int], Hit] = {}
    for hit in hits:
        passage = hit.chunk.parent or hit.chunk
        best.setdefault((passage.document, passage.start, passage.end), Hit(passage, hit.score))
    return list(best.values())


def search_parents(index: Index, query: Query, k: int) -> list[Hit]:
    """Return the ``k`` best passages: parents of chunks, and chunks that have none.

    Several of the nearest chunks can have one parent, so the search goes deeper until ``k`` different
    passages are found or there are no more. Where no chunk has a parent this is ``index.search``.

    Parameters
    ----------
    index
        The index of the children.
    query
        The question.
    k
        Passages wanted.

    Raises
    ------
    InputError
        As `Index.search`: ``k`` below 1, or a query that does not fit the index.
    """
    depth = k
    while True:
        passages = parent_hits(index.search(query, depth))
        if len(passages) >= k or depth >= len(index.chunks):
            return passages[:k]
        depth *= 2
