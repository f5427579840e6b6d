"""Small to big: search small chunks, whose vectors are specific, and return the larger ones around them."""

from ..layers.tracing import Array
from .embedding_spec import Query
from .index import Hit, Index, Place, place_of


def search_parents(index: Index, query: Query, k: int, order: Array | None = None) -> list[Hit]:
    """Return the ``k`` best passages: parents of chunks, and chunks that have none.

    Several of the nearest chunks can have one parent, so the search goes deeper until ``k`` different
    passages are found or there are no more. If no chunk has a parent this is ``index.search``.

    A passage has the place of its best child and the score of the child nearest to the question. With an
    order other than that of cosines these may differ: the score does not depend on the retriever.
    ``order`` is of the rows of the children, as in `Index.search`.
    """
    depth = k
    while True:
        found = index.search(query, depth, order)
        best: dict[Place, Hit] = {}  # of each passage
        for hit in found:
            best.setdefault(place_of(hit.chunk), Hit(hit.chunk.parent or hit.chunk, hit.score))
        passages = list(best.values())[:k]
        if len(passages) >= k or depth >= index.n_searched:
            is_scored = order is None or not any(hit.chunk.parent for hit in found)
            if is_scored:
                return passages
            scored = []
            for hit in passages:
                rows = index.children.get(place_of(hit.chunk), ())
                cosines = index.vectors_of(list(rows)) @ query.vector  # (n_children,)
                scored.append(Hit(hit.chunk, max([hit.score, *cosines.tolist()])))
            return scored
        depth *= 2
