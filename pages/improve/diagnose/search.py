"""What is searched, and how, when a passage is diagnosed."""

from dataclasses import dataclass
from typing import Any

from engine.documents.document import Document
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import Index
from ui.chunk_settings import Cut, cut_values
from ui.models import reranker_name


@dataclass(frozen=True)
class Search:
    """Documents, their index, and how it is searched: the first ``k`` chunks count as found."""

    documents: tuple[Document, ...]
    model: Model
    cut: Cut
    index: Index
    retriever: str
    k: int

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the widgets that give this search, by their keys."""
        own = {"pooling": self.index.spec.pooling, "retriever": self.retriever, "k": self.k}
        return cut_values(self.cut) | own

    @property
    def embedded(self) -> tuple[object, ...]:
        """What the vectors depend on, as a key of caches."""
        return self.documents, self.cut, self.index.spec.pooling

    @property
    def ranked(self) -> tuple[object, ...]:
        """What the ranks depend on, as a key of caches; each cross-encoder ranks in its own way."""
        return *self.embedded, self.retriever, reranker_name()

    @property
    def text_limit(self) -> int:
        """How many tokens of a chunk are read."""
        return self.cut.text_limit(self.model)

    @property
    def longest(self) -> int:
        """The most tokens of a chunk that can be read, or are where vectors are given."""
        if (encoder := self.model.as_encoder) is not None and not self.cut.uploaded:
            return encoder.config.max_positions
        return self.text_limit

    def document(self, name: str) -> Document:
        """Return the document of a name."""
        return next(document for document in self.documents if document.name == name)
